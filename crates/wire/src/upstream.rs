//! The way to endpoints: connections, those that are kept for the next request, and what can go wrong on it.
//!
//! HTTP/1.1 connections are driven by the task of the request that uses them ([`http1`]), HTTP/2 connections by a task
//! of their own ([`http2`]), since many requests share one. Both kinds are kept per [`crate::shard::Shard`], so
//! nothing here is ever contended.

pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod pool;

use std::{io, net::SocketAddr, time::Duration};

use http::Request;
use tokio::{net::TcpStream, time::timeout};

use crate::{body::Outbound, relay};

/// Why an endpoint did not answer.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    /// The request, if nothing of it was sent.
    pub(crate) unsent: Option<Box<Request<Outbound>>>,
}

/// What went wrong, in words that metrics and answers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Nobody listens there.
    Refused,
    /// No connection in time.
    ConnectTimeout,
    /// No connection, for another reason.
    Unreachable,
    /// The connection ended before an answer came.
    Broken,
    /// What came was no HTTP.
    Garbled,
    /// The client's own body broke off.
    ClientGone,
}

impl Cause {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::ConnectTimeout => "connect_timeout",
            Self::Unreachable => "unreachable",
            Self::Broken => "broken",
            Self::Garbled => "garbled",
            Self::ClientGone => "client_gone",
        }
    }
}

/// A connection to this address.
pub(crate) async fn connect(address: SocketAddr, patience: Duration) -> Result<TcpStream, Cause> {
    let stream = match timeout(patience, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Err(Cause::Refused);
        }
        Ok(Err(_)) => return Err(Cause::Unreachable),
        Err(_) => return Err(Cause::ConnectTimeout),
    };
    // Without it small writes wait for the acknowledgement of the last. That it cannot be set costs only time.
    let _ = stream.set_nodelay(true);
    relay::keep_alive(&stream);
    Ok(stream)
}

/// What hyper's error means to us.
fn cause_of(error: &hyper::Error) -> Cause {
    if error.is_user() || error.is_body_write_aborted() {
        Cause::ClientGone
    } else if error.is_parse() {
        Cause::Garbled
    } else {
        Cause::Broken
    }
}
