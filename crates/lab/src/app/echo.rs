//! Answers about the request itself: what it said, what its body was.

use http::header;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    answer,
    body::{Request, Response},
};
use crate::image::hexadecimal;

/// All of the request but its body, of which the length and the hash are told.
pub(super) async fn echo(name: &str, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let headers: Vec<_> = head
        .headers
        .iter()
        .map(|(name, value)| {
            [
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into(),
            ]
        })
        .collect();
    match digest(body).await {
        Ok((bytes, sha256)) => answer::json(&json!({
            "method": head.method.as_str(),
            "path": head.uri.path(),
            "query": head.uri.query(),
            "version": format!("{:?}", head.version),
            "authority": head.uri.authority().map(ToString::to_string),
            "headers": headers,
            "body": { "bytes": bytes, "sha256": sha256 },
            "pod": name,
        })),
        Err(error) => answer::bad_request(error.to_string()),
    }
}

/// The body as it comes, with its length if that was told.
pub(super) fn mirror(request: Request) -> Response {
    let content_length = request.headers().get(header::CONTENT_LENGTH).cloned();
    let body = request.into_body().boxed_unsync();
    let mut response = answer::stream("application/octet-stream", body);
    if let Some(length) = content_length {
        response
            .headers_mut()
            .insert(header::CONTENT_LENGTH, length);
    }
    response
}

/// The body's length and hash. Nothing of it is kept, so it may be of any length.
pub(super) async fn upload(request: Request) -> Response {
    match digest(request.into_body()).await {
        Ok((bytes, sha256)) => answer::json(&json!({ "bytes": bytes, "sha256": sha256 })),
        Err(error) => answer::bad_request(error.to_string()),
    }
}

async fn digest(mut body: Incoming) -> Result<(u64, String), hyper::Error> {
    let mut hash = Sha256::new();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            bytes += u64::try_from(data.len()).unwrap_or(u64::MAX);
            hash.update(&data);
        }
    }
    Ok((bytes, hexadecimal(&hash.finalize())))
}
