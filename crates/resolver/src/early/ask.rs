//! One probe, as the kubelet would send it: a connection, and what is said on it.
//!
//! [`http`] and [`grpc`] speak; HTTPS is with whoever answers. Nothing is kept open, nothing is sent twice, and nothing takes longer
//! than it is given. A probe goes to the pod's own address and never through a Service, so that it wakes nobody.

mod grpc;
mod http;
#[cfg(test)]
mod tests;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;
use weir_role::tls::believing_anybody;

use super::machine::Outcome;
use crate::pod::Action;

/// Within a cluster a connection takes a millisecond; what takes longer than this was dropped on the way.
const CONNECT: Duration = Duration::from_millis(250);

/// Sends probes.
#[derive(Clone)]
pub struct Asker {
    tls: TlsConnector,
}

/// It is not as it should be; why does not matter.
#[derive(Debug)]
struct NotWell;

impl Default for Asker {
    fn default() -> Self {
        Self {
            tls: TlsConnector::from(Arc::new(believing_anybody())),
        }
    }
}

impl Asker {
    /// Asks, and says how it went.
    pub async fn ask(&self, address: SocketAddr, action: &Action, patience: Duration) -> Outcome {
        match timeout(patience, self.outcome(address, action)).await {
            Ok(outcome) => outcome,
            Err(_) => Outcome::Failed,
        }
    }

    async fn outcome(&self, address: SocketAddr, action: &Action) -> Outcome {
        let stream = match connect(address).await {
            Ok(stream) => stream,
            Err(outcome) => return outcome,
        };
        let spoken = match action {
            Action::Tcp => Ok(()),
            Action::Http { tls, path, headers } => {
                let tls = tls.then_some(&self.tls);
                http::get(stream, address, tls, path, headers).await
            }
            Action::Grpc { service } => grpc::check(stream, address, service).await,
        };
        match spoken {
            Ok(()) => Outcome::Succeeded,
            Err(NotWell) => Outcome::Failed,
        }
    }
}

async fn connect(address: SocketAddr) -> Result<TcpStream, Outcome> {
    match timeout(CONNECT, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => {
            // Without it costs only time.
            let _ = stream.set_nodelay(true);
            Ok(stream)
        }
        Ok(Err(error)) => Err(match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Outcome::Failed,
            _ => Outcome::Unreachable,
        }),
        Err(_) => Err(Outcome::Unreachable),
    }
}

impl From<hyper::Error> for NotWell {
    fn from(_: hyper::Error) -> Self {
        Self
    }
}

impl From<io::Error> for NotWell {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl From<::http::Error> for NotWell {
    fn from(_: ::http::Error) -> Self {
        Self
    }
}

/// Begins as the kubelet's does, by which many servers leave probes out of their logs.
const USER_AGENT: &str = concat!("kube-probe/weir-", env!("CARGO_PKG_VERSION"));
