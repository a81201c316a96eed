//! The silent connection through a Service, by which a cut-over is seen to work.
//!
//! It goes the way of any client's, says nothing, and is closed; a resolver that has accepted it reports it when asked
//! ([`Resolvers::saw`]). Nobody is woken by it, and to a pod it looks like a health check.

#[cfg(test)]
mod tests;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{
    net::{TcpSocket, TcpStream},
    time::{sleep, timeout},
};

use crate::resolvers::Resolvers;

/// So many at once: each may land on a pod.
const CONNECTIONS: usize = 8;
/// All of it takes no longer.
const PATIENCE: Duration = Duration::from_millis(550);
/// A connection may be made before the resolver has come to accept it, and so is asked for more than once.
const QUESTIONS: usize = 3;
/// Between two such questions.
const PAUSE: Duration = Duration::from_millis(100);

/// Opens silent connections to a port of a Service, by one of its cluster IPs, and says which resolver one of them reached.
///
/// While pods are endpoints as well, all may land on pods: then nobody is named, and the caller tries again.
pub async fn probe(resolvers: &Resolvers, to: SocketAddr) -> Option<IpAddr> {
    let attempts = (0..CONNECTIONS).map(|_| attempt(resolvers, to));
    let mut attempts: FuturesUnordered<_> = attempts.collect();
    let first_seen = async {
        while let Some(seen) = attempts.next().await {
            if seen.is_some() {
                return seen;
            }
        }
        None
    };
    timeout(PATIENCE, first_seen).await.unwrap_or(None)
}

/// One connection, open for as long as this is polled.
async fn attempt(resolvers: &Resolvers, to: SocketAddr) -> Option<IpAddr> {
    let connection = connect(to).await.ok()?;
    let from = connection.local_addr().ok()?;
    for question in 0..QUESTIONS {
        if question > 0 {
            sleep(PAUSE).await;
        }
        let seen = resolvers.saw(from).await;
        if seen.is_some() {
            return seen;
        }
    }
    None
}

/// From a port that no other connection has. Left to itself, the system gives the same port to connections that go to
/// different places; another probe's could then be taken for this one's.
async fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let (socket, any) = match to {
        SocketAddr::V4(_) => (TcpSocket::new_v4()?, Ipv4Addr::UNSPECIFIED.into()),
        SocketAddr::V6(_) => (TcpSocket::new_v6()?, Ipv6Addr::UNSPECIFIED.into()),
    };
    socket.bind(SocketAddr::new(any, 0))?;
    socket.connect(to).await
}
