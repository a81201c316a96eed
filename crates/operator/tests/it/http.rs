//! One request over a real connection, with or without TLS.

use std::time::Duration;

use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

const PATIENCE: Duration = Duration::from_mins(1);

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        assert!(
            self.head.contains("content-type: application/json"),
            "{self:?}"
        );
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A request line, with a token if there is one, and a body.
pub(crate) async fn ask(port: u16, line: &str, token: Option<&str>, body: &str) -> Answer {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    ask_on(stream, line, token, body).await
}

pub(crate) async fn ask_on(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    line: &str,
    token: Option<&str>,
    body: &str,
) -> Answer {
    let token = token.map_or(String::new(), |token| {
        format!("authorization: Bearer {token}\r\n")
    });
    let request = format!(
        "{line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {}\r\n{token}\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    // How the connection ends is not what is asked here.
    let _ = read.expect("an answer in time");
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a whole answer");
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}
