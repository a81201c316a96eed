//! Traffic for its own sake: bytes of no meaning that leave a node at a given rate, and somebody who takes them.
//!
//! [`Traffic`] sends over TCP or UDP, [`Sink`] receives and forgets. [`pace`] says when the next bytes may go. Unlike
//! [`crate::load`], which asks and counts answers, this fills a network interface, and wants nothing back.

pub mod pace;
mod sink;

use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::{
    io::AsyncWriteExt,
    net::{TcpStream, UdpSocket, lookup_host},
    task::JoinSet,
    time::{sleep, timeout},
};

use self::pace::{Pace, Rate};
pub use self::sink::Sink;

/// What fits a packet of Ethernet without being cut in pieces.
const DATAGRAM: usize = 1400;
/// The most that is written at once.
const LARGEST_WRITE: usize = 64 << 10;
/// After a connection broke.
const AGAIN: Duration = Duration::from_millis(500);
/// The most connections.
pub const MOST_CONNECTIONS: usize = 1000;

/// How bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Gives way to others on a full link.
    Tcp,
    /// Does not, and nobody hears of what is lost.
    Udp,
}

/// Traffic to be.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Host and port.
    pub to: String,
    /// How.
    pub over: Over,
    /// Of all connections together; none: as fast as it goes.
    pub rate: Option<Rate>,
    /// How many at once.
    pub connections: usize,
    /// How long; none: until it is dropped.
    pub duration: Option<Duration>,
}

impl Traffic {
    /// Sends until its time is over; returns how many bytes were given to the network.
    ///
    /// A receiver that is not there, or goes away, is tried again: in a cluster it may come later.
    pub async fn send(&self) -> io::Result<u64> {
        if self.connections == 0 || self.connections > MOST_CONNECTIONS {
            let why = format!("connections must be 1 to {MOST_CONNECTIONS}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let until = self.duration.map(|duration| Instant::now() + duration);
        let share = self.rate.map(|rate| rate.shared_by(self.connections));
        let mut all = JoinSet::new();
        for _ in 0..self.connections {
            let (to, over) = (self.to.clone(), self.over);
            all.spawn(async move {
                let mut sender = Sender {
                    pace: Pace::new(share),
                    sent: 0,
                };
                sender.send(&to, over, until).await;
                sender.sent
            });
        }
        let mut sent = 0;
        while let Some(one) = all.join_next().await {
            sent += one.map_err(io::Error::other)?;
        }
        Ok(sent)
    }
}

/// One connection, and what it sent.
struct Sender {
    pace: Pace,
    sent: u64,
}

impl Sender {
    async fn send(&mut self, to: &str, over: Over, until: Option<Instant>) {
        let is_over = || until.is_some_and(|until| Instant::now() >= until);
        while !is_over() {
            let sending = async {
                match over {
                    Over::Tcp => self.tcp(to).await,
                    Over::Udp => self.udp(to).await,
                }
            };
            // It only returns when it fails.
            let failed = match until {
                None => Some(sending.await),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    timeout(left, sending).await.ok()
                }
            };
            if failed.is_some() && !is_over() {
                sleep(AGAIN).await;
            }
        }
    }

    async fn tcp(&mut self, to: &str) -> io::Error {
        let mut stream = match TcpStream::connect(to).await {
            Ok(stream) => stream,
            Err(error) => return error,
        };
        let bytes = vec![0; self.pace.portion(LARGEST_WRITE)];
        loop {
            self.pace.wait(bytes.len()).await;
            let mut left = bytes.as_slice();
            while !left.is_empty() {
                match stream.write(left).await {
                    Ok(0) => return io::ErrorKind::WriteZero.into(),
                    Ok(written) => {
                        self.count(written);
                        left = left.get(written..).unwrap_or_default();
                    }
                    Err(error) => return error,
                }
            }
        }
    }

    async fn udp(&mut self, to: &str) -> io::Error {
        let socket = match connected(to).await {
            Ok(socket) => socket,
            Err(error) => return error,
        };
        let bytes = [0; DATAGRAM];
        let datagrams = self.pace.portion(LARGEST_WRITE) / DATAGRAM;
        loop {
            self.pace.wait(datagrams.max(1) * DATAGRAM).await;
            for _ in 0..datagrams.max(1) {
                match socket.send(&bytes).await {
                    Ok(written) => self.count(written),
                    // It was sent, and what came before it found nobody.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                    Err(error) => return error,
                }
            }
        }
    }

    fn count(&mut self, written: usize) {
        self.sent += u64::try_from(written).unwrap_or(u64::MAX);
    }
}

async fn connected(to: &str) -> io::Result<UdpSocket> {
    let address = lookup_host(to).await?.next();
    let address = address.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let own: SocketAddr = if address.is_ipv4() {
        ([0, 0, 0, 0], 0).into()
    } else {
        ([0_u16; 8], 0).into()
    };
    let socket = UdpSocket::bind(own).await?;
    socket.connect(address).await?;
    Ok(socket)
}
