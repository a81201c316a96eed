//! A shard: one thread that serves connections, with its own connections to endpoints.
//!
//! Each has a single-threaded runtime, and a connection stays with the shard that it was given to; so a request is
//! never handed from thread to thread. What shards share is looked at once for each request or less.

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use http::{StatusCode, request};
use tokio::{runtime, sync::mpsc, time::MissedTickBehavior};

use crate::{
    answer::Answer,
    backend::Backend,
    client::{Clients, Entry, Patience},
    connection,
    life::Life,
    sniff::Spoken,
    upstream::{
        http2::Http2Pool,
        pool::{Pool, PoolLimits},
    },
};

/// How the data plane behaves.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Threads that serve.
    pub shards: usize,
    /// Connections of clients, at most.
    pub max_connections: usize,
    /// The longest head of a request, in bytes.
    pub max_head: usize,
    /// How long clients may do nothing.
    pub patience: Patience,
    /// How long a request waits, at most.
    pub hold_time: Duration,
    /// How much of a waiting request's body is read, at most.
    pub max_replay: usize,
    /// How long a connection to an endpoint may take.
    pub connect_time: Duration,
    /// What is kept for the next requests.
    pub pool: PoolLimits,
    /// Whether HTTP/2 is spoken.
    pub http2: bool,
    /// Whether other processes of the same user may listen on the same ports; connections are then dealt out.
    pub share_ports: bool,
}

/// Who knows what a request is for.
pub trait Site: Send + Sync + 'static {
    /// Says what this request is for, or what to answer.
    fn identify(&self, arrival: &Arrival<'_>) -> Result<Led, Instead>;

    /// Whether connections from this address are served; an IPv4 address is one, in whatever form it came. One that is not may
    /// be silent for a moment, as who only looks whether it arrives is. With its first byte, or when that time is up, it is
    /// turned away: nothing of it is held, and it wakes nobody.
    fn admits(&self, address: IpAddr) -> bool {
        let _ = address;
        true
    }

    /// A connection from there is turned away.
    fn turned_away(&self, peer: SocketAddr) {
        let _ = peer;
    }

    /// Says what is spoken on this port.
    fn speaks(&self, port: u16) -> Spoken {
        let _ = port;
        Spoken::Http
    }

    /// Says what a connection to this port is for that does not speak HTTP. None: for nobody, and it is closed.
    fn lead(&self, port: u16) -> Option<Led> {
        let _ = port;
        None
    }
}

/// A request that has come.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// The port that it came to.
    pub port: u16,
    /// Where it came from.
    pub peer: SocketAddr,
    /// Its head.
    pub head: &'a request::Parts,
}

/// Whom a request or a connection is for.
#[derive(Debug)]
pub struct Led {
    /// This one.
    pub backend: Arc<Backend>,
    /// It counts as use; see [`Backend::usage`].
    pub is_use: bool,
}

/// What is answered instead of forwarding.
#[derive(Debug)]
pub enum Instead {
    /// This, in the form that the client understands.
    Answer(Answer),
    /// Exactly this.
    Fixed(StatusCode, Bytes),
}

/// What all shards share.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) site: Arc<dyn Site>,
    pub(crate) life: Arc<Life>,
    pub(crate) clients: Arc<Clients>,
}

/// One thread's share of the work.
pub(crate) struct Shard {
    pub(crate) shared: Arc<Shared>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) http2: Http2Pool,
}

/// All shards.
pub(crate) struct Shards {
    shards: Vec<mpsc::Sender<(TcpStream, Entry)>>,
    turn: AtomicUsize,
}

/// Connections that wait to be taken by a shard.
const BACKLOG: usize = 1024;

impl Shards {
    /// Starts the threads. They end when this is dropped and their last connection has.
    pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<Self> {
        let idle = Arc::new(AtomicUsize::new(0));
        let count = shared.settings.shards.max(1);
        let mut shards = Vec::with_capacity(count);
        for number in 0..count {
            let (sender, receiver) = mpsc::channel(BACKLOG);
            let runtime = runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let this_one = Arc::new(Shard {
                shared: Arc::clone(shared),
                pool: Pool::new(shared.settings.pool, Arc::clone(&idle)),
                http2: Http2Pool::new(shared.settings.pool.idle_for),
            });
            thread::Builder::new()
                .name(format!("shard-{number}"))
                .spawn(move || runtime.block_on(run(this_one, receiver)))?;
            shards.push(sender);
        }
        Ok(Self {
            shards,
            turn: AtomicUsize::new(0),
        })
    }

    /// Gives a connection to one of them.
    pub(crate) async fn give(&self, stream: TcpStream, entry: Entry) {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        if let Some(shard) = self.shards.get(turn % self.shards.len()) {
            // A thread that has ended cannot be; should it all the same, the connection is closed.
            let _ = shard.send((stream, entry)).await;
        }
    }
}

async fn run(shard: Arc<Shard>, mut connections: mpsc::Receiver<(TcpStream, Entry)>) {
    let mut tidy = tokio::time::interval(Duration::from_secs(1));
    tidy.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            connection = connections.recv() => {
                let Some((stream, entry)) = connection else { break };
                tokio::spawn(connection::serve(Arc::clone(&shard), stream, entry));
            }
            _ = tidy.tick() => {
                shard.pool.tidy();
                shard.http2.tidy();
                shard.shared.clients.tidy();
            }
        }
    }
    shard.shared.life.nothing_is_open().await;
}
