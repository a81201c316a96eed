//! Where the data plane is tried: a [`Wire`] on loopback, backends that are led to by port, and notes of what they were
//! told.

use std::{
    collections::HashMap,
    fmt::Debug,
    future::Future,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use http::{HeaderValue, StatusCode};
use weir_lab::app::{App, Settings as AppSettings};
use weir_wire::{
    PoolLimits,
    answer::Answer,
    backend::{Backend, BackendName, Carried, End, Finished, Observer},
    client::Patience,
    hold::{Limits, Owner, Room},
    life::{Life, Open},
    listen::Wire,
    shard::{Arrival, Instead, Led, Settings, Site},
    sniff::Spoken,
    waiting::WaitingRoom,
};

use crate::client::Client;

/// After so long, what has not happened will not, also on a machine that stalls for seconds.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
/// What a test does not wait for: longer than its patience, or it could not tell the one from the other.
pub(crate) const NEVER: Duration = Duration::from_mins(10);

/// How the bed is made.
pub(crate) struct Plan {
    pub(crate) settings: Settings,
    pub(crate) limits: Limits,
}

/// A data plane with one backend to begin with.
pub(crate) struct Bed {
    pub(crate) wire: Arc<Wire>,
    pub(crate) room: Arc<WaitingRoom>,
    site: Arc<ByPort>,
    /// The one that is there from the beginning.
    pub(crate) main: Way,
}

/// A backend, and the port that leads to it.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) backend: Arc<Backend>,
    pub(crate) port: u16,
    pub(crate) notes: Arc<Notes>,
}

/// What a backend's observer was told.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    list: Mutex<Vec<Note>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    Waits(usize),
    FirstByte,
    Finished(u16),
    Refused(&'static str),
    Retried(&'static str),
    Carried(End),
    FallsSilent,
}

#[derive(Default)]
struct ByPort {
    backends: RwLock<HashMap<u16, (Arc<Backend>, Spoken)>>,
    turned_away: AtomicUsize,
}

/// Whose connections are turned away.
pub(crate) const UNWELCOME: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Requests for this path are no use.
pub(crate) const NO_USE: &str = "/healthz";

struct Writes(Arc<Notes>);

impl Default for Plan {
    fn default() -> Self {
        let room = Room {
            requests: 1000,
            bytes: 64 << 20,
        };
        Self {
            settings: Settings {
                shards: 2,
                max_connections: 1000,
                max_head: 64 * 1024,
                patience: Patience {
                    head: NEVER,
                    silent: NEVER,
                    idle: NEVER,
                },
                hold_time: NEVER,
                max_replay: 1 << 20,
                connect_time: Duration::from_secs(1),
                pool: PoolLimits {
                    idle: 100,
                    idle_per_endpoint: 20,
                    idle_for: NEVER,
                },
                http2: true,
                share_ports: false,
            },
            limits: Limits {
                total: room,
                each: room,
            },
        }
    }
}

impl Bed {
    /// One backend that sleeps, and nothing unusual.
    pub(crate) fn new() -> Self {
        Self::planned(|_| {})
    }

    /// The same with some things changed.
    pub(crate) fn planned(change: impl FnOnce(&mut Plan)) -> Self {
        let mut plan = Plan::default();
        change(&mut plan);
        let site = Arc::new(ByPort::default());
        let room = WaitingRoom::new(plan.limits);
        let life = Arc::new(Life::default());
        let address = [127, 0, 0, 1].into();
        let wire = Wire::start(address, plan.settings, Arc::clone(&site) as _, life).unwrap();
        let main = add(&wire, &room, &site, "main", 0);
        Self {
            wire,
            room,
            site,
            main,
        }
    }

    /// One backend with this endpoint.
    pub(crate) fn leading_to(endpoint: SocketAddr) -> Self {
        let bed = Self::new();
        bed.main.backend.set_endpoints(&[endpoint]);
        bed
    }

    /// Another backend that sleeps, with a port of its own.
    pub(crate) fn add(&self, name: &str, owner: u64) -> Way {
        add(&self.wire, &self.room, &self.site, name, owner)
    }

    /// Says what is spoken on the way to a backend; without a word it is HTTP.
    pub(crate) fn speaks(&self, way: &Way, spoken: Spoken) {
        let mut backends = self.site.backends.write().unwrap();
        let entry = (Arc::clone(&way.backend), spoken);
        backends.insert(way.port, entry);
    }

    /// How many connections were turned away.
    pub(crate) fn turned_away(&self) -> usize {
        self.site.turned_away.load(Ordering::Relaxed)
    }

    /// Waits until nothing is held any more: a place is given back a moment after its client was missed.
    pub(crate) async fn holds_nothing(&self, what: &str) {
        is_so(&format!("nothing is held: {what}"), || {
            let held = self.room.held();
            if held == Room::default() {
                Ok(())
            } else {
                Err(held)
            }
        })
        .await;
    }

    /// Waits until so many are open.
    pub(crate) async fn open(&self, what: Open, count: usize) {
        is_so(&format!("{count} {what:?} open"), || {
            let open = self.wire.life().count(what);
            if open == count { Ok(()) } else { Err(open) }
        })
        .await;
    }
}

fn add(wire: &Wire, room: &Arc<WaitingRoom>, site: &ByPort, name: &str, owner: u64) -> Way {
    let notes = Arc::new(Notes::default());
    let name = BackendName {
        display: name.into(),
        via: HeaderValue::try_from(format!("1.1 {name}.weir")).unwrap(),
        host: HeaderValue::try_from(format!("{name}.default")).unwrap(),
        owner: Owner(owner),
    };
    let observer = Box::new(Writes(Arc::clone(&notes)));
    let backend = Backend::new(name, Arc::clone(room), observer);
    // One that the kernel gives to nobody else, so that it can be closed and opened again. Another process of these tests may
    // be a moment faster.
    let port = (0..10).find_map(|_| wire.open(weir_lab::ports::free()).ok());
    let port = port.expect("a port that can be opened");
    let entry = (Arc::clone(&backend), Spoken::Http);
    site.backends.write().unwrap().insert(port, entry);
    Way {
        backend,
        port,
        notes,
    }
}

impl Way {
    pub(crate) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.address()).await
    }

    /// Waits until so many requests wait.
    pub(crate) async fn waiting(&self, count: usize) {
        is_so(&format!("{count} requests wait"), || {
            let state = self.backend.line_state();
            if state.waiting == count {
                Ok(())
            } else {
                Err(state)
            }
        })
        .await;
    }
}

