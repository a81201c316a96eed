//! The ports that clients come to: opened and closed at any time, without touching connections that are there.

use std::{
    collections::HashMap,
    io::{self, Write},
    net::{IpAddr, SocketAddr, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use crate::{
    client::{Clients, Silent},
    life::{Life, Stage},
    lock, relay,
    shard::{Settings, Shards, Shared, Site},
    sniff::Spoken,
};

/// The data plane: ports, and the threads that serve what comes to them.
pub struct Wire {
    address: IpAddr,
    shared: Arc<Shared>,
    shards: Arc<Shards>,
    open: Mutex<HashMap<u16, Port>>,
    /// Grows with each port that is opened or closed.
    changes: AtomicU64,
}

struct Port {
    close: oneshot::Sender<()>,
    accepting: JoinHandle<()>,
}

/// Connections that may wait to be accepted; more than any client needs, and Linux' own limit applies.
const BACKLOG: i32 = 4096;
/// How long to wait when no more files can be opened.
const OUT_OF_FILES: Duration = Duration::from_millis(50);

/// What is said to one that comes when all connections are taken.
const NO_ROOM: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
    retry-after: 1\r\nconnection: close\r\ncontent-length: 67\r\n\r\n\
    {\"error\":\"all connections are taken\",\"reason\":\"full_connections\"}\n\n";

impl Wire {
    /// Starts the threads; no port is open yet.
    pub fn start(
        address: IpAddr,
        settings: Settings,
        site: Arc<dyn Site>,
        life: Arc<Life>,
    ) -> io::Result<Arc<Self>> {
        let shared = Arc::new(Shared {
            settings,
            site,
            life,
            clients: Clients::new(settings.max_connections, settings.patience),
        });
        let shards = Arc::new(Shards::start(&shared)?);
        Ok(Arc::new(Self {
            address,
            shared,
            shards,
            open: Mutex::default(),
            changes: AtomicU64::new(0),
        }))
    }

    /// Opens a port, and says which it is, should it be 0. One that is open stays so.
    pub fn open(&self, port: u16) -> io::Result<u16> {
        let mut open = lock(&self.open);
        if open.contains_key(&port) {
            return Ok(port);
        }
        let address = SocketAddr::new(self.address, port);
        let listener = listen(address, self.shared.settings.share_ports)?;
        let port = listener.local_addr()?.port();
        let (close, closed) = oneshot::channel();
        let accepting = tokio::spawn(accept(
            listener,
            port,
            Arc::clone(&self.shared),
            Arc::clone(&self.shards),
            closed,
        ));
        open.insert(port, Port { close, accepting });
        self.changes.fetch_add(1, Ordering::Release);
        Ok(port)
    }

    /// Closes a port when what had come to it is taken. Connections go on.
    pub fn close(&self, port: u16) {
        if let Some(port) = lock(&self.open).remove(&port) {
            self.changes.fetch_add(1, Ordering::Release);
            // The task has ended by itself: as good.
            let _ = port.close.send(());
        }
    }

    /// The ports that are open.
    pub fn ports(&self) -> Vec<u16> {
        lock(&self.open).keys().copied().collect()
    }

    /// A number that grows whenever [`Wire::ports`] changes. Read it first, and the ports are at least as new.
    pub fn port_changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The clients' connections from this port of any address on which not a byte has come yet.
    pub fn silent(&self, from_port: u16) -> Vec<Silent> {
        self.shared.clients.silent(from_port)
    }

    /// The life of the process as connections see it.
    pub fn life(&self) -> &Arc<Life> {
        &self.shared.life
    }

    /// Leaves in order. Answers ask clients to move on at once; `still_coming` later no more connections are taken;
    /// `limit` after the beginning, what still waits is refused and the rest cut. Returns when nothing is open.
    pub async fn leave(&self, still_coming: Duration, limit: Duration) {
        let life = Arc::clone(&self.shared.life);
        life.advance(Stage::Leaving);
        let orderly = async {
            tokio::time::sleep(still_coming).await;
            self.close_all().await;
            life.advance(Stage::Closing);
            // A client that uses its connection is told with its next answer. One that has not for a while is
            // unlikely to do so just now; closed under a request, that request would be lost.
            let mut look = tokio::time::interval(Duration::from_millis(200));
            loop {
                self.shared
                    .clients
                    .close_idle(still_coming.max(Duration::from_secs(1)));
                tokio::select! {
                    () = life.nothing_is_open() => return,
                    _ = look.tick() => {}
                }
            }
        };
        if tokio::time::timeout(limit, orderly).await.is_ok() {
            return;
        }
        life.advance(Stage::Refusing);
        self.close_all().await;
        let last_words = Duration::from_secs(2);
        if tokio::time::timeout(last_words, life.nothing_is_open())
            .await
            .is_err()
        {
            self.shared.clients.abort_all();
            let _ = tokio::time::timeout(last_words, life.nothing_is_open()).await;
        }
    }

    async fn close_all(&self) {
        let ports: Vec<Port> = lock(&self.open).drain().map(|(_, port)| port).collect();
        self.changes.fetch_add(1, Ordering::Release);
        for port in ports {
            let _ = port.close.send(());
            let _ = port.accepting.await;
        }
    }
}

fn listen(address: SocketAddr, is_shared: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        // `::` takes IPv4 as well.
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    if is_shared {
        socket.set_reuse_port(true)?;
    }
    socket.set_nonblocking(true)?;
    // A client that vanishes would otherwise keep what it has open, and its target awake, for ever.
    relay::keep_alive(&socket);
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

async fn accept(
    listener: TcpListener,
    port: u16,
    shared: Arc<Shared>,
    shards: Arc<Shards>,
    mut closed: oneshot::Receiver<()>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut closed => break,
        };
        match accepted.and_then(|(stream, peer)| Ok((stream.into_std()?, peer))) {
            Ok((stream, peer)) => take(stream, peer, port, &shared, &shards).await,
            Err(error) if is_out_of_files(&error) => {
                tracing::warn!(%error, port, "no more connections can be taken; raise the limit of open files");
                tokio::time::sleep(OUT_OF_FILES).await;
            }
            // The client has gone already.
            Err(_) => {}
        }
    }
    // Those that were connected by the kernel before the port closes would be cut. The runtime may not have heard of them
    // yet, so the kernel is asked.
    let Ok(listener) = listener.into_std() else {
        return;
    };
    for _ in 0..BACKLOG {
        match listener.accept() {
            Ok((stream, peer)) => {
                if stream.set_nonblocking(true).is_ok() {
                    take(stream, peer, port, &shared, &shards).await;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => return,
        }
    }
}

async fn take(
    mut stream: TcpStream,
    peer: SocketAddr,
    port: u16,
    shared: &Shared,
    shards: &Shards,
) {
    let is_welcome = shared.site.admits(peer.ip().to_canonical());
    if let Some(entry) = shared.clients.enter(peer, port, is_welcome, &shared.life) {
        shards.give(stream, entry).await;
    } else if !is_welcome {
        shared.site.turned_away(peer);
        relay::reset(&stream);
    } else if matches!(shared.site.speaks(port), Spoken::Tls | Spoken::Tcp) {
        // No words that it would understand.
        relay::reset(&stream);
    } else {
        // Best effort: what does not fit into the socket's buffer is not worth waiting for.
        let _ = stream.write(NO_ROOM);
    }
}

fn is_out_of_files(error: &io::Error) -> bool {
    const EMFILE: i32 = 24;
    const ENFILE: i32 = 23;
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use socket2::SockRef;

    use super::*;

    #[tokio::test]
    async fn who_is_accepted_is_asked_whether_it_is_there_still() {
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into(), false).unwrap();
        let address = listener.local_addr().unwrap();
        let (client, accepted) =
            tokio::join!(tokio::net::TcpStream::connect(address), listener.accept(),);
        let (accepted, _) = accepted.unwrap();
        assert!(SockRef::from(&accepted).keepalive().unwrap());
        let after = SockRef::from(&accepted).tcp_keepalive_time().unwrap();
        assert_eq!(after.as_secs(), 60);
        drop(client);
    }
}
