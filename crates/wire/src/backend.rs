//! A backend: the endpoints that are ready, and the line of requests that wait for one.
//!
//! Whoever stands on this crate makes a [`Backend`] for each thing that requests can be sent to, tells it which
//! endpoints are ready, and is told through an [`Observer`] what happens.

use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use http::{HeaderValue, Method, StatusCode};
use tokio::sync::oneshot;

use crate::{
    endpoint::{Endpoints, Picked},
    hold::{LineId, LineState, Owner},
    sniff::Raw,
    upstream::{self, Cause},
    usage::{Meter, Usage},
    waiting::WaitingRoom,
    wake_times::WakeTimes,
};

/// What a backend is called, and whose limits its requests count against.
#[derive(Clone, Debug)]
pub struct BackendName {
    /// In answers of ours and in logs.
    pub display: Arc<str>,
    /// In the `Via` header of what is sent there, by which loops are found.
    pub via: HeaderValue,
    /// The Host of requests that came without one.
    pub host: HeaderValue,
    /// Whose limits count.
    pub owner: Owner,
}

/// Told of what happens at a backend. Called on the way of requests: must not block.
pub trait Observer: Send + Sync + 'static {
    /// A request waits, and no endpoint is ready; so many wait now. Called for each such request.
    fn waits(&self, waiting: usize);
    /// The first byte of a request that waited goes to an endpoint.
    fn first_byte(&self, waited: Duration);
    /// A request has been answered and the answer sent, or given up.
    fn finished(&self, finished: &Finished<'_>);
    /// A request could not be held.
    fn refused(&self, reason: &'static str);
    /// A request is tried again.
    fn retried(&self, reason: &'static str);
    /// An endpoint did not accept a connection in time, and accepted all before that; see [`Backend::silent`].
    fn falls_silent(&self) {}
    /// A connection that was passed through has ended, or could not be.
    fn carried(&self, carried: &Carried) {
        let _ = carried;
    }
}

/// How a request ended.
#[derive(Debug)]
pub struct Finished<'a> {
    /// Its method.
    pub method: &'a Method,
    /// The status that was answered.
    pub status: StatusCode,
    /// From its head to the end of its answer.
    pub took: Duration,
}

/// How a connection ended that was passed through: TLS, or what we do not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// What was spoken.
    pub protocol: Raw,
    /// How it ended.
    pub end: End,
    /// From its acceptance to its end.
    pub took: Duration,
    /// Bytes from the client to the endpoint.
    pub sent: u64,
    /// Bytes from the endpoint to the client.
    pub received: u64,
}

/// How a connection ended that was to be passed through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Both sides have said all.
    Done,
    /// One of the sides broke it off.
    Broken,
    /// The client went before an endpoint was there.
    ClientGone,
    /// It could not be held, or not for as long as it took; [`Observer::refused`] is told why.
    Refused,
    /// This process ends.
    Cut,
}

/// Something that requests are sent to.
pub struct Backend {
    /// What it is called.
    pub name: BackendName,
    line: LineId,
    endpoints: ArcSwap<Endpoints>,
    is_switched: AtomicBool,
    /// Whether some wait, so that those who come later wait behind them.
    pub(crate) has_line: AtomicBool,
    /// When the first of those that wait now began to, in milliseconds since [`Self::born`], plus one; 0: none.
    waits_since: AtomicU64,
    born: Instant,
    pub(crate) observer: Box<dyn Observer>,
    room: Arc<WaitingRoom>,
    pub(crate) wake_times: WakeTimes,
    /// Connections that are to be passed through and are not yet.
    pub(crate) unconnected: AtomicUsize,
    /// Connections that are passed through.
    pub(crate) tunnels: AtomicUsize,
    pub(crate) meter: Meter,
}

impl End {
    /// All there are.
    pub const ALL: [Self; 5] = [
        Self::Done,
        Self::Broken,
        Self::ClientGone,
        Self::Refused,
        Self::Cut,
    ];

    /// In logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Broken => "broken",
            Self::ClientGone => "client_gone",
            Self::Refused => "refused",
            Self::Cut => "cut",
        }
    }
}

impl Backend {
    /// A backend without endpoints.
    pub fn new(
        name: BackendName,
        room: Arc<WaitingRoom>,
        observer: Box<dyn Observer>,
    ) -> Arc<Self> {
        let line = room.new_line(name.owner);
        Arc::new(Self {
            name,
            line,
            endpoints: ArcSwap::default(),
            is_switched: AtomicBool::new(false),
            has_line: AtomicBool::new(false),
            waits_since: AtomicU64::new(0),
            born: Instant::now(),
            observer,
            room,
            wake_times: WakeTimes::default(),
            unconnected: AtomicUsize::new(0),
            tunnels: AtomicUsize::new(0),
            meter: Meter::default(),
        })
    }

