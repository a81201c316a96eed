//! HTTP/2 connections to endpoints: one for each endpoint and shard, shared by all its requests.
//!
//! hyper's way is a channel to a task that hands requests to h2, and one more task for each request that waits for its
//! answer. Here the task of the request asks h2 itself, which takes 7 % less processor time for a small request.
//! Only a body that is not here whole when its request is sent gets a task, since it must flow on while the answer comes.

use std::{
    collections::HashMap,
    future::{Future, poll_fn},
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker, ready},
    time::{Duration, Instant},
};

use bytes::Bytes;
use h2::{
    Reason, RecvStream, SendStream,
    client::{Builder, SendRequest},
};
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use tokio::task::AbortHandle;

use super::{Cause, Failure, connect};
use crate::{
    body::{BodyError, Outbound},
    endpoint::Picked,
    lock,
};

/// What one stream may have on its way to us before we read it, and all of a connection together.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
/// The head of an answer, at most.
const MAX_HEAD: u32 = 16 * 1024;

/// The connections of one shard.
#[derive(Debug)]
pub(crate) struct Http2Pool {
    idle_for: Duration,
    open: Mutex<HashMap<SocketAddr, Arc<Slot>>>,
}

#[derive(Debug, Default)]
struct Slot {
    connection: Mutex<Option<Connection>>,
    /// Held while a connection is made, so that only one is.
    connecting: tokio::sync::Mutex<()>,
}

/// A connection that takes requests.
#[derive(Debug)]
struct Connection {
    send: SendRequest<Bytes>,
    /// Reads and writes. h2 would not notice that nobody wants it any more.
    driver: AbortHandle,
    /// One of these is with each request until its answer was read.
    in_use: InUse,
    /// Since when there are none; set by the first look at it.
    idle_since: Option<Instant>,
}

type InUse = Arc<()>;

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct Http2Body {
    stream: RecvStream,
    has_data: bool,
    /// The body of the request, if that is not sent yet. It ends with the answer, unless the answer ends as it should.
    sending: Option<EndsWithThis>,
    #[allow(dead_code, reason = "it counts until it is dropped")]
    in_use: InUse,
    picked: Picked,
}

/// Sends the body of a request.
struct Sending {
    body: Outbound,
    stream: SendStream<Bytes>,
    /// What was read and waits for the endpoint to have room.
    waiting: Option<Piece>,
    #[allow(dead_code, reason = "it counts until it is dropped")]
    in_use: InUse,
}

struct Piece {
    data: Bytes,
    is_last: bool,
}

/// A task that ends when this is dropped.
#[derive(Debug)]
struct EndsWithThis(Option<AbortHandle>);

impl Http2Pool {
    /// Connections without requests are kept for so long.
    pub(crate) fn new(idle_for: Duration) -> Self {
        Self {
            idle_for,
            open: Mutex::default(),
        }
    }

    /// Sends a request to this endpoint and waits for the head of the answer.
    pub(crate) async fn exchange(
        &self,
        picked: Picked,
        patience: Duration,
        request: Request<Outbound>,
    ) -> Result<Response<Http2Body>, (Failure, Picked)> {
        let (mut send, in_use) = match self.sender(&picked, patience).await {
            Ok(sender) => sender,
            Err(cause) => {
                let unsent = Some(Box::new(request));
                return Err((Failure { cause, unsent }, picked));
            }
        };
        let (head, body) = request.into_parts();
        let is_whole = body.is_end_stream();
        let asked = send.send_request(Request::from_parts(head, ()), is_whole);
        let asked = asked.map(|(answer, stream)| {
            let sending = (!is_whole).then(|| Sending {
                body,
                stream,
                waiting: None,
                in_use: Arc::clone(&in_use),
            });
            (answer, sending)
        });
        let answered = match asked {
            Ok((answer, sending)) => {
                let sending = match sending {
                    Some(sending) => begin(sending).await,
                    None => None,
                };
                answer.await.map(|answer| (answer, sending))
            }
            Err(error) => Err(error),
        };
        match answered {
            Ok((answer, sending)) => Ok(answer.map(|stream| Http2Body {
                stream,
                has_data: true,
                sending,
                in_use,
                picked,
            })),
            Err(error) => {
                let cause = cause_of(&error);
                Err((
                    Failure {
                        cause,
                        unsent: None,
                    },
                    picked,
                ))
            }
        }
    }

    async fn sender(
        &self,
        picked: &Picked,
        patience: Duration,
    ) -> Result<(SendRequest<Bytes>, InUse), Cause> {
        let address = picked.address();
        let slot = Arc::clone(lock(&self.open).entry(address).or_default());
        if let Some(sender) = slot.sender() {
            return Ok(sender);
        }
        let _only = slot.connecting.lock().await;
        if let Some(sender) = slot.sender() {
            return Ok(sender);
        }
        let stream = connect(address, patience).await?;
        picked.endpoint().is_reached();
        let (send, driver) = Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(MAX_HEAD)
            .enable_push(false)
            .handshake(stream)
            .await
            .map_err(|_| Cause::Broken)?;
        // Ends by itself when the other side closes, and is ended by the look at all that are kept.
        let driver = tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%address, %error, "an HTTP/2 connection to an endpoint has ended");
            }
        });
        let in_use = InUse::default();
        *lock(&slot.connection) = Some(Connection {
            send: send.clone(),
            driver: driver.abort_handle(),
            in_use: Arc::clone(&in_use),
            idle_since: None,
        });
        Ok((send, in_use))
    }

    /// Forgets connections that have ended, and ends those that nobody has used for long.
    pub(crate) fn tidy(&self) {
        let now = Instant::now();
        lock(&self.open)
            .retain(|_, slot| slot.is_kept(now, self.idle_for) || Arc::strong_count(slot) > 1);
    }
}

