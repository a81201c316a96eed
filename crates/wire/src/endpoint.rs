//! Where requests can be sent, and which of several places is picked.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many connections of those who waited may be new to an endpoint at a time: fewer than the 128 that many servers
/// let queue up before they accept them. Beyond that Linux drops what comes, and it comes again a second later.
const FRESH: usize = 96;

/// One address that takes requests.
#[derive(Debug)]
pub struct Endpoint {
    /// Where it listens.
    pub address: SocketAddr,
    in_flight: AtomicUsize,
    /// Failures to connect since the last success.
    failures: AtomicUsize,
    /// Room for connections on which nothing has been answered yet.
    fresh: Arc<Semaphore>,
    /// When the first connection was not accepted in time of those since the last that was, in milliseconds since
    /// [`Self::born`], plus one; 0: none.
    silent_since: AtomicU64,
    born: Instant,
}

/// The endpoints of a backend that are ready now.
#[derive(Debug, Default)]
pub struct Endpoints {
    all: Vec<Arc<Endpoint>>,
    turn: AtomicU64,
}

/// A picked endpoint; counts as one of its requests until it is dropped.
#[derive(Debug)]
pub struct Picked(Arc<Endpoint>);

impl Endpoints {
    /// These addresses. What is known of those that were there before is kept.
    pub fn new(addresses: &[SocketAddr], before: &Self) -> Self {
        let all = addresses.iter().map(|address| {
            let known = before.all.iter().find(|it| it.address == *address);
            known.cloned().unwrap_or_else(|| {
                Arc::new(Endpoint {
                    address: *address,
                    in_flight: AtomicUsize::new(0),
                    failures: AtomicUsize::new(0),
                    fresh: Arc::new(Semaphore::new(FRESH)),
                    silent_since: AtomicU64::new(0),
                    born: Instant::now(),
                })
            })
        });
        Self {
            all: all.collect(),
            turn: AtomicU64::new(before.turn.load(Ordering::Relaxed)),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Their addresses.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.all.iter().map(|it| it.address)
    }

    /// Those that accept no connection in time, each with how long it has been so without one that went through.
    pub fn silent(&self) -> impl Iterator<Item = (SocketAddr, Duration)> + '_ {
        let all = self.all.iter();
        all.filter_map(|it| Some((it.address, it.silent_for()?)))
    }

    /// The one at this address.
    pub(crate) fn at(&self, address: SocketAddr) -> Option<&Arc<Endpoint>> {
        self.all.iter().find(|it| it.address == address)
    }

    /// The better of two: the next in turn, and another one. Better is who has failed less often of late, then who
    /// has less to do. Two looks instead of all keep many senders from running to the same place at once.
    pub fn pick(&self) -> Option<Picked> {
        let picked = match self.all.as_slice() {
            [] => return None,
            [only] => only,
            all => {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                let length = all.len() as u64;
                // The second look walks around by itself, never on the first.
                let offset = 1 + (turn / length) % (length - 1);
                let first = &all[index(turn % length)];
                let second = &all[index((turn + offset) % length)];
                if second.burden() < first.burden() {
                    second
                } else {
                    first
                }
            }
        };
        picked.in_flight.fetch_add(1, Ordering::Relaxed);
        Some(Picked(Arc::clone(picked)))
    }
}

/// Below the length of a slice, so it always fits.
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or_default()
}

impl Endpoint {
    fn burden(&self) -> (usize, usize) {
        (
            self.failures.load(Ordering::Relaxed),
            self.in_flight.load(Ordering::Relaxed),
        )
    }
}

impl Endpoint {
    /// It has accepted a connection, or refused one: packets come to it and back.
    pub(crate) fn is_reached(&self) {
        if self.silent_since.load(Ordering::Relaxed) != 0 {
            self.silent_since.store(0, Ordering::Relaxed);
        }
    }

    /// It has not accepted a connection in time. Says whether it is the first such one.
    pub(crate) fn is_silent(&self) -> bool {
        let now = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1;
        let order = Ordering::Relaxed;
        let noted = self.silent_since.compare_exchange(0, now, order, order);
        noted.is_ok()
    }

