//! The body of a request that waits: read as far as there is room, so that it can be sent more than once, and so that
//! a client that goes away is noticed.
//!
//! What is read is copied into [`Blocks`]. hyper hands out slices of its read buffer, and a kilobyte kept that way keeps
//! eight.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::{
    blocks::Blocks,
    headers, lock,
    waiting::{Growth, Place, Remains},
};

/// What hyper is told to read at a time, at most, unless heads may be longer.
pub(crate) const READ_BUFFER: usize = 64 * 1024;
/// The largest piece that one look at a body can bring: hyper fills the buffer that it has, and that grows by doubling.
const LARGEST_PIECE: usize = 2 * READ_BUFFER;

/// A body that is being read while its request waits.
#[derive(Debug)]
pub(crate) struct Reading {
    kept: Blocks,
    /// The memory that takes, with the trailers.
    memory: usize,
    trailers: Option<HeaderMap>,
    rest: Option<Incoming>,
    /// There is no room for more: the rest stays where it is.
    is_full: bool,
}

/// What came of reading on.
#[derive(Debug)]
pub(crate) enum Read {
    /// All of it is there, or all that there is room for.
    Done,
    /// The client broke off.
    Broken,
}

/// A body that was read, or a part of it with the rest to come. Can be sent again as long as the rest is untouched.
#[derive(Debug)]
pub(crate) struct Replay {
    pieces: Vec<Bytes>,
    length: usize,
    memory: usize,
    trailers: Option<HeaderMap>,
    rest: Mutex<Rest>,
    /// What counts its memory when its request is no longer held.
    remains: OnceLock<Remains>,
}

#[derive(Debug)]
enum Rest {
    None,
    Untouched(Incoming),
    Taken,
}

/// One sending of a [`Replay`].
#[derive(Debug)]
pub(crate) struct ReplayBody {
    replay: Arc<Replay>,
    next: usize,
    sent: usize,
    trailers_sent: bool,
    rest: Option<Incoming>,
}

impl Reading {
    pub(crate) fn new(body: Incoming) -> Self {
        let rest = if body.is_end_stream() {
            None
        } else {
            Some(body)
        };
        Self {
            kept: Blocks::default(),
            memory: 0,
            trailers: None,
            rest,
            is_full: false,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.rest.is_none() || self.is_full
    }

    /// Reads on, up to `most` bytes in all. May be given up at any time and called again.
    pub(crate) async fn read(&mut self, room: &Growth<'_>, most: usize) -> Read {
        poll_fn(|context| self.poll_read(room, most, context)).await
    }

    fn poll_read(
        &mut self,
        room: &Growth<'_>,
        most: usize,
        context: &mut Context<'_>,
    ) -> Poll<Read> {
        while let Some(body) = &mut self.rest {
            // Room is taken before the look and what was not needed given back at once: what is kept never exceeds
            // the limits, not by a single piece.
            if self.kept.length() + LARGEST_PIECE > most || !room.grow(LARGEST_PIECE) {
                self.is_full = true;
                return Poll::Ready(Read::Done);
            }
            let frame = Pin::new(body).poll_frame(context);
            let kept = match frame {
                Poll::Ready(Some(Ok(frame))) => self.keep(frame),
                Poll::Ready(None) => {
                    self.rest = None;
                    0
                }
                Poll::Ready(Some(Err(_))) => {
                    room.shrink(LARGEST_PIECE);
                    return Poll::Ready(Read::Broken);
                }
                Poll::Pending => {
                    room.shrink(LARGEST_PIECE);
                    return Poll::Pending;
                }
            };
            self.memory += kept;
            room.shrink(LARGEST_PIECE.saturating_sub(kept));
            // With heads longer than the read buffer it may be more. That is here already, so it is only counted.
            if kept > LARGEST_PIECE && !room.grow(kept - LARGEST_PIECE) {
                self.is_full = true;
                return Poll::Ready(Read::Done);
            }
        }
        Poll::Ready(Read::Done)
    }

    /// Returns how much memory that takes.
    fn keep(&mut self, frame: Frame<Bytes>) -> usize {
        match frame.into_data() {
            Ok(data) => {
                if self.rest.as_ref().is_some_and(Body::is_end_stream) {
                    self.rest = None;
                }
                self.kept.push(&data)
            }
            Err(frame) => {
                self.trailers = frame.into_trailers().ok();
                self.trailers.as_ref().map_or(0, headers::length_of_all)
            }
        }
    }

    pub(crate) fn finish(self) -> Arc<Replay> {
        Arc::new(Replay {
            length: self.kept.length(),
            memory: self.memory,
            pieces: self.kept.into_pieces(),
            trailers: self.trailers,
            rest: Mutex::new(self.rest.map_or(Rest::None, Rest::Untouched)),
            remains: OnceLock::new(),
        })
    }
}

impl Replay {
    /// Its request lingers: from now on its memory counts by itself, until nobody has it any more.
    pub(crate) fn lingers(&self, place: &Place) {
        let is_counted = self.remains.get().is_some();
        let remains = place.lingers(if is_counted { 0 } else { self.memory });
        if let Some(remains) = remains {
            self.remains.get_or_init(|| remains);
        }
    }

