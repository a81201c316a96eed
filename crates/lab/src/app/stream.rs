//! Bodies that come in pieces: without a length, slowly, or as events.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use http::{HeaderMap, HeaderValue, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use sha2::{Digest, Sha256};
use tokio::time::sleep;

use super::{
    answer,
    body::{Body, Response, pattern},
};
use crate::{image::hexadecimal, load::SHA256};

const PIECE: u64 = 8 * 1024;
/// A body that drips comes in at most so many pieces, so that each has a time of its own.
const MOST_DRIPS: u64 = 1000;

pub(super) fn body(
    frames: impl Stream<Item = Result<Frame<Bytes>, hyper::Error>> + Send + 'static,
) -> Body {
    StreamBody::new(frames).boxed_unsync()
}

/// So many bytes without saying how many; at the end a trailer says their hash.
pub(super) fn chunked(length: u64) -> Response {
    let frames = stream::unfold(Some((0, Sha256::new())), move |state| async move {
        let (sent, mut hash) = state?;
        if sent == length {
            let mut trailers = HeaderMap::new();
            let hash = hexadecimal(&hash.finalize());
            if let Ok(value) = HeaderValue::from_str(&hash) {
                trailers.insert(SHA256, value);
            }
            return Some((Ok(Frame::trailers(trailers)), None));
        }
        let end = (sent + PIECE).min(length);
        let piece = pattern(sent, end);
        hash.update(&piece);
        Some((Ok(Frame::data(piece)), Some((end, hash))))
    });
    let mut response = answer::stream("application/octet-stream", body(frames));
    // Without this an HTTP/1.1 server does not send them.
    let names = HeaderValue::from_static(SHA256);
    response.headers_mut().insert(header::TRAILER, names);
    response
}

/// So many bytes with their length, spread evenly over a time.
pub(super) fn drip(length: u64, time: Duration) -> Response {
    let drips = length.clamp(1, MOST_DRIPS);
    let pause = time.div_f64(f64::from(u32::try_from(drips).unwrap_or(u32::MAX)));
    let frames = stream::unfold(0, move |done| async move {
        if done == drips {
            return None;
        }
        sleep(pause).await;
        let piece = pattern(length * done / drips, length * (done + 1) / drips);
        Some((Ok(Frame::data(piece)), done + 1))
    });
    let mut response = answer::stream("application/octet-stream", body(frames));
    response
        .headers_mut()
        .insert(header::CONTENT_LENGTH, length.into());
    response
}

/// Server-sent events with a number each; the first comes at once.
pub(super) fn events(count: u64, pause: Duration) -> Response {
    let frames = stream::unfold(0, move |done| async move {
        if done == count {
            return None;
        }
        if done > 0 {
            sleep(pause).await;
        }
        let event = format!("id: {done}\nevent: tick\ndata: {done} of {count}\n\n");
        Some((Ok(Frame::data(event.into())), done + 1))
    });
    answer::stream("text/event-stream", body(frames))
}
