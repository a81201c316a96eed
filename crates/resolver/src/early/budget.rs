//! How many probes there may be in a while: so many each second, and a few at once after a rest.

use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Budget {
    /// What one costs.
    cost: Duration,
    /// How far one may be ahead.
    burst: Duration,
    /// Until when the past is paid for.
    spent_until: Option<Instant>,
}

impl Budget {
    /// At most `per_second`, and so many at once. Both are at least 1.
    pub(super) fn new(per_second: u32, at_once: u32) -> Self {
        let cost = Duration::from_secs(1) / per_second.max(1);
        Self {
            cost,
            burst: cost * at_once.max(1),
            spent_until: None,
        }
    }

    /// Takes one, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        if self.next() > Some(now) {
            return false;
        }
        let from = self.spent_until.map_or(now, |until| until.max(now));
        self.spent_until = Some(from + self.cost);
        true
    }

    /// From when on there is one again; none: there is one.
    pub(super) fn next(&self) -> Option<Instant> {
        let until = self.spent_until? + self.cost;
        until.checked_sub(self.burst)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However it is asked, no second has more than it may; and who asks when told gets one.
        #[test]
        fn no_second_has_too_many(pauses in proptest::collection::vec(0..30_u64, 1..400)) {
            let mut budget = Budget::new(50, 10);
            let mut now = Instant::now();
            let mut taken = Vec::new();
            for pause in pauses {
                now += Duration::from_millis(pause);
                if budget.take(now) {
                    taken.push(now);
                } else {
                    let next = budget.next().unwrap();
                    prop_assert!(next > now && next <= now + Duration::from_millis(20));
                    now = next;
                    prop_assert!(budget.take(now));
                    taken.push(now);
                }
                let second = now.checked_sub(Duration::from_secs(1)).unwrap();
                prop_assert!(taken.iter().filter(|at| **at > second).count() <= 60);
            }
        }
    }
}