    fn silent_for(&self) -> Option<Duration> {
        match self.silent_since.load(Ordering::Relaxed) {
            0 => None,
            since => Some((self.born + Duration::from_millis(since - 1)).elapsed()),
        }
    }
}

impl Picked {
    /// Where to connect to.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// What is known of it.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.0
    }

    /// Waits for room for one more new connection.
    pub(crate) async fn room_for_a_new_one(&self) -> Option<OwnedSemaphorePermit> {
        // Never closed.
        Arc::clone(&self.0.fresh).acquire_owned().await.ok()
    }

    /// It took a request.
    pub fn works(&self) {
        if self.0.failures.load(Ordering::Relaxed) != 0 {
            self.0.failures.store(0, Ordering::Relaxed);
        }
        self.0.is_reached();
    }

    /// It did not.
    pub fn fails(&self) {
        self.0.failures.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Picked {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(count: u8) -> Vec<SocketAddr> {
        (1..=count)
            .map(|last| SocketAddr::from(([192, 0, 2, last], 80)))
            .collect()
    }

    #[test]
    fn all_get_their_share() {
        let endpoints = Endpoints::new(&addresses(3), &Endpoints::default());
        let held: Vec<Picked> = (0..30).filter_map(|_| endpoints.pick()).collect();
        for address in addresses(3) {
            let share = held.iter().filter(|it| it.address() == address).count();
            assert!((8..=12).contains(&share), "{address}: {share}");
        }
        drop(held);
        assert!(
            endpoints
                .all
                .iter()
                .all(|it| it.in_flight.load(Ordering::Relaxed) == 0)
        );
    }

    #[test]
    fn one_that_fails_is_avoided_until_it_works_also_across_a_change() {
        let endpoints = Endpoints::new(&addresses(2), &Endpoints::default());
        let bad = endpoints.pick().unwrap();
        bad.fails();
        let endpoints = Endpoints::new(&addresses(2), &endpoints);
        for _ in 0..10 {
            assert_ne!(endpoints.pick().unwrap().address(), bad.address());
        }
        bad.works();
        let picked: Vec<Picked> = (0..4).filter_map(|_| endpoints.pick()).collect();
        assert!(picked.iter().any(|it| it.address() == bad.address()));
    }

    #[test]
    fn one_is_silent_from_its_first_time_out_until_it_is_reached_also_across_a_change() {
        let endpoints = Endpoints::new(&addresses(2), &Endpoints::default());
        let [one, two] = [0, 1].map(|index| Arc::clone(&endpoints.all[index]));
        assert!(one.is_silent(), "the first");
        assert!(!one.is_silent(), "not the first");
        let endpoints = Endpoints::new(&addresses(3), &endpoints);
        let silent = |endpoints: &Endpoints| -> Vec<SocketAddr> {
            endpoints.silent().map(|(address, _)| address).collect()
        };
        assert_eq!(silent(&endpoints), [one.address]);
        assert!(two.is_silent());
        one.is_reached();
        assert_eq!(silent(&endpoints), [two.address]);
        // A pod that has gone takes with it what was known of it.
        let endpoints = Endpoints::new(&addresses(1), &endpoints);
        let endpoints = Endpoints::new(&addresses(2), &endpoints);
        assert_eq!(silent(&endpoints), []);
        assert!(one.is_silent(), "a new row");
    }

    #[test]
    fn how_long_it_is_silent_is_counted_from_the_first_time_out() {
        let endpoints = Endpoints::new(&addresses(1), &Endpoints::default());
        let one = &endpoints.all[0];
        let began = Instant::now();
        one.is_silent();
        while began.elapsed() < Duration::from_millis(20) {
            one.is_silent();
        }
        let (_, silent_for) = endpoints.silent().next().unwrap();
        assert!(silent_for >= Duration::from_millis(19), "{silent_for:?}");
    }

    #[test]
    fn none_is_none_and_one_is_one() {
        assert!(Endpoints::default().pick().is_none());
        let one = Endpoints::new(&addresses(1), &Endpoints::default());
        assert_eq!(one.pick().unwrap().address(), addresses(1)[0]);
    }
}
