//! gRPC by hand: the service `weir.lab.Echo`, whose messages are bytes and nothing else.
//!
//! A message is a byte (compressed or not), its length in four bytes, and itself; the status is a trailer.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_util::stream;
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::{
    answer,
    body::{Body, Request, Response, whole},
    stream::body,
};

/// The header with which a client says how many answers `ServerStream` is to give.
const COUNT: &str = "x-weir-count";

const CONTENT_TYPE: &str = "application/grpc";
const LARGEST_MESSAGE: usize = 4 << 20;
const MOST_ANSWERS: u64 = 1_000_000;

/// A gRPC status that is not OK.
#[derive(Debug)]
struct Failure {
    code: &'static str,
    message: &'static str,
}

const UNIMPLEMENTED: &str = "12";
const RESOURCE_EXHAUSTED: &str = "8";
const INTERNAL: &str = "13";

pub(super) async fn answer(request: Request) -> Response {
    let is_grpc = request
        .headers()
        .get(http::header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(CONTENT_TYPE.as_bytes()));
    if !is_grpc {
        return answer::bad_request("this is gRPC: the content-type must be application/grpc");
    }
    let count = request.headers().get(COUNT);
    let count = count.and_then(|value| value.to_str().ok()?.parse().ok());
    let method = request.uri().path().rsplit('/').next().unwrap_or_default();
    let method = method.to_owned();
    let mut messages = Messages::of(request.into_body());
    let answered = match &*method {
        "Unary" => messages.first().await.map(|message| repeat(&message, 1)),
        "ServerStream" => {
            let count = count.unwrap_or(3).min(MOST_ANSWERS);
            messages
                .first()
                .await
                .map(|message| repeat(&message, count))
        }
        "ClientStream" => messages.all().await.map(|message| repeat(&message, 1)),
        "Bidi" => Ok(each(messages)),
        _ => Err(Failure {
            code: UNIMPLEMENTED,
            message: "there are Unary, ServerStream, ClientStream and Bidi",
        }),
    };
    match answered {
        Ok(body) => answer::stream(CONTENT_TYPE, body),
        Err(failure) => {
            // Without a message the status is a header.
            let mut response = answer::stream(CONTENT_TYPE, whole(Bytes::new()));
            response.headers_mut().extend(status(Some(&failure)));
            response
        }
    }
}

/// The same message so many times, and the status.
fn repeat(message: &[u8], count: u64) -> Body {
    let message = frame(message);
    body(stream::unfold(0, move |done| {
        let message = message.clone();
        async move {
            let next = match done {
                done if done < count => Frame::data(message),
                done if done == count => Frame::trailers(status(None)),
                _ => return None,
            };
            Some((Ok(next), done + 1))
        }
    }))
}

/// Each message as it comes, and the status.
fn each(messages: Messages) -> Body {
    body(stream::unfold(Some(messages), |messages| async move {
        let mut messages = messages?;
        match messages.next().await {
            Ok(Some(message)) => Some((Ok(Frame::data(frame(&message))), Some(messages))),
            Ok(None) => Some((Ok(Frame::trailers(status(None))), None)),
            Err(failure) => Some((Ok(Frame::trailers(status(Some(&failure)))), None)),
        }
    }))
}

fn status(failure: Option<&Failure>) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    let code = failure.map_or("0", |failure| failure.code);
    trailers.insert("grpc-status", HeaderValue::from_static(code));
    if let Some(failure) = failure {
        let message = HeaderValue::from_static(failure.message);
        trailers.insert("grpc-message", message);
    }
    trailers
}

fn frame(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(message.len() + 5);
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.put_slice(message);
    framed.freeze()
}

/// The messages of a body.
struct Messages {
    body: Incoming,
    buffer: BytesMut,
}

impl Messages {
    fn of(body: Incoming) -> Self {
        Self {
            body,
            buffer: BytesMut::new(),
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            if let Some(message) = take(&mut self.buffer)? {
                return Ok(Some(message));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                None if self.buffer.is_empty() => return Ok(None),
                None | Some(Err(_)) => return Err(cut()),
            }
        }
    }

    async fn first(&mut self) -> Result<Bytes, Failure> {
        self.next().await?.ok_or_else(cut)
    }

    /// All of them, one after another, as one.
    async fn all(&mut self) -> Result<Bytes, Failure> {
        let mut all = BytesMut::new();
        while let Some(message) = self.next().await? {
            if all.len() + message.len() > LARGEST_MESSAGE {
                return Err(too_large());
            }
            all.extend_from_slice(&message);
        }
        Ok(all.freeze())
    }
}

/// The first message of the buffer, if all of it is there.
fn take(buffer: &mut BytesMut) -> Result<Option<Bytes>, Failure> {
    let Some((&[compressed, a, b, c, d], _)) = buffer.split_first_chunk() else {
        return Ok(None);
    };
    if compressed != 0 {
        return Err(Failure {
            code: UNIMPLEMENTED,
            message: "messages must not be compressed",
        });
    }
    let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    if length > LARGEST_MESSAGE {
        return Err(too_large());
    }
    if buffer.len() < 5 + length {
        return Ok(None);
    }
    buffer.advance(5);
    Ok(Some(buffer.split_to(length).freeze()))
}

fn too_large() -> Failure {
    Failure {
        code: RESOURCE_EXHAUSTED,
        message: "a message has at most 4 MiB",
    }
}

fn cut() -> Failure {
    Failure {
        code: INTERNAL,
        message: "the request ended in the middle of a message, or had none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_whole_however_they_arrive() {
        let sent: Vec<u8> = [&frame(b"one")[..], &frame(b""), &frame(b"three")].concat();
        let mut buffer = BytesMut::new();
        let mut got = Vec::new();
        for byte in sent {
            buffer.put_u8(byte);
            while let Some(message) = take(&mut buffer).unwrap() {
                got.push(message);
            }
        }
        assert_eq!(got, ["one", "", "three"]);
    }

    #[test]
    fn what_is_compressed_or_too_large_is_refused_before_it_is_read() {
        let mut compressed = BytesMut::from(&[1, 0, 0, 0, 0][..]);
        assert_eq!(take(&mut compressed).unwrap_err().code, UNIMPLEMENTED);
        let mut large = BytesMut::from(&[0, 0xff, 0, 0, 0][..]);
        assert_eq!(take(&mut large).unwrap_err().code, RESOURCE_EXHAUSTED);
    }
}
