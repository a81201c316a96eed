//! A bare HTTP client for these tests: one request on one connection, the whole answer with its trailers.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, Version};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::client::conn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpStream;

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: HeaderMap,
    /// Into how many pieces the body was cut on its way.
    pub(crate) pieces: usize,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Answer {
    let request = Request::get(path).body(Full::default()).unwrap();
    send(address, Version::HTTP_11, request).await.unwrap()
}

/// Sends it in this version; the request's path is all that its URI needs.
pub(crate) async fn send<B>(
    address: SocketAddr,
    version: Version,
    mut request: Request<B>,
) -> Result<Answer, hyper::Error>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let io = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let response = if version == Version::HTTP_2 {
        *request.uri_mut() = format!("http://{address}{}", request.uri())
            .parse()
            .unwrap();
        let handshake = conn::http2::handshake(TokioExecutor::new(), io);
        let (mut sender, connection) = handshake.await?;
        tokio::spawn(connection);
        sender.send_request(request).await?
    } else {
        let host = address.to_string().parse().unwrap();
        request.headers_mut().insert("host", host);
        let (mut sender, connection) = conn::http1::handshake(io).await?;
        tokio::spawn(connection);
        sender.send_request(request).await?
    };
    let (head, mut body) = response.into_parts();
    let mut answer = Answer {
        status: head.status,
        headers: head.headers,
        body: Bytes::new(),
        trailers: HeaderMap::new(),
        pieces: 0,
    };
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) => {
                bytes.extend_from_slice(&data);
                answer.pieces += 1;
            }
            Err(frame) => answer.trailers = frame.into_trailers().unwrap_or_default(),
        }
    }
    answer.body = bytes.into();
    Ok(answer)
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    weir_lab::image::digest(bytes).replace("sha256:", "")
}
