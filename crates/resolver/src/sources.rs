//! Which sources are served: what `--allow-from` says, and what is told of those that are turned away.
//!
//! Whether an address lies in a range is decided in `weir_api::form::cidr`; what becomes of a connection in `weir_wire`.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use weir_api::form::cidr::Cidr;
use weir_role::metrics::lock;

use crate::metrics::{Metrics, names::SOURCE_NOT_ALLOWED};

/// One line at most in this time, however many are turned away.
const QUIET: Duration = Duration::from_secs(30);

/// Who is served.
#[derive(Debug)]
pub struct Sources {
    /// Empty: everybody.
    ranges: Vec<Cidr>,
    metrics: Arc<Metrics>,
    said: Mutex<Said>,
}

/// What the log has.
#[derive(Debug, Default)]
struct Said {
    last: Option<Instant>,
    /// Turned away since then.
    unsaid: u64,
}

impl Said {
    /// One more was turned away; says of how many to tell now, if at all.
    fn one_more(&mut self, now: Instant) -> Option<u64> {
        self.unsaid = self.unsaid.saturating_add(1);
        let is_due = |last: Instant| now.saturating_duration_since(last) >= QUIET;
        self.last.is_none_or(is_due).then(|| {
            self.last = Some(now);
            std::mem::take(&mut self.unsaid)
        })
    }
}

impl Sources {
    /// These ranges are served; without any, everybody is.
    pub fn new(ranges: Vec<Cidr>, metrics: Arc<Metrics>) -> Self {
        Self {
            ranges,
            metrics,
            said: Mutex::default(),
        }
    }

    /// Whether this one is.
    pub fn admit(&self, address: IpAddr) -> bool {
        self.ranges.is_empty() || self.ranges.iter().any(|range| range.contains(address))
    }

    /// One is turned away.
    pub fn turned_away(&self, peer: SocketAddr) {
        self.metrics.refused.add(SOURCE_NOT_ALLOWED);
        if let Some(connections) = lock(&self.said).one_more(Instant::now()) {
            tracing::warn!(
                source = %peer.ip().to_canonical(), connections,
                "connections were turned away, the last one from this source; --allow-from says which are served"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_range_everybody_is_served_and_else_only_who_lies_in_one() {
        let of = |ranges: &[&str]| {
            let ranges = ranges.iter().map(|it| it.parse().unwrap()).collect();
            Sources::new(ranges, Metrics::new())
        };
        let served = |sources: &Sources, address: &str| sources.admit(address.parse().unwrap());
        for address in ["192.0.2.1", "::1", "::ffff:10.0.0.1"] {
            assert!(served(&of(&[]), address));
        }
        let two = of(&["10.0.0.0/8", "fd00::/8"]);
        for address in ["10.1.2.3", "::ffff:10.1.2.3", "fd00::2"] {
            assert!(served(&two, address), "{address}");
        }
        for address in ["192.0.2.1", "::1", "::ffff:192.0.2.1"] {
            assert!(!served(&two, address), "{address}");
        }
    }

    #[test]
    fn all_are_counted_and_few_are_told_of() {
        let sources = Sources::new(Vec::new(), Metrics::new());
        for _ in 0..1000 {
            sources.turned_away("192.0.2.1:4000".parse().unwrap());
        }
        let text = sources.metrics.render();
        let line = "weir_resolver_refused{reason=\"source_not_allowed\"} 1000\n";
        assert!(text.contains(line), "{text}");

        let mut said = Said::default();
        let start = Instant::now();
        assert_eq!(said.one_more(start), Some(1));
        for _ in 0..999 {
            assert_eq!(said.one_more(start + QUIET / 2), None);
        }
        assert_eq!(said.one_more(start + QUIET), Some(1000));
    }
}
