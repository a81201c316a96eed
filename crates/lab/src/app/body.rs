//! The one type of body that all answers have, and the bytes that the server makes up.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::body::Incoming;

use super::pressure::Guest;

pub(super) type Body = UnsyncBoxBody<Bytes, hyper::Error>;
pub(super) type Request = http::Request<Incoming>;
pub(super) type Response = http::Response<Body>;

/// A body that is all there.
pub(super) fn whole(bytes: impl Into<Bytes>) -> Body {
    let never = |never: Infallible| match never {};
    Full::new(bytes.into()).map_err(never).boxed_unsync()
}

/// The bytes of this range in an endless sequence that is always the same, and of no short period.
pub(super) fn pattern(start: u64, end: u64) -> Bytes {
    let byte = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[5];
    (start..end).map(byte).collect::<Vec<u8>>().into()
}

/// A body whose request counts as being here until it is sent or given up.
pub(super) struct Held {
    body: Body,
    _guest: Guest,
}

impl Held {
    pub(super) fn body(body: Body, guest: Guest) -> Body {
        let held = Self {
            body,
            _guest: guest,
        };
        held.boxed_unsync()
    }
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
