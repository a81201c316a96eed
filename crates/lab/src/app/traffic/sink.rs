//! Takes what [`super::Traffic`] sends, over TCP and UDP on one port, and forgets all but how much it was.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream, UdpSocket},
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
};

use super::MOST_CONNECTIONS;

const BUFFER: usize = 64 << 10;

/// A receiver that runs until it is dropped.
pub struct Sink {
    address: SocketAddr,
    received: Arc<AtomicU64>,
    work: JoinHandle<()>,
}

impl Sink {
    /// Starts it; returns once it listens. Port 0 takes any that is free.
    pub async fn start(listen: SocketAddr) -> io::Result<Self> {
        let tcp = TcpListener::bind(listen).await?;
        let address = tcp.local_addr()?;
        let udp = UdpSocket::bind(address).await?;
        let received = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&received);
        let work = tokio::spawn(async move {
            tokio::join!(streams(tcp, &count), datagrams(udp, &count));
        });
        Ok(Self {
            address,
            received,
            work,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many bytes have come.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.work.abort();
    }
}

async fn streams(listener: TcpListener, count: &Arc<AtomicU64>) {
    // Others wait until one ends.
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut all = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        // A connection that broke before it was taken is nobody's.
        if let Ok((stream, _)) = listener.accept().await {
            let count = Arc::clone(count);
            all.spawn(async move {
                stream_ends(stream, &count).await;
                drop(place);
            });
        }
        while all.try_join_next().is_some() {}
    }
}

async fn stream_ends(mut stream: TcpStream, count: &AtomicU64) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(read) = stream.read(&mut buffer).await {
        if read == 0 {
            return;
        }
        add(count, read);
    }
}

async fn datagrams(socket: UdpSocket, count: &AtomicU64) {
    let mut buffer = vec![0; BUFFER];
    loop {
        if let Ok(read) = socket.recv(&mut buffer).await {
            add(count, read);
        }
    }
}

fn add(count: &AtomicU64, read: usize) {
    count.fetch_add(u64::try_from(read).unwrap_or(u64::MAX), Ordering::Relaxed);
}
