//! Probes through something like a Service: a port whose connections are dealt out to pods and a resolver.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use tokio::{
    io::AsyncReadExt,
    net::TcpListener,
    task::{JoinHandle, JoinSet},
};

use super::*;
use crate::resolvers::tests::{
    Following,
    stand_in::{StandIn, beside_each_other},
};

const LONG: Duration = Duration::from_mins(1);

/// A Service with some pods.
struct Service {
    address: SocketAddr,
    log: Arc<Log>,
    dealing: JoinHandle<()>,
}

#[derive(Default)]
struct Log {
    came: AtomicUsize,
    ended: AtomicUsize,
    bytes: AtomicUsize,
    peers: Mutex<HashSet<SocketAddr>>,
}

impl Service {
    /// What to do with each connection, by its number.
    async fn start(deal: impl Fn(usize, SocketAddr) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Log::default());
        let notes = Arc::clone(&log);
        let dealing = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (mut stream, peer) = listener.accept().await.unwrap();
                deal(notes.came.fetch_add(1, Ordering::Relaxed), peer);
                notes.peers.lock().unwrap().insert(peer);
                let notes = Arc::clone(&notes);
                connections.spawn(async move {
                    let mut said = Vec::new();
                    let _ = stream.read_to_end(&mut said).await;
                    notes.bytes.fetch_add(said.len(), Ordering::Relaxed);
                    notes.ended.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        Self {
            address,
            log,
            dealing,
        }
    }

    /// Waits until all that came have gone, and says how many those were.
    async fn left_alone(&self) -> usize {
        let deadline = Instant::now() + LONG;
        loop {
            let came = self.log.came.load(Ordering::Relaxed);
            if came > 0 && self.log.ended.load(Ordering::Relaxed) == came {
                return came;
            }
            assert!(Instant::now() < deadline, "connections are still open");
            sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.dealing.abort();
    }
}

async fn one_resolver() -> (StandIn, Following) {
    let [resolver, _] = beside_each_other().await;
    let following = Following::start(resolver.port);
    following.place(&[resolver.address]).await;
    following.ready(1).await;
    (resolver, following)
}

/// As the caller does: again, until it is seen.
async fn until_seen(following: &Following, to: SocketAddr) -> IpAddr {
    let again = async {
        loop {
            if let Some(seen) = probe(&following.resolvers, to).await {
                return seen;
            }
        }
    };
    let seen = timeout(LONG, again).await;
    seen.expect("it is seen")
}

#[tokio::test]
async fn a_connection_in_many_that_reaches_a_resolver_is_enough() {
    let (resolver, following) = one_resolver().await;
    let address = resolver.address;
    let service = Service::start(move |number, peer| {
        if number % 11 == 10 {
            resolver.accepts(peer);
        }
    })
    .await;
    let seen = until_seen(&following, service.address).await;
    assert_eq!(seen, address);
    let came = service.left_alone().await;
    assert!(came > CONNECTIONS, "the eleventh was the first to be seen");
    assert_eq!(
        service.log.bytes.load(Ordering::Relaxed),
        0,
        "all were silent"
    );
    let peers = service.log.peers.lock().unwrap();
    assert_eq!(peers.len(), came, "each from a port of its own");
}

#[tokio::test]
async fn a_resolver_that_accepts_a_little_later_is_asked_again() {
    let (resolver, following) = one_resolver().await;
    let address = resolver.address;
    let service = Service::start(move |_, peer| resolver.accepts_late(peer)).await;
    assert_eq!(until_seen(&following, service.address).await, address);
    service.left_alone().await;
}

#[tokio::test]
async fn nobody_is_named_who_did_not_see_it() {
    let (_resolver, following) = one_resolver().await;
    let service = Service::start(|_, _| {}).await;
    assert_eq!(probe(&following.resolvers, service.address).await, None);
    assert!(service.left_alone().await <= CONNECTIONS);
    let closed = service.address;
    drop(service);
    let refuses = SocketAddr::from(([127, 0, 0, 1], weir_lab::ports::free()));
    for nobody in [refuses, closed] {
        assert_eq!(probe(&following.resolvers, nobody).await, None);
    }
}