impl Slot {
    fn sender(&self) -> Option<(SendRequest<Bytes>, InUse)> {
        let mut connection = lock(&self.connection);
        let open = connection.as_mut()?;
        if !open.takes_requests() {
            return None;
        }
        open.idle_since = None;
        Some((open.send.clone(), Arc::clone(&open.in_use)))
    }

    fn is_kept(&self, now: Instant, idle_for: Duration) -> bool {
        let mut connection = lock(&self.connection);
        let Some(open) = connection.as_mut() else {
            return false;
        };
        if Arc::strong_count(&open.in_use) > 1 {
            open.idle_since = None;
            // One that takes no more requests has answers to bring.
            return true;
        }
        let since = *open.idle_since.get_or_insert(now);
        if open.takes_requests() && now.duration_since(since) < idle_for {
            return true;
        }
        open.driver.abort();
        *connection = None;
        false
    }
}

impl Connection {
    /// It has not ended, and the other side has not said that it is about to.
    fn takes_requests(&mut self) -> bool {
        let mut nobody = Context::from_waker(Waker::noop());
        // Only one whose own last request waits to be sent would have to wait.
        !matches!(self.send.poll_ready(&mut nobody), Poll::Ready(Err(_)))
    }
}

/// Sends what is here of a body, and leaves the rest to a task. Most bodies are here whole, having come with their heads.
async fn begin(mut sending: Sending) -> Option<EndsWithThis> {
    let first = poll_fn(|context| Poll::Ready(Pin::new(&mut sending).poll(context)));
    match first.await {
        Poll::Ready(()) => None,
        Poll::Pending => Some(EndsWithThis(Some(tokio::spawn(sending).abort_handle()))),
    }
}

impl Sending {
    /// What comes next of the body.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Over>> {
        match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    let is_last = self.body.is_end_stream();
                    // A claim on the connection's window only now that there is something to send: one that is merely
                    // laid by would keep others from sending.
                    self.stream.reserve_capacity(usize::from(!data.is_empty()));
                    self.waiting = Some(Piece { data, is_last });
                    Poll::Ready(Ok(()))
                }
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    // That fails if the stream is over, and then nobody wants them.
                    let _ = self.stream.send_trailers(trailers);
                    Poll::Ready(Err(Over))
                }
            },
            Some(Err(error)) => {
                let error = BodyError::from(error);
                self.stream
                    .send_reset(error.reason().unwrap_or(Reason::CANCEL));
                Poll::Ready(Err(Over))
            }
            None => {
                let _ = self.stream.send_data(Bytes::new(), true);
                Poll::Ready(Err(Over))
            }
        }
    }

    /// Until the endpoint has room for some of it; h2 keeps the rest of a piece.
    fn poll_room(&mut self, piece: &Piece, context: &mut Context<'_>) -> Poll<Result<(), Over>> {
        if piece.data.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while self.stream.capacity() == 0 {
            match ready!(self.stream.poll_capacity(context)) {
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Poll::Ready(Err(Over)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Nothing more is to be sent, or can be.
struct Over;

impl Future for Sending {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        loop {
            // The endpoint wants no more, or is gone. Whoever waits for its answer learns why.
            if this.stream.poll_reset(context).is_ready() {
                return Poll::Ready(());
            }
            let step = match this.waiting.take() {
                None => ready!(this.poll_next(context)),
                Some(piece) => match this.poll_room(&piece, context) {
                    Poll::Pending => {
                        this.waiting = Some(piece);
                        return Poll::Pending;
                    }
                    Poll::Ready(Ok(())) => {
                        let sent = this.stream.send_data(piece.data, piece.is_last);
                        if sent.is_err() || piece.is_last {
                            Err(Over)
                        } else {
                            Ok(())
                        }
                    }
                    Poll::Ready(over) => over,
                },
            };
            if let Err(Over) = step {
                return Poll::Ready(());
            }
        }
    }
}

impl Http2Body {
    /// Where it comes from.
    pub(crate) fn picked(&self) -> &Picked {
        &self.picked
    }

    /// All of the answer is here. A request whose body nobody needs any more the endpoint ends by itself.
    fn is_over(&mut self) {
        if let Some(sending) = self.sending.take() {
            sending.goes_on();
        }
    }
}

impl Body for Http2Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if this.has_data {
            match ready!(this.stream.poll_data(context)) {
                Some(Ok(data)) => {
                    // It can be forgotten only for a stream that is over.
                    let _ = this.stream.flow_control().release_capacity(data.len());
                    if this.stream.is_end_stream() {
                        this.is_over();
                    }
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Err(error)) => return Poll::Ready(failed(error)),
                None => this.has_data = false,
            }
        }
        match ready!(this.stream.poll_trailers(context)) {
            Ok(trailers) => {
                this.is_over();
                Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
            }
            Err(error) => Poll::Ready(failed(error)),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // What the endpoint says of it is in the head, which goes on unchanged.
        SizeHint::default()
    }
}

/// A stream that is ended without an error by an endpoint that has answered and wants no more of the request is no failure
/// (RFC 9113, 8.1).
fn failed(error: h2::Error) -> Option<Result<Frame<Bytes>, BodyError>> {
    if error.reason() == Some(Reason::NO_ERROR) {
        return None;
    }
    Some(Err(BodyError::from(error)))
}

impl EndsWithThis {
    fn goes_on(mut self) {
        self.0 = None;
    }
}

impl Drop for EndsWithThis {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// What h2's error means to us.
fn cause_of(error: &h2::Error) -> Cause {
    let is_ours = !error.is_remote() && !error.is_library();
    if error.is_reset() && is_ours {
        // By `Sending`, whose body broke off.
        Cause::ClientGone
    } else {
        Cause::Broken
    }
}
