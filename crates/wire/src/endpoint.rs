//! Where requests can be sent, and which of several places is picked.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
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

impl Picked {
    /// Where to connect to.
    pub fn address(&self) -> SocketAddr {
        self.0.address
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
    fn none_is_none_and_one_is_one() {
        assert!(Endpoints::default().pick().is_none());
        let one = Endpoints::new(&addresses(1), &Endpoints::default());
        assert_eq!(one.pick().unwrap().address(), addresses(1)[0]);
    }
}
