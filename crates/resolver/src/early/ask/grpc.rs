//! The health of a gRPC server, by `grpc.health.v1`: one small call over HTTP/2, of which both messages have one field.

use std::net::SocketAddr;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::NotWell;

const PATH: &str = "/grpc.health.v1.Health/Check";
const GRPC: &str = "application/grpc";
const STATUS: &str = "grpc-status";
const OK: &[u8] = b"0";
/// The first field of a message, as text; and as a number.
const FIRST_TEXT: u8 = 0x0a;
const FIRST_NUMBER: u8 = 0x08;
/// The server is well.
const SERVING: u8 = 1;
/// Before each message: whether it is compressed, and its length.
const PREFIX: usize = 5;
/// An answer has 7 bytes.
const ANSWER_LIMIT: usize = 1024;

pub(super) async fn check(
    stream: TcpStream,
    address: SocketAddr,
    service: &str,
) -> Result<(), NotWell> {
    let request = Request::post(format!("http://{address}{PATH}"))
        .header(header::CONTENT_TYPE, GRPC)
        .header(header::TE, "trailers")
        .header(header::USER_AGENT, super::USER_AGENT)
        .body(Full::new(question(service)?))?;
    // What it spawns ends with the connection, which ends here.
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    let answer = async {
        let answer = sender.send_request(request).await?;
        // Without a message the status stands in the head.
        let head = answer.headers().clone();
        let body = Limited::new(answer.into_body(), ANSWER_LIMIT);
        let body = body.collect().await.map_err(|_| NotWell)?;
        let trailers = body.trailers().cloned().unwrap_or_default();
        if is_ok(&head).or(is_ok(&trailers)) == Some(true) && is_serving(&body.to_bytes()) {
            Ok(())
        } else {
            Err(NotWell)
        }
    };
    let mut answer = std::pin::pin!(answer);
    tokio::select! {
        answer = &mut answer => answer,
        _ = connection => answer.await,
    }
}

fn question(service: &str) -> Result<Bytes, NotWell> {
    let mut message = BytesMut::new();
    if !service.is_empty() {
        message.put_u8(FIRST_TEXT);
        put_number(&mut message, service.len());
        message.put_slice(service.as_bytes());
    }
    let mut framed = BytesMut::with_capacity(PREFIX + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).map_err(|_| NotWell)?);
    framed.put_slice(&message);
    Ok(framed.freeze())
}

/// Seven bits at a time, the lowest first.
fn put_number(message: &mut BytesMut, mut number: usize) {
    while number >= 0x80 {
        message.put_u8(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
        number >>= 7;
    }
    message.put_u8(u8::try_from(number).unwrap_or_default());
}

fn is_ok(headers: &HeaderMap) -> Option<bool> {
    let status: &HeaderValue = headers.get(STATUS)?;
    Some(status.as_bytes() == OK)
}

/// Any other status, and anything else in the message, is not that of a server that is well.
fn is_serving(framed: &[u8]) -> bool {
    matches!(framed, [0, 0, 0, 0, 2, FIRST_NUMBER, SERVING])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_has_the_service_as_its_first_field() {
        assert_eq!(&question("").unwrap()[..], [0; 5]);
        assert_eq!(&question("ab").unwrap()[..], b"\0\0\0\0\x04\x0a\x02ab");
        let long = question(&"a".repeat(300)).unwrap();
        assert_eq!(long[..8], [0, 0, 0, 1, 0x2f, 0x0a, 0xac, 0x02]);
        assert_eq!(long.len(), 8 + 300);
    }

    #[test]
    fn only_serving_is_well() {
        assert!(is_serving(&[0, 0, 0, 0, 2, 8, 1]));
        for other in [
            &[0, 0, 0, 0, 2, 8, 2][..],
            &[0, 0, 0, 0, 0],
            &[1, 0, 0, 0, 2, 8, 1],
            &[0, 0, 0, 0, 2, 8],
            &[],
        ] {
            assert!(!is_serving(other), "{other:?}");
        }
    }
}
