//! Answers of our own: what a client reads when there is nothing to forward.
//!
//! They are JSON with the reason and what to do; to a gRPC client an answer that is HTTP 200 with `grpc-status` in its
//! head, the only form that such clients understand.

use std::fmt::Write;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};

use crate::body::Outgoing;

const GRPC: &str = "application/grpc";
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// An answer of our own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// One word, for machines.
    pub reason: &'static str,
    /// One sentence, for people.
    pub message: String,
    /// In so many seconds the client should come again.
    pub retry_after: Option<u64>,
}

/// How a client wants to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manner {
    is_grpc: bool,
    is_head: bool,
}

impl Answer {
    /// An answer with this status, reason and sentence.
    pub fn new(status: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            reason,
            message: message.into(),
            retry_after: None,
        }
    }

    /// Tells the client when to come again.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

impl Manner {
    pub(crate) fn of(method: &Method, headers: &HeaderMap) -> Self {
        let content = headers.get(CONTENT_TYPE);
        Self {
            is_grpc: content.is_some_and(|value| value.as_bytes().starts_with(GRPC.as_bytes())),
            is_head: method == Method::HEAD,
        }
    }

    /// An answer that is somebody's own words.
    pub(crate) fn fixed(self, status: StatusCode, body: Bytes) -> Response<Outgoing> {
        let body = if self.is_head { Bytes::new() } else { body };
        let mut response = Response::new(Outgoing::full(body));
        *response.status_mut() = status;
        response
    }

    pub(crate) fn render(self, answer: &Answer) -> Response<Outgoing> {
        let mut response = if self.is_grpc {
            grpc(answer)
        } else {
            json(answer)
        };
        if self.is_head {
            *response.body_mut() = Outgoing::full(Bytes::new());
        }
        if let Some(seconds) = answer.retry_after {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

fn json(answer: &Answer) -> Response<Outgoing> {
    let mut body = String::with_capacity(64 + answer.message.len());
    body.push_str("{\"error\":");
    quote(&answer.message, &mut body);
    body.push_str(",\"reason\":");
    quote(answer.reason, &mut body);
    body.push_str("}\n");
    let mut response = Response::new(Outgoing::full(body.into()));
    *response.status_mut() = answer.status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// As gRPC maps HTTP's statuses: <https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md>.
fn grpc(answer: &Answer) -> Response<Outgoing> {
    let status = match answer.status {
        StatusCode::NOT_FOUND => 12,
        StatusCode::FORBIDDEN => 7,
        StatusCode::BAD_REQUEST | StatusCode::LOOP_DETECTED => 13,
        _ => 14,
    };
    let mut response = Response::new(Outgoing::full(Bytes::new()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
    headers.insert(GRPC_STATUS, HeaderValue::from(status));
    if let Ok(message) = HeaderValue::from_str(&percent_encoded(&answer.message)) {
        headers.insert(GRPC_MESSAGE, message);
    }
    response
}

/// A string as JSON has it.
fn quote(text: &str, into: &mut String) {
    into.push('"');
    for character in text.chars() {
        match character {
            '"' => into.push_str("\\\""),
            '\\' => into.push_str("\\\\"),
            control if control.is_control() => {
                // To a string it cannot fail.
                let _ = write!(into, "\\u{:04x}", u32::from(control));
            }
            other => into.push(other),
        }
    }
    into.push('"');
}

/// `grpc-message` may hold printable ASCII but `%`; all else is `%XX`.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' => encoded.push_str("%25"),
            b' '..=b'~' => encoded.push(char::from(byte)),
            other => {
                let _ = write!(encoded, "%{other:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn text(response: Response<Outgoing>) -> String {
        let body = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn people_and_machines_get_json() {
        let answer =
            Answer::new(StatusCode::SERVICE_UNAVAILABLE, "full", "say \"no\"\n\\").retry_after(3);
        let response = Manner::of(&Method::GET, &HeaderMap::new()).render(&answer);
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["retry-after"], "3");
        assert_eq!(response.headers()["content-type"], "application/json");
        assert_eq!(
            text(response).await,
            "{\"error\":\"say \\\"no\\\"\\u000a\\\\\",\"reason\":\"full\"}\n"
        );
    }

    #[tokio::test]
    async fn grpc_gets_a_status_in_the_head() {
        let mut headers = HeaderMap::new();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/grpc+proto"),
        );
        for (status, expected) in [
            (503, "14"),
            (502, "14"),
            (504, "14"),
            (404, "12"),
            (403, "7"),
            (400, "13"),
        ] {
            let answer = Answer::new(StatusCode::from_u16(status).unwrap(), "x", "100 % ä");
            let response = Manner::of(&Method::POST, &headers).render(&answer);
            assert_eq!(response.status(), 200);
            assert_eq!(response.headers()["grpc-status"], expected);
            assert_eq!(response.headers()["grpc-message"], "100 %25 %C3%A4");
            assert_eq!(text(response).await, "");
        }
    }

    #[tokio::test]
    async fn head_gets_no_body() {
        let answer = Answer::new(StatusCode::NOT_FOUND, "x", "y");
        let response = Manner::of(&Method::HEAD, &HeaderMap::new()).render(&answer);
        assert_eq!(response.status(), 404);
        assert_eq!(text(response).await, "");
    }
}
