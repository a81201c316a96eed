//! A server to which no connection goes through until it is told to hear, as behind a policy of the network that drops what
//! comes.
//!
//! On loopback nothing is dropped but for one case: of a listener whose queue is full Linux drops what comes, for as long as it
//! is full. The queue here has one place, and several wait for it: it is never free before somebody accepts.

use std::{
    future::pending,
    io,
    net::{Ipv4Addr, SocketAddr},
};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    task::JoinSet,
};

/// Enough to wait for a queue with one place.
const WAIT: usize = 3;

/// It, until it hears.
#[derive(Debug)]
pub struct Deaf {
    /// Where it listens.
    pub address: SocketAddr,
    listener: TcpListener,
    /// Keep the queue full.
    fillers: JoinSet<io::Result<TcpStream>>,
}

impl Deaf {
    /// On a free port of loopback.
    pub async fn start() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let listener = socket.listen(0)?;
        let address = listener.local_addr()?;
        let first = TcpStream::connect(address).await?;
        let mut fillers = JoinSet::new();
        fillers.spawn(async move {
            let () = pending().await;
            Ok(first)
        });
        for _ in 0..WAIT {
            fillers.spawn(TcpStream::connect(address));
        }
        Ok(Self {
            address,
            listener,
            fillers,
        })
    }

    /// From now on whoever connects can be accepted; at first come some who have gone already.
    pub fn hear(self) -> TcpListener {
        drop(self.fillers);
        self.listener
    }
}
