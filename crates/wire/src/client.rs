//! Connections of clients: what is known of each, and the list of all, from which one that does nothing is closed when
//! the limit is reached or its time is up.
//!
//! hyper could time heads by itself, with a timer for each request; here one look a second at all connections does.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use http::HeaderValue;
use tokio::{io::Interest, net::TcpStream, sync::Notify};

use crate::{
    backend::Backend,
    life::{Life, Open},
    lock, sniff,
};

/// How long a connection may do nothing.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// From the first byte of a request's head to its last.
    pub head: Duration,
    /// Before the first request.
    pub silent: Duration,
    /// Between requests. Longer than clients and load balancers keep theirs, so that they close first.
    pub idle: Duration,
}

/// A connection of a client on which not a byte has come yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silent {
    /// Where it comes from; an IPv4 address that came as an IPv6 one is an IPv4 address again.
    pub peer: SocketAddr,
    /// The port that it came to.
    pub port: u16,
    /// How long it has been open.
    pub age: Duration,
}

/// One connection of a client.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    pub(crate) peer: SocketAddr,
    /// The client's address, as `X-Forwarded-For` has it.
    pub(crate) address: HeaderValue,
    /// The port that it came to.
    pub(crate) port: u16,
    /// Its source is one that is served.
    pub(crate) is_welcome: bool,
    life: Arc<Life>,
    born: Instant,
    /// Requests that are worked on: one at a time in HTTP/1.1, many in HTTP/2.
    busy: AtomicU32,
    /// Since when it does nothing or sends a head, in milliseconds since `born`. Where this begins with a request's head
    /// or end it is [`UNSEEN`], and set by the first look: the clock is not asked for each request.
    since: AtomicU64,
    /// Some of a request's head has come, but not all.
    in_head: AtomicBool,
    /// Bytes that come are not always a head there: pings, settings, windows.
    is_http2: AtomicBool,
    has_spoken: AtomicBool,
    /// Somebody wanted to know whether it is here.
    is_asked_for: AtomicBool,
    order: AtomicU8,
    ordered: Notify,
    /// Its socket, as long as that is open.
    stream: OnceLock<Weak<Mutex<TcpStream>>>,
}

/// What a connection is told from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// End when nothing is going on.
    Close,
    /// End at once.
    Abort,
}

const UNSEEN: u64 = u64::MAX;
const CLOSE: u8 = 1;
const ABORT: u8 = 2;

/// All connections of clients.
#[derive(Debug)]
pub(crate) struct Clients {
    limit: usize,
    patience: Patience,
    list: Mutex<List>,
    /// Tunnels that are still in the list.
    listed_tunnels: AtomicUsize,
    /// Connections whose source is not served, and that are not turned away yet.
    unwelcome: AtomicUsize,
}

#[derive(Debug, Default)]
struct List {
    slots: Vec<Option<Arc<ClientConnection>>>,
    free: Vec<usize>,
    /// Where the next search for one that does nothing begins.
    cursor: usize,
}

/// A connection's entry in the list, until it is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    clients: Arc<Clients>,
    slot: usize,
    pub(crate) connection: Arc<ClientConnection>,
}

/// A connection that is passed through, as others see it: one that does something, first as a request that waits, then as a
/// tunnel that stays in the list, since its client may not have said anything yet.
#[derive(Debug)]
pub(crate) struct Occupied {
    clients: Arc<Clients>,
    connection: Arc<ClientConnection>,
    backend: Arc<Backend>,
    counts_as: Open,
}

/// So many are looked at to find one that can be closed for another.
const LOOKS: usize = 64;
/// So many that are not welcome may be here at a time, each for some seconds at most: they must not take the places of others.
const UNWELCOME: usize = 256;

impl ClientConnection {
    fn new(peer: SocketAddr, port: u16, is_welcome: bool, life: Arc<Life>) -> Self {
        let ip = peer.ip().to_canonical();
        Self {
            peer,
            // Digits, dots, colons and hexadecimal letters are always valid.
            address: HeaderValue::try_from(ip.to_string())
                .unwrap_or_else(|_| HeaderValue::from_static("unknown")),
            port,
            is_welcome,
            life,
            born: Instant::now(),
            busy: AtomicU32::new(0),
            since: AtomicU64::new(0),
            in_head: AtomicBool::new(false),
            is_http2: AtomicBool::new(false),
            has_spoken: AtomicBool::new(false),
            is_asked_for: AtomicBool::new(false),
            order: AtomicU8::new(0),
            ordered: Notify::new(),
            stream: OnceLock::new(),
        }
    }

