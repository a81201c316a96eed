//! The bodies that go through here, each an enum of the few kinds there are: nothing is boxed on the way.

use std::{
    error::Error,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::{
    finish::Finish,
    replay::ReplayBody,
    upstream::{http1::Http1Body, http2::Http2Body},
};

/// Why a body broke off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the body broke off")]
    Http(#[from] hyper::Error),
    #[error("the stream that brings the body was ended")]
    Http2(#[from] h2::Error),
}

/// What is sent to an endpoint.
#[derive(Debug)]
pub(crate) enum Outbound {
    /// Nothing.
    Empty,
    /// What the client sends, as it comes.
    Stream(Incoming),
    /// What was read while the request waited.
    Replay(ReplayBody),
}

/// What is sent to the client.
#[derive(Debug)]
pub(crate) struct Outgoing {
    kind: Kind,
    /// Notes the end of the request when this is dropped.
    #[allow(dead_code, reason = "it does its work when it is dropped")]
    finish: Option<Finish>,
}

#[derive(Debug)]
enum Kind {
    Full(Option<Bytes>),
    Http1(Http1Body),
    Http2(Http2Body),
}

impl Outgoing {
    /// An answer of our own.
    pub(crate) fn full(body: Bytes) -> Self {
        let body = Some(body).filter(|body| !body.is_empty());
        Self {
            kind: Kind::Full(body),
            finish: None,
        }
    }

    pub(crate) fn http1(body: Http1Body) -> Self {
        Self {
            kind: Kind::Http1(body),
            finish: None,
        }
    }

    pub(crate) fn http2(body: Http2Body) -> Self {
        Self {
            kind: Kind::Http2(body),
            finish: None,
        }
    }

    pub(crate) fn with_finish(mut self, finish: Finish) -> Self {
        self.finish = Some(finish);
        self
    }
}

impl BodyError {
    /// What was said in HTTP/2 when it was.
    pub(crate) fn reason(&self) -> Option<h2::Reason> {
        let mut error: Option<&(dyn Error + 'static)> = Some(self);
        while let Some(this) = error {
            if let Some(http2) = this.downcast_ref::<h2::Error>() {
                return http2.reason();
            }
            error = this.source();
        }
        None
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.kind {
            Kind::Full(body) => Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Kind::Http1(body) => {
                let frame = Pin::new(body).poll_frame(context);
                frame.map_err(BodyError::from)
            }
            Kind::Http2(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Full(body) => body.is_none(),
            Kind::Http1(body) => body.is_end_stream(),
            Kind::Http2(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Full(body) => {
                SizeHint::with_exact(body.as_ref().map_or(0, |body| body.len() as u64))
            }
            Kind::Http1(body) => body.size_hint(),
            Kind::Http2(body) => body.size_hint(),
        }
    }
}

impl Body for Outbound {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut *self {
            Self::Empty => Poll::Ready(None),
            Self::Stream(body) => Pin::new(body).poll_frame(context),
            Self::Replay(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Stream(body) => body.is_end_stream(),
            Self::Replay(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Stream(body) => body.size_hint(),
            Self::Replay(body) => body.size_hint(),
        }
    }
}
