//! A client that says exactly the bytes it is given, and understands answers of HTTP/1.1.

use std::{io::ErrorKind, net::SocketAddr};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::bed::in_time;

/// A connection to the data plane.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
}

impl From<TcpStream> for Client {
    fn from(stream: TcpStream) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
        }
    }
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = in_time("a connection", TcpStream::connect(address))
            .await
            .unwrap();
        stream.set_nodelay(true).unwrap();
        Self::from(stream)
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        in_time("bytes are sent", self.stream.write_all(bytes.as_ref()))
            .await
            .unwrap();
    }

    /// `GET` of this path, with a Host and nothing else.
    pub(crate) async fn get(&mut self, path: &str) {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: a.example\r\n\r\n"))
            .await;
    }

    /// The next answer.
    pub(crate) async fn answer(&mut self) -> Answer {
        match self.try_answer(true).await {
            Some(answer) => answer,
            None => panic!("the connection was closed without an answer"),
        }
    }

    /// The next answer, to a request with HEAD.
    pub(crate) async fn answer_to_head(&mut self) -> Answer {
        self.try_answer(false).await.unwrap()
    }

    /// The next answer, or none when the connection is closed.
    pub(crate) async fn try_answer(&mut self, has_body: bool) -> Option<Answer> {
        in_time("an answer", self.read_answer(has_body)).await
    }

    /// Waits until the other side closes, which must say nothing more.
    pub(crate) async fn closed(&mut self) {
        let rest = in_time("the connection is closed", self.rest()).await;
        assert!(rest.is_empty(), "{:?}", String::from_utf8_lossy(&rest));
    }

    /// All that comes until the other side closes.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        while self.fill().await > 0 {}
        std::mem::take(&mut self.buffer)
    }

    async fn read_answer(&mut self, has_body: bool) -> Option<Answer> {
        let mut answer = loop {
            let head = self.head().await?;
            if head.status == 101 || head.status >= 200 {
                break head;
            }
        };
        if !has_body || matches!(answer.status, 101 | 204 | 304) {
            return Some(answer);
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            loop {
                let line = self.line().await;
                let length = usize::from_str_radix(line.trim(), 16).unwrap();
                if length == 0 {
                    break;
                }
                let piece = self.exactly(length).await;
                answer.body.extend(piece);
                assert_eq!(self.line().await, "\r\n");
            }
            loop {
                let line = self.line().await;
                let Some((name, value)) = line.split_once(':') else {
                    break;
                };
                answer
                    .trailers
                    .push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
        } else if let Some(length) = answer.header("content-length") {
            let length = length.parse().unwrap();
            answer.body = self.exactly(length).await;
        } else {
            answer.body = self.rest().await;
        }
        Some(answer)
    }

    /// The next head, also of an answer that is not the last word (1xx). None: closed.
    pub(crate) async fn head(&mut self) -> Option<Answer> {
        loop {
            let mut headers = [httparse::EMPTY_HEADER; 200];
            let mut head = httparse::Response::new(&mut headers);
            if let httparse::Status::Complete(length) = head.parse(&self.buffer).unwrap() {
                let answer = Answer {
                    status: head.code.unwrap(),
                    headers: head
                        .headers
                        .iter()
                        .map(|header| {
                            let value = String::from_utf8_lossy(header.value);
                            (header.name.to_ascii_lowercase(), value.into_owned())
                        })
                        .collect(),
                    body: Vec::new(),
                    trailers: Vec::new(),
                };
                self.buffer.drain(..length);
                return Some(answer);
            }
            if self.fill().await == 0 {
                assert!(self.buffer.is_empty(), "closed in the middle of a head");
                return None;
            }
        }
    }

    pub(crate) async fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.buffer.len() < length {
            assert!(self.fill().await > 0, "closed in the middle of a body");
        }
        self.buffer.drain(..length).collect()
    }

    async fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.drain(..=end).collect();
                return String::from_utf8(line).unwrap();
            }
            assert!(self.fill().await > 0, "closed in the middle of a line");
        }
    }

    async fn fill(&mut self) -> usize {
        match self.stream.read_buf(&mut self.buffer).await {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("{error}"),
        }
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(it, _)| it == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} is there twice");
        value
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The reason of an answer of our own.
    pub(crate) fn reason(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/json"));
        let answer = self.json();
        assert!(
            answer["error"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
        answer["reason"].as_str().unwrap().to_owned()
    }
}