    /// Says which endpoints are ready now. What waits is released to them.
    pub fn set_endpoints(&self, addresses: &[SocketAddr]) {
        let before = self.endpoints.load();
        let was_empty = before.is_empty();
        let now = Arc::new(Endpoints::new(addresses, &before));
        self.endpoints.store(now);
        if was_empty && !addresses.is_empty() {
            let since = self.waits_since.swap(0, Ordering::Relaxed);
            if since != 0 {
                let began = self.born + Duration::from_millis(since - 1);
                self.wake_times.add(began.elapsed());
            }
        }
        self.room.set_endpoints(self, addresses.len());
    }

    /// Says whether clients should go elsewhere: their connections are closed with the next answer.
    pub fn set_switched(&self, is_switched: bool) {
        self.is_switched.store(is_switched, Ordering::Relaxed);
    }

    /// Whether clients should go elsewhere.
    pub fn is_switched(&self) -> bool {
        self.is_switched.load(Ordering::Relaxed)
    }

    /// Whether any endpoint is ready.
    pub fn is_ready(&self) -> bool {
        !self.endpoints.load().is_empty()
    }

    /// The addresses that are ready.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.endpoints.load().addresses().collect()
    }

    /// What waits here.
    pub fn line_state(&self) -> LineState {
        self.room.line(self.line)
    }

    /// Connections that wait here to be passed through; each is one of those in [`Self::line_state`], but for those whose
    /// endpoint is just being connected to.
    pub fn unconnected(&self) -> usize {
        self.unconnected.load(Ordering::Relaxed)
    }

    /// Connections that are passed through, of what does not speak HTTP.
    pub fn tunnels(&self) -> usize {
        self.tunnels.load(Ordering::Relaxed)
    }

    /// How much it is used, by what counts as use.
    pub fn usage(&self) -> Usage {
        self.meter.read()
    }

    /// For how long the oldest has waited for the first endpoint.
    pub fn waits_for(&self) -> Option<Duration> {
        match self.waits_since.load(Ordering::Relaxed) {
            0 => None,
            since => Some((self.born + Duration::from_millis(since - 1)).elapsed()),
        }
    }

    /// Endpoints that accept no connection in time, each with how long it has been so without one that went through. What is
    /// known of an endpoint goes with it.
    pub fn silent(&self) -> Vec<(SocketAddr, Duration)> {
        self.endpoints.load().silent().collect()
    }

    /// Connects once to an endpoint that may be silent, and says nothing there. What comes of it counts as with any other
    /// connection: who has no requests for it any more learns so whether it can be reached again.
    pub async fn try_again(&self, address: SocketAddr, patience: Duration) {
        let endpoint = self.endpoints.load().at(address).map(Arc::clone);
        let Some(endpoint) = endpoint else { return };
        match upstream::connect(address, patience).await {
            Ok(_) | Err(Cause::Refused) => endpoint.is_reached(),
            Err(_) => {}
        }
    }

    /// It is no more. What waits is answered so.
    pub fn close(&self) {
        self.room.close_line(self);
    }

    /// A request or a connection came to nothing at this endpoint.
    pub(crate) fn failed(&self, picked: &Picked, cause: Cause) {
        picked.fails();
        match cause {
            Cause::ConnectTimeout if picked.endpoint().is_silent() => self.observer.falls_silent(),
            Cause::Refused => picked.endpoint().is_reached(),
            _ => {}
        }
    }

    /// An endpoint for a request that need not wait.
    pub(crate) fn pick_unless_others_wait(&self) -> Option<Picked> {
        if self.has_line.load(Ordering::Relaxed) {
            return None;
        }
        self.pick()
    }

    /// An endpoint for a request whose turn it is.
    pub(crate) fn pick(&self) -> Option<Picked> {
        self.endpoints.load().pick()
    }

    pub(crate) fn line(&self) -> LineId {
        self.line
    }

    pub(crate) fn room(&self) -> &Arc<WaitingRoom> {
        &self.room
    }

    /// A request begins to wait.
    pub(crate) fn begins_to_wait(&self) {
        if self.is_ready() {
            return;
        }
        let now = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1;
        let _ = self
            .waits_since
            .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        self.observer.waits(self.line_state().waiting);
    }

    /// The last of those that waited has gone: the next wake begins with the next request.
    pub(crate) fn nobody_waits(&self) {
        self.waits_since.store(0, Ordering::Relaxed);
    }

    /// Seconds after which it is worth to come again.
    pub(crate) fn retry_after(&self) -> u64 {
        let waited = self.waits_for().unwrap_or_default();
        self.wake_times.retry_after(waited, self.is_ready())
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Backend")
            .field("name", &self.name.display)
            .field("endpoints", &self.addresses())
            .finish_non_exhaustive()
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.room.forget_line(self.line);
    }
}

/// Tells a waiting request that it may go; dropped without a word when the backend is no more.
pub(crate) type Go = oneshot::Sender<()>;
