//! A plain HTTP client: one connection straight to an address, whole answers, no second attempt.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpStream, time::timeout};

use super::bed::PATIENCE;

pub(super) type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;

/// A whole answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) trailers: HeaderMap,
}

/// A connection that is kept.
pub(super) struct Connection {
    address: SocketAddr,
    sender: SendRequest<Body>,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("text"))
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> Self {
        let stream = timeout(PATIENCE, TcpStream::connect(address)).await;
        let stream = stream.expect("somebody accepts in time");
        let stream = stream.expect("a connection");
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .expect("HTTP/1.1");
        // It ends with the sender.
        tokio::spawn(connection);
        Self { address, sender }
    }

    /// Sends it, and reads all of the answer. The Host is the address, unless the request names one.
    pub(super) async fn send(&mut self, request: Request<Body>) -> Answer {
        let what = format!("{} {}", request.method(), request.uri());
        let answer = self.attempt(request).await;
        answer.unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    async fn attempt(&mut self, mut request: Request<Body>) -> Result<Answer, String> {
        let host = self.address.to_string().parse().expect("a host");
        request.headers_mut().entry("host").or_insert(host);
        let answer = timeout(PATIENCE, async {
            self.sender.ready().await?;
            let (head, body) = self.sender.send_request(request).await?.into_parts();
            let body = body.collect().await?;
            let trailers = body.trailers().cloned().unwrap_or_default();
            Ok::<_, hyper::Error>(Answer {
                status: head.status,
                headers: head.headers,
                body: body.to_bytes(),
                trailers,
            })
        });
        let answer = answer.await;
        let answer = answer.map_err(|_| format!("no answer in {PATIENCE:?}"))?;
        answer.map_err(|error| format!("{error:?}"))
    }
}

/// For a test in which somebody's connection is cut.
pub(super) async fn try_get(address: SocketAddr, path: &str) -> Result<Answer, String> {
    let request = Request::get(path).body(empty()).expect("a request");
    Connection::open(address).await.attempt(request).await
}

pub(super) async fn get(address: SocketAddr, path: &str) -> Answer {
    let request = Request::get(path).body(empty()).expect("a request");
    send(address, request).await
}

pub(super) async fn post(address: SocketAddr, path: &str, body: Vec<u8>) -> Answer {
    let request = Request::post(path).body(whole(body)).expect("a request");
    send(address, request).await
}

/// On a connection of its own.
pub(super) async fn send(address: SocketAddr, request: Request<Body>) -> Answer {
    Connection::open(address).await.send(request).await
}

pub(super) fn empty() -> Body {
    whole(Vec::new())
}

pub(super) fn whole(bytes: Vec<u8>) -> Body {
    Full::new(Bytes::from(bytes)).boxed_unsync()
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    weir_lab::image::digest(bytes).replace("sha256:", "")
}