impl Notes {
    pub(crate) fn all(&self) -> Vec<Note> {
        self.list.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, wanted: &Note) -> usize {
        self.all().iter().filter(|note| *note == wanted).count()
    }

    /// Waits until this was noted so often.
    pub(crate) async fn has(&self, wanted: &Note, times: usize) {
        is_so(&format!("{times} times {wanted:?}"), || {
            if self.count(wanted) == times {
                Ok(())
            } else {
                Err(self.all())
            }
        })
        .await;
    }

    fn add(&self, note: Note) {
        self.list.lock().unwrap().push(note);
    }
}

impl Site for ByPort {
    fn admits(&self, address: IpAddr) -> bool {
        address != UNWELCOME
    }

    fn turned_away(&self, peer: SocketAddr) {
        assert_eq!(peer.ip(), UNWELCOME);
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    fn identify(&self, arrival: &Arrival<'_>) -> Result<Led, Instead> {
        let backends = self.backends.read().unwrap();
        let found = backends.get(&arrival.port);
        found
            .map(|(backend, _)| Led {
                backend: Arc::clone(backend),
                is_use: arrival.head.uri.path() != NO_USE,
            })
            .ok_or_else(|| {
                let answer = Answer::new(StatusCode::NOT_FOUND, "unknown", "nobody is here");
                Instead::Answer(answer)
            })
    }

    fn speaks(&self, port: u16) -> Spoken {
        let backends = self.backends.read().unwrap();
        backends
            .get(&port)
            .map_or(Spoken::Http, |(_, spoken)| *spoken)
    }

    fn lead(&self, port: u16) -> Option<Led> {
        let backends = self.backends.read().unwrap();
        Some(Led {
            backend: Arc::clone(&backends.get(&port)?.0),
            is_use: true,
        })
    }
}

impl Observer for Writes {
    fn waits(&self, waiting: usize) {
        self.0.add(Note::Waits(waiting));
    }

    fn first_byte(&self, _: Duration) {
        self.0.add(Note::FirstByte);
    }

    fn finished(&self, finished: &Finished<'_>) {
        self.0.add(Note::Finished(finished.status.as_u16()));
    }

    fn refused(&self, reason: &'static str) {
        self.0.add(Note::Refused(reason));
    }

    fn retried(&self, reason: &'static str) {
        self.0.add(Note::Retried(reason));
    }

    fn falls_silent(&self) {
        self.0.add(Note::FallsSilent);
    }

    fn carried(&self, carried: &Carried) {
        self.0.add(Note::Carried(carried.end));
    }
}

/// Looks again and again until it is so.
pub(crate) async fn is_so<E: Debug>(what: &str, mut look: impl FnMut() -> Result<(), E>) {
    let deadline = Instant::now() + PATIENCE;
    while let Err(seen) = look() {
        assert!(
            Instant::now() < deadline,
            "not so in time: {what}; last seen: {seen:?}"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// What comes of this, which must be in time.
pub(crate) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    let outcome = tokio::time::timeout(PATIENCE, future).await;
    outcome.unwrap_or_else(|_| panic!("not in time: {what}"))
}

/// The server that does all that a server can do.
pub(crate) async fn app() -> App {
    App::start(AppSettings {
        tcp_listen: None,
        ..AppSettings::default()
    })
    .await
    .unwrap()
}
