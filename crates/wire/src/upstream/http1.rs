//! An HTTP/1.1 connection to an endpoint, driven by whoever uses it.
//!
//! hyper's way is a task for each connection, which a request talks to through channels: two more tasks to wake for
//! each request. Here the task of the client's connection polls the endpoint's connection as well, so a request is
//! read, forwarded, answered and sent back by one task.

use std::{
    fmt,
    future::{Future, poll_fn},
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::{
    body::Incoming,
    client::conn::http1::{Builder, Connection, SendRequest},
    upgrade::{OnUpgrade, Upgraded},
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::{Cause, Failure, cause_of, connect, pool::Pool};
use crate::{body::Outbound, endpoint::Picked};

/// A connection that can take a request.
#[derive(Debug)]
pub(crate) struct Http1 {
    send: SendRequest<Outbound>,
    driver: Driver,
    /// Nothing more comes; the driver must not be polled again.
    ended: bool,
}

#[allow(
    clippy::large_enum_variant,
    reason = "the large one is the usual one, and the whole is boxed"
)]
enum Driver {
    Plain(Connection<TokioIo<TcpStream>, Outbound>),
    /// For a request that wants to speak something else; hyper has no name for its type.
    Upgradeable(Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>),
}

/// The body of an answer, which drives the connection that it comes from and gives it back when it ends.
#[derive(Debug)]
pub(crate) struct Http1Body {
    body: Incoming,
    /// Boxed, as it is larger than all else that an answer has.
    connection: Option<Box<Http1>>,
    pool: Arc<Pool>,
    picked: Picked,
    /// All of it was read. A body in chunks does not say so itself.
    is_read: bool,
}

impl Http1 {
    /// A new connection to this address.
    pub(crate) async fn connect(
        address: SocketAddr,
        patience: Duration,
        is_upgrade: bool,
    ) -> Result<Self, Cause> {
        let stream = connect(address, patience).await?;
        let io = TokioIo::new(stream);
        let handshake = Builder::new()
            .max_buf_size(crate::replay::READ_BUFFER * 2)
            .handshake(io);
        let (send, driver) = handshake.await.map_err(|_| Cause::Broken)?;
        let driver = if is_upgrade {
            Driver::Upgradeable(Box::pin(driver.with_upgrades()))
        } else {
            Driver::Plain(driver)
        };
        Ok(Self {
            send,
            driver,
            ended: false,
        })
    }

    /// Whether it can take a request now: looks whether the other side has closed it or said something unasked.
    pub(crate) fn is_usable(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        !self.ended && self.send.is_ready()
    }

    /// Reads and writes what can be.
    fn drive(&mut self, context: &mut Context<'_>) {
        if !self.ended {
            self.ended = match &mut self.driver {
                Driver::Plain(driver) => Pin::new(driver).poll(context).is_ready(),
                Driver::Upgradeable(driver) => driver.as_mut().poll(context).is_ready(),
            };
        }
    }

    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<Outbound>,
    ) -> Result<Response<Incoming>, Failure> {
        let answer = self.send.try_send_request(request);
        let mut answer = std::pin::pin!(answer);
        // The answer is made by the driver, which is polled here, before each look at the answer: so the answer need
        // not wake anybody.
        let outcome = poll_fn(|context| {
            self.drive(context);
            if self.ended {
                return answer.as_mut().poll(context);
            }
            answer
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
        })
        .await;
        outcome.map_err(|mut error| Failure {
            cause: cause_of(error.error()),
            unsent: error.take_message().map(Box::new),
        })
    }

    /// What is left of the connection after an answer 101: bytes in both directions.
    pub(crate) async fn upgraded(
        mut self: Box<Self>,
        agreed: OnUpgrade,
    ) -> Result<Upgraded, hyper::Error> {
        let mut upgrade = std::pin::pin!(agreed);
        poll_fn(|context| {
            self.drive(context);
            upgrade.as_mut().poll(context)
        })
        .await
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Driver")
    }
}

impl Http1Body {
    pub(crate) fn new(
        body: Incoming,
        connection: Box<Http1>,
        pool: Arc<Pool>,
        picked: Picked,
    ) -> Self {
        Self {
            body,
            connection: Some(connection),
            pool,
            picked,
            is_read: false,
        }
    }

    /// Notes whether this is the last of it.
    fn note(&mut self, frame: Option<Result<Frame<Bytes>, hyper::Error>>) -> FramePoll {
        self.is_read = match &frame {
            None => true,
            Some(frame) => frame.as_ref().is_ok_and(Frame::is_trailers),
        };
        Poll::Ready(frame)
    }
}

type FramePoll = Poll<Option<Result<Frame<Bytes>, hyper::Error>>>;

impl Body for Http1Body {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> FramePoll {
        let this = &mut *self;
        // First a look at the body: it says that it wants more, and the driver then reads more.
        let mut unwoken = Context::from_waker(Waker::noop());
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(&mut unwoken) {
            return this.note(frame);
        }
        let Some(connection) = &mut this.connection else {
            return Poll::Ready(None);
        };
        connection.drive(context);
        let frame = if connection.ended {
            Pin::new(&mut this.body).poll_frame(context)
        } else {
            Pin::new(&mut this.body).poll_frame(&mut unwoken)
        };
        this.note(ready!(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Http1Body {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            // An answer that was not read to its end leaves its rest in the connection: no use to anybody.
            if !connection.ended && (self.is_read || self.body.is_end_stream()) {
                self.pool.put(self.picked.address(), connection);
            }
        }
    }
}
