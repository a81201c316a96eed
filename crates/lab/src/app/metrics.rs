//! What the server itself saw, for comparison with what a load generator says: `/metrics` in Prometheus' text.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write,
    hash::{BuildHasher, RandomState},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

/// How many request ids are remembered, at about 16 bytes each; what comes after is counted as forgotten.
const MOST_IDS: usize = 4_000_000;

#[derive(Default)]
pub(super) struct Metrics {
    connections: AtomicU64,
    /// By path class and status; both are bounded.
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    ids: Mutex<Ids>,
    firsts: Mutex<BTreeMap<First, f64>>,
    hashing: RandomState,
}

/// What happens many times, and of which the first time matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum First {
    /// The kubelet, or whoever asks like one, was told that it is ready.
    ReadyToldKubelet,
    /// A resolver was.
    ReadyToldResolver,
    /// A request came that is no probe.
    Request,
}

impl First {
    const fn as_str(self) -> &'static str {
        match self {
            Self::ReadyToldKubelet => "ready_told_kubelet",
            Self::ReadyToldResolver => "ready_told_resolver",
            Self::Request => "request",
        }
    }
}

#[derive(Default)]
struct Ids {
    /// Hashes: that two of four million share one is a chance of 1 in two million.
    seen: HashSet<u64>,
    repeated: u64,
    forgotten: u64,
}

impl Metrics {
    pub(super) fn connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// A request has come with this id.
    pub(super) fn id(&self, id: &[u8]) {
        let hash = self.hashing.hash_one(id);
        let mut ids = lock(&self.ids);
        if ids.seen.contains(&hash) {
            ids.repeated += 1;
        } else if ids.seen.len() < MOST_IDS {
            ids.seen.insert(hash);
        } else {
            ids.forgotten += 1;
        }
    }

    /// An answer has begun.
    pub(super) fn answer(&self, class: &'static str, status: u16) {
        *lock(&self.requests).entry((class, status)).or_default() += 1;
    }

    /// This has happened, for the first time or again.
    pub(super) fn happened(&self, what: First) {
        let now = || {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            since.unwrap_or_default().as_secs_f64()
        };
        lock(&self.firsts).entry(what).or_insert_with(now);
    }

    pub(super) fn text(&self, in_flight: usize) -> String {
        let mut text = String::from(
            "# HELP lab_requests_total Answers that were begun, by kind of path and status.\n\
             # TYPE lab_requests_total counter\n",
        );
        for ((class, status), count) in lock(&self.requests).iter() {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "lab_requests_total{{path=\"{class}\",status=\"{status}\"}} {count}"
            );
        }
        text.push_str(
            "# HELP lab_first_seconds When this happened first, in seconds since 1970.\n\
             # TYPE lab_first_seconds gauge\n",
        );
        for (what, seconds) in lock(&self.firsts).iter() {
            let what = what.as_str();
            let _ = writeln!(text, "lab_first_seconds{{what=\"{what}\"}} {seconds:.6}");
        }
        let ids = lock(&self.ids);
        let seen = u64::try_from(ids.seen.len()).unwrap_or(u64::MAX);
        let in_flight = u64::try_from(in_flight).unwrap_or(u64::MAX);
        let connections = self.connections.load(Ordering::Relaxed);
        for (name, kind, help, value) in [
            (
                "lab_request_ids_distinct",
                "gauge",
                "Different request ids seen.",
                seen,
            ),
            (
                "lab_request_ids_repeated_total",
                "counter",
                "Requests whose id had been seen before.",
                ids.repeated,
            ),
            (
                "lab_request_ids_forgotten_total",
                "counter",
                "Requests whose id could not be remembered any more.",
                ids.forgotten,
            ),
            (
                "lab_requests_in_flight",
                "gauge",
                "Requests that are here now.",
                in_flight,
            ),
            (
                "lab_connections_total",
                "counter",
                "HTTP connections accepted.",
                connections,
            ),
        ] {
            let _ = write!(
                text,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"
            );
        }
        text
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_and_repeated_ids_are_told_apart() {
        let metrics = Metrics::default();
        for id in ["a", "b", "a", "c", "a"] {
            metrics.id(id.as_bytes());
            metrics.answer("echo", 200);
        }
        let text = metrics.text(2);
        for line in [
            "lab_request_ids_distinct 3\n",
            "lab_request_ids_repeated_total 2\n",
            "lab_requests_total{path=\"echo\",status=\"200\"} 5\n",
            "lab_requests_in_flight 2\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn of_what_happens_often_the_first_time_is_told() {
        let metrics = Metrics::default();
        metrics.happened(First::Request);
        let first = metrics.text(0);
        let line = first
            .lines()
            .find(|line| line.contains("{what=\"request\"}"));
        let line = line.expect("it is told").to_owned();
        metrics.happened(First::Request);
        metrics.happened(First::ReadyToldResolver);
        let text = metrics.text(0);
        assert!(text.contains(&line), "{text}");
        assert!(text.contains("{what=\"ready_told_resolver\"}"), "{text}");
        assert!(!text.contains("{what=\"ready_told_kubelet\"}"), "{text}");
    }
}
