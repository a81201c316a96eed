//! Makes answers: a status, a type, a body, and the body's hash where it is known beforehand.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::body::{Body, Response, whole};
use crate::{image::hexadecimal, load::SHA256};

pub(super) fn text(status: StatusCode, text: impl Into<String>) -> Response {
    with_hash(status, "text/plain; charset=utf-8", text.into().into())
}

pub(super) fn json(value: &Value) -> Response {
    let text = format!("{value}\n");
    with_hash(StatusCode::OK, "application/json", text.into())
}

pub(super) fn bytes(bytes: Bytes) -> Response {
    with_hash(StatusCode::OK, "application/octet-stream", bytes)
}

/// An answer whose body is yet to come.
pub(super) fn stream(content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    let content_type = HeaderValue::from_static(content_type);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

/// What was wrong with a request.
pub(super) fn bad_request(what: impl Into<String>) -> Response {
    text(StatusCode::BAD_REQUEST, what.into() + "\n")
}

/// A header of ours, which the request may have chosen the value of.
pub(super) fn set(response: &mut Response, name: &'static str, value: &str) {
    if let Ok(value) = value.parse() {
        let name = HeaderName::from_static(name);
        response.headers_mut().insert(name, value);
    }
}

fn with_hash(status: StatusCode, content_type: &'static str, bytes: Bytes) -> Response {
    let hash = hexadecimal(&Sha256::digest(&bytes));
    let mut response = stream(content_type, whole(bytes));
    *response.status_mut() = status;
    set(&mut response, SHA256, &hash);
    response
}