    pub(crate) fn speaks_through(&self, stream: &Arc<Mutex<TcpStream>>) {
        // Said once for each connection.
        let _ = self.stream.set(Arc::downgrade(stream));
    }

    /// Whether the client has closed its side. Usually that is read; but not while it has sent more than is wanted yet.
    fn has_hung_up(&self) -> bool {
        let Some(stream) = self.stream.get().and_then(Weak::upgrade) else {
            return false;
        };
        let stream = lock(&stream);
        let ready = std::pin::pin!(stream.ready(Interest::READABLE));
        let ready = ready.poll(&mut Context::from_waker(Waker::noop()));
        matches!(ready, Poll::Ready(Ok(ready)) if ready.is_read_closed())
    }

    pub(crate) fn request_begins(&self) {
        self.has_spoken.store(true, Ordering::Relaxed);
        self.in_head.store(false, Ordering::Relaxed);
        self.busy.fetch_add(1, Ordering::Relaxed);
        self.life.begins(Open::Request);
    }

    pub(crate) fn request_ends(&self) {
        self.since.store(UNSEEN, Ordering::Relaxed);
        self.busy.fetch_sub(1, Ordering::Relaxed);
        self.life.ends(Open::Request);
    }

    pub(crate) fn born(&self) -> Instant {
        self.born
    }

    /// How long it may be silent before that is taken for a client who waits for the server to speak.
    pub(crate) fn sniff_patience(&self) -> Duration {
        if self.is_asked_for.load(Ordering::Relaxed) {
            sniff::PATIENCE_WITH_PROBES
        } else {
            sniff::PATIENCE
        }
    }