    /// Whether it can be sent, from its first byte on.
    pub(crate) fn can_be_sent(&self) -> bool {
        !matches!(*lock(&self.rest), Rest::Taken)
    }

    pub(crate) fn body(self: &Arc<Self>) -> ReplayBody {
        ReplayBody {
            replay: Arc::clone(self),
            next: 0,
            sent: 0,
            trailers_sent: false,
            rest: None,
        }
    }

    fn take_rest(&self) -> Option<Incoming> {
        let mut rest = lock(&self.rest);
        if matches!(*rest, Rest::None) {
            return None;
        }
        match std::mem::replace(&mut *rest, Rest::Taken) {
            Rest::Untouched(body) => Some(body),
            Rest::None | Rest::Taken => None,
        }
    }
}

impl ReplayBody {
    pub(crate) fn into_replay(self) -> Arc<Replay> {
        self.replay
    }
}

impl Body for ReplayBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = &mut *self;
        if let Some(piece) = this.replay.pieces.get(this.next) {
            this.next += 1;
            this.sent += piece.len();
            return Poll::Ready(Some(Ok(Frame::data(piece.clone()))));
        }
        if this.rest.is_none() {
            this.rest = this.replay.take_rest();
        }
        if let Some(rest) = &mut this.rest {
            return Poll::Ready(ready!(Pin::new(rest).poll_frame(context)));
        }
        if this.trailers_sent {
            return Poll::Ready(None);
        }
        this.trailers_sent = true;
        Poll::Ready(
            this.replay
                .trailers
                .clone()
                .map(|trailers| Ok(Frame::trailers(trailers))),
        )
    }

    fn is_end_stream(&self) -> bool {
        self.next == self.replay.pieces.len()
            && self.replay.trailers.is_none()
            && matches!(*lock(&self.replay.rest), Rest::None)
    }

    fn size_hint(&self) -> SizeHint {
        if self.replay.trailers.is_some() {
            // With an exact size it would be sent with a Content-Length, where trailers have no room.
            return SizeHint::default();
        }
        let unsent = (self.replay.length - self.sent) as u64;
        match &*lock(&self.replay.rest) {
            Rest::None => SizeHint::with_exact(unsent),
            Rest::Untouched(rest) => rest
                .size_hint()
                .exact()
                .map_or_else(SizeHint::default, |rest| {
                    SizeHint::with_exact(unsent + rest)
                }),
            Rest::Taken => self.rest.as_ref().map_or_else(SizeHint::default, |rest| {
                rest.size_hint()
                    .exact()
                    .map_or_else(SizeHint::default, |rest| {
                        SizeHint::with_exact(unsent + rest)
                    })
            }),
        }
    }
}
