//! The readings of one device, and the rates between them. Whatever happens to counters and clocks, what is kept only
//! grows, so no rate is negative, infinite, or above what the counters say.

use std::{collections::VecDeque, time::Duration};

use crate::{exposition::Counters, moment::Moment};

/// The most readings that are kept of one device.
pub const READINGS_LIMIT: usize = 64;
/// Of two readings nearer to each other than this the second says too little.
const SHORTEST_GAP: Duration = Duration::from_secs(1);
/// Readings do not come to the millisecond: so much of a window is as good as all of it.
const ENOUGH: f64 = 0.9;

/// Readings of one device, the oldest first. Counters never fall from one to the next, time grows by
/// [`SHORTEST_GAP`] at least, and all have the same counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Ring(pub(super) VecDeque<Reading>);

/// What one answer said of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reading {
    pub(super) at: Moment,
    pub(super) transmit: Option<u64>,
    pub(super) receive: Option<u64>,
    pub(super) speed: Option<f64>,
}

/// A device's traffic over a window, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Sent; none if the exporter does not say.
    pub transmit: Option<f64>,
    /// Received.
    pub receive: Option<f64>,
    /// How long the window was.
    pub over: Duration,
    /// When it ended.
    pub at: Moment,
}

impl Reading {
    pub(super) const fn of(at: Moment, counters: &Counters) -> Self {
        Self {
            at,
            transmit: counters.transmit,
            receive: counters.receive,
            speed: counters.speed,
        }
    }

    /// Whether this reading can be compared with an earlier one: no counter fell, came or went.
    pub(super) fn goes_on_from(&self, earlier: &Self) -> bool {
        let grew = |now: Option<u64>, before: Option<u64>| match (now, before) {
            (Some(now), Some(before)) => now >= before,
            (now, before) => now.is_none() && before.is_none(),
        };
        grew(self.transmit, earlier.transmit) && grew(self.receive, earlier.receive)
    }
}

impl Ring {
    pub(super) fn last(&self) -> Option<&Reading> {
        self.0.back()
    }

    /// Takes a reading in. One that does not go on from the last begins a new window; one within the same second is
    /// left out. What no window needs any more goes.
    pub(super) fn push(&mut self, reading: Reading, longest: Duration) {
        if let Some(last) = self.0.back() {
            if reading.at < last.at || !reading.goes_on_from(last) {
                self.0.clear();
            } else if reading.at.since(last.at) < SHORTEST_GAP {
                return;
            }
        }
        self.0.push_back(reading);
        let is_spare = |second: &Reading| reading.at.since(second.at) >= longest;
        while self.0.get(1).is_some_and(is_spare) {
            self.0.pop_front();
        }
        if self.0.len() > READINGS_LIMIT {
            self.thin();
        }
    }

    /// Leaves out the reading that is missed least: the one whose neighbours are nearest to each other, measured by its
    /// age. So short windows stay exact and long ones are off by some percent. Never the first or the last two.
    fn thin(&mut self) {
        let Some(now) = self.0.back().map(|last| last.at) else {
            return;
        };
        let missed = |at: usize| {
            let neighbours = (self.0.get(at.checked_sub(1)?)?, self.0.get(at + 1)?);
            let gap = neighbours.1.at.since(neighbours.0.at);
            let age = now.since(self.0.get(at)?.at).max(SHORTEST_GAP);
            Some(gap.as_secs_f64() / age.as_secs_f64())
        };
        let inner = 1..self.0.len().saturating_sub(2);
        let least = inner
            .filter_map(|at| missed(at).map(|missed| (at, missed)))
            .min_by(|one, other| one.1.total_cmp(&other.1));
        if let Some((at, _)) = least {
            self.0.remove(at);
        }
    }

    /// Traffic between the last reading and the latest one that is a window older.
    pub(super) fn rates(&self, window: Duration, longest: Duration) -> Option<Rates> {
        let last = self.0.back()?;
        let enough = window.mul_f64(ENOUGH).max(SHORTEST_GAP);
        let base = (self.0.iter().rev()).find(|reading| last.at.since(reading.at) >= enough)?;
        let over = last.at.since(base.at);
        if over > longest {
            return None;
        }
        let rate = |now: Option<u64>, before: Option<u64>| {
            let grown = now?.checked_sub(before?)?;
            #[expect(clippy::cast_precision_loss, reason = "a rate needs no 53rd bit")]
            Some(grown as f64 / over.as_secs_f64())
        };
        Some(Rates {
            transmit: rate(last.transmit, base.transmit),
            receive: rate(last.receive, base.receive),
            over,
            at: last.at,
        })
    }
}