    /// Bytes came on a connection that is passed through.
    pub(crate) fn has_said_something(&self) {
        if !self.has_spoken.load(Ordering::Relaxed) {
            self.has_spoken.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn speaks_http2(&self) {
        self.is_http2.store(true, Ordering::Relaxed);
        self.in_head.store(false, Ordering::Relaxed);
    }

    /// Bytes came.
    pub(crate) fn bytes_came(&self) {
        let is_known =
            self.in_head.load(Ordering::Relaxed) || self.is_http2.load(Ordering::Relaxed);
        if self.busy.load(Ordering::Relaxed) == 0 && !is_known {
            self.in_head.store(true, Ordering::Relaxed);
            self.since.store(UNSEEN, Ordering::Relaxed);
        }
    }

    /// Whether not a byte has come. Told from what is noted anyway: nothing is noted for this.
    pub(crate) fn is_silent(&self) -> bool {
        let notes = [&self.in_head, &self.has_spoken, &self.is_http2];
        notes.iter().all(|note| !note.load(Ordering::Relaxed))
    }

    /// For how long nothing is going on; none: something is.
    fn idle_for(&self) -> Option<Duration> {
        if self.busy.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let now = self.born.elapsed();
        let stamp = u64::try_from(now.as_millis()).unwrap_or(UNSEEN - 1);
        let since = self
            .since
            .compare_exchange(UNSEEN, stamp, Ordering::Relaxed, Ordering::Relaxed)
            .map_or_else(|since| since, |_| stamp);
        Some(now.saturating_sub(Duration::from_millis(since)))
    }

    pub(crate) fn order(&self, order: Order) {
        let order = match order {
            Order::Close => CLOSE,
            Order::Abort => ABORT,
        };
        if self.order.fetch_max(order, Ordering::Relaxed) < order {
            self.ordered.notify_one();
        }
    }

    /// Waits for an order.
    pub(crate) async fn ordered(&self) -> Order {
        self.ordered.notified().await;
        if self.order.load(Ordering::Relaxed) == ABORT {
            Order::Abort
        } else {
            Order::Close
        }
    }
}

impl Clients {
    pub(crate) fn new(limit: usize, patience: Patience) -> Arc<Self> {
        Arc::new(Self {
            limit,
            patience,
            list: Mutex::default(),
            listed_tunnels: AtomicUsize::new(0),
            unwelcome: AtomicUsize::new(0),
        })
    }

    /// Lists a new connection. At the limit, the one that has done nothing for longest (of some) is closed for it; if
    /// all do something there is no room. For one that is not welcome none is closed, and of those there are only a few.
    pub(crate) fn enter(
        self: &Arc<Self>,
        peer: SocketAddr,
        port: u16,
        is_welcome: bool,
        life: &Arc<Life>,
    ) -> Option<Entry> {
        let mut list = lock(&self.list);
        // Most tunnels have left the list, but not the house.
        let listed = list.slots.len() - list.free.len();
        let unlisted = life.count(Open::Tunnel);
        let unlisted = unlisted.saturating_sub(self.listed_tunnels.load(Ordering::Relaxed));
        let open = listed + unlisted;
        if !is_welcome && self.unwelcome.load(Ordering::Relaxed) >= UNWELCOME {
            return None;
        }
        if open >= self.limit && (!is_welcome || !list.close_one()) {
            return None;
        }
        if !is_welcome {
            self.unwelcome.fetch_add(1, Ordering::Relaxed);
        }
        let connection = ClientConnection::new(peer, port, is_welcome, Arc::clone(life));
        let connection = Arc::new(connection);
        let slot = list.free.pop().unwrap_or_else(|| {
            list.slots.push(None);
            list.slots.len() - 1
        });
        list.slots[slot] = Some(Arc::clone(&connection));
        life.begins(Open::Connection);
        Some(Entry {
            clients: Arc::clone(self),
            slot,
            connection,
        })
    }

    /// Ends connections whose time is up, and those whose client has gone.
    pub(crate) fn tidy(&self) {
        let list = lock(&self.list);
        for connection in list.slots.iter().flatten() {
            let Some(idle) = connection.idle_for() else {
                if connection.has_hung_up() {
                    connection.order(Order::Abort);
                }
                continue;
            };
            let patience = if connection.in_head.load(Ordering::Relaxed) {
                self.patience.head
            } else if connection.has_spoken.load(Ordering::Relaxed) {
                self.patience.idle
            } else {
                self.patience.silent
            };
            if idle > patience {
                connection.order(Order::Abort);
            }
        }
    }

    /// Those from this port of any address that have said nothing. Who asks has opened one of them to see whether it
    /// arrives, and it must not wake anybody: from now on they may be silent for longer.
    pub(crate) fn silent(&self, from_port: u16) -> Vec<Silent> {
        let list = lock(&self.list);
        let from_there = list.slots.iter().flatten();
        let silent = from_there
            .filter(|connection| connection.peer.port() == from_port && connection.is_silent());
        silent
            .map(|connection| {
                connection.is_asked_for.store(true, Ordering::Relaxed);
                Silent {
                    peer: SocketAddr::new(connection.peer.ip().to_canonical(), from_port),
                    port: connection.port,
                    age: connection.born.elapsed(),
                }
            })
            .collect()
    }

    /// Closes those that have done nothing for so long.
    pub(crate) fn close_idle(&self, idle_for: Duration) {
        let list = lock(&self.list);
        for connection in list.slots.iter().flatten() {
            if connection.idle_for().is_some_and(|idle| idle >= idle_for) {
                connection.order(Order::Close);
            }
        }
    }

    /// Ends all.
    pub(crate) fn abort_all(&self) {
        let list = lock(&self.list);
        for connection in list.slots.iter().flatten() {
            connection.order(Order::Abort);
        }
    }
}

impl List {
    fn close_one(&mut self) -> bool {
        let length = self.slots.len();
        let looked_at = (0..LOOKS.min(length)).map(|step| (self.cursor + step) % length);
        let idle = looked_at.filter_map(|slot| {
            let connection = self.slots[slot].as_ref()?;
            if connection.order.load(Ordering::Relaxed) == ABORT {
                return None;
            }
            Some((connection.idle_for()?, slot))
        });
        let longest = idle.max();
        self.cursor = (self.cursor + LOOKS) % length.max(1);
        if let Some((_, slot)) = longest
            && let Some(connection) = &self.slots[slot]
        {
            connection.order(Order::Abort);
        }
        longest.is_some()
    }
}

impl Occupied {
    pub(crate) fn new(
        clients: &Arc<Clients>,
        connection: &Arc<ClientConnection>,
        backend: &Arc<Backend>,
    ) -> Self {
        connection.busy.fetch_add(1, Ordering::Relaxed);
        connection.life.begins(Open::Request);
        backend.unconnected.fetch_add(1, Ordering::Relaxed);
        Self {
            clients: Arc::clone(clients),
            connection: Arc::clone(connection),
            backend: Arc::clone(backend),
            counts_as: Open::Request,
        }
    }

    /// It waits, or waits again.
    pub(crate) fn waits(&mut self) {
        self.count_as(Open::Request);
    }

    /// It is connected to an endpoint.
    pub(crate) fn is_tunnel(&mut self) {
        self.count_as(Open::Tunnel);
    }

    fn count_as(&mut self, what: Open) {
        let was = self.counts_as;
        if was == what {
            return;
        }
        self.counts_as = what;
        // In this order, so that it is never left out.
        self.connection.life.begins(what);
        let Backend {
            unconnected,
            tunnels,
            ..
        } = &*self.backend;
        if what == Open::Tunnel {
            self.clients.listed_tunnels.fetch_add(1, Ordering::Relaxed);
            tunnels.fetch_add(1, Ordering::Relaxed);
            unconnected.fetch_sub(1, Ordering::Relaxed);
        } else {
            self.clients.listed_tunnels.fetch_sub(1, Ordering::Relaxed);
            tunnels.fetch_sub(1, Ordering::Relaxed);
            unconnected.fetch_add(1, Ordering::Relaxed);
        }
        self.connection.life.ends(was);
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.count_as(Open::Request);
        self.backend.unconnected.fetch_sub(1, Ordering::Relaxed);
        self.connection.life.ends(Open::Request);
        self.connection.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut list = lock(&self.clients.list);
        list.slots[self.slot] = None;
        list.free.push(self.slot);
        drop(list);
        if !self.connection.is_welcome {
            self.clients.unwelcome.fetch_sub(1, Ordering::Relaxed);
        }
        self.connection.life.ends(Open::Connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_that_are_not_welcome_are_here_at_a_time_and_none_is_closed_for_them() {
        let minute = Duration::from_mins(1);
        let patience = Patience {
            head: minute,
            silent: minute,
            idle: minute,
        };
        let peer = "192.0.2.1:4000".parse().unwrap();
        let life = Arc::new(Life::default());
        let clients = Clients::new(UNWELCOME + 10, patience);
        let enter = |is_welcome| clients.enter(peer, 80, is_welcome, &life);
        let mut unwelcome: Vec<Entry> = (0..UNWELCOME).map(|_| enter(false).unwrap()).collect();
        assert!(enter(false).is_none());
        let mut welcome: Vec<Entry> = (0..10).map(|_| enter(true).unwrap()).collect();
        // Its place is given back, but all places are taken now.
        drop(unwelcome.pop());
        welcome.push(enter(true).unwrap());
        assert!(enter(false).is_none());
        let told = |entries: &[Entry]| {
            let orders = entries
                .iter()
                .map(|it| it.connection.order.load(Ordering::Relaxed));
            orders.filter(|order| *order == ABORT).count()
        };
        assert_eq!(
            (told(&unwelcome), told(&welcome)),
            (0, 0),
            "nobody is sent away for it"
        );
        drop(welcome);
        assert!(enter(false).is_some());
    }

    #[test]
    fn a_silent_client_has_one_address_however_it_came() {
        let minute = Duration::from_mins(1);
        let patience = Patience {
            head: minute,
            silent: minute,
            idle: minute,
        };
        let clients = Clients::new(10, patience);
        let life = Arc::new(Life::default());
        let entries = [
            "[::ffff:192.0.2.1]:4000",
            "192.0.2.2:4000",
            "[2001:db8::1]:4000",
        ]
        .map(|peer| {
            clients
                .enter(peer.parse().unwrap(), 80, true, &life)
                .unwrap()
        });
        let silent = || clients.silent(4000).into_iter();
        let peers: Vec<String> = silent().map(|one| one.peer.to_string()).collect();
        assert_eq!(
            peers,
            ["192.0.2.1:4000", "192.0.2.2:4000", "[2001:db8::1]:4000"]
        );
        entries[0].connection.bytes_came();
        assert_eq!(silent().count(), 2);
        drop(entries);
        assert_eq!(silent().count(), 0);
    }
}
