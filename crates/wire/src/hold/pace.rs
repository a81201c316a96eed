//! How many held requests a backend is sent at a time: as many as it takes, found by watching how long it takes to answer.
//!
//! Nobody declares a concurrency. A pod that has just woken is sent a few; as long as more of them are answered as quickly as
//! a few were, it is sent some more. When they take clearly longer it has begun to put them in a line of its own:
//! more would not be answered sooner, and might be what it falls over from. Then the window goes back to the last one that
//! was good. If that is slow as well, round after round, what was learnt at first no longer holds (others are asked for, or
//! somebody else sends too): it is halved, and all is learnt anew.
//!
//! What is compared is the time within which three of four were answered, not the mean: requests differ, and a few slow ones
//! say nothing of the backend. Where it has a line, more than those stand in it. What is slower by some milliseconds only is
//! no sign either.
//!
//! A backend that takes *n* at a time, and has *w*, lets *w − n* stand in line while *n* are answered: more than a quarter of
//! them if *w* is above 1.25 *n*. As windows grow by two fifths, that is found out before it has twice as many as it takes.
//!
//! Who does not answer for a long time (a long poll) must not stand in the way of the others for good: see [`Pace::patience`].

#[cfg(test)]
mod tests;

use std::time::Duration;

/// Requests that each endpoint is sent before anything is known of it. Several resolvers begin at the same time, each with
/// as many.
const FIRST_PER_ENDPOINT: usize = 2;
/// The most that one is sent at a time, so that a long line does not become as many connections.
const LARGEST_PER_ENDPOINT: usize = 512;
/// Answers that make a round: as many as the window has, but in these bounds.
const SHORTEST_ROUND: usize = 4;
const LONGEST_ROUND: usize = 512;
/// So much slower than at first is still good: an eighth, and a few milliseconds, which are noise.
const GOOD_SHARE: u32 = 8;
const NOISE: Duration = Duration::from_millis(5);
/// After so many slow rounds at a window that was good it is halved.
const SLOW_ROUNDS: u32 = 2;
/// A request that was not answered for so long lets another go, if nothing at all was answered yet.
const UNKNOWN_PATIENCE: Duration = Duration::from_secs(1);
/// The same when it is known what answers take, and for how many times that.
const SHORTEST_PATIENCE: Duration = Duration::from_millis(250);
const PATIENCE_FACTOR: u32 = 4;

/// The pace of one line.
#[derive(Debug, Default)]
pub(super) struct Pace {
    endpoints: usize,
    window: usize,
    /// The largest window at which nothing was slower than at first.
    good: usize,
    /// Within this time three of four were answered when few were sent.
    at_first: Option<Duration>,
    /// Slow rounds in a row at a window that was good.
    slow_rounds: u32,
    round: u32,
    /// Of the requests that were released in this round.
    took: Vec<Duration>,
}

/// The round in which a request was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Round(u32);

impl Pace {
    /// How many may be with the backend at a time.
    pub(super) fn window(&self) -> usize {
        self.window
    }

    /// The round of a request that is released now.
    pub(super) fn round(&self) -> Round {
        Round(self.round)
    }

    /// Says how many endpoints are ready.
    pub(super) fn set_endpoints(&mut self, endpoints: usize) {
        let before = std::mem::replace(&mut self.endpoints, endpoints);
        if before == 0 {
            self.begin_at(endpoints * FIRST_PER_ENDPOINT);
        } else {
            let more = endpoints.saturating_sub(before) * FIRST_PER_ENDPOINT;
            self.set_window(self.window + more);
            self.good = self.good.min(self.window);
        }
    }

    /// A request that was released in this round was answered after this time.
    pub(super) fn answered(&mut self, round: Round, took: Duration) {
        if round != self.round() || self.endpoints == 0 {
            return;
        }
        self.took.push(took);
        if self.took.len() >= self.window.clamp(SHORTEST_ROUND, LONGEST_ROUND) {
            self.judge();
        }
    }

    /// A request was not answered, and its place is given to another.
    pub(super) fn lingers(&mut self) {
        // Otherwise a thousand long polls would go one by one.
        if self.at_first.is_none() {
            self.set_window(self.window + 1);
        }
    }

    /// A connection was refused, or broke.
    pub(super) fn failed(&mut self) {
        self.set_window(self.window / 2);
        self.good = self.window;
    }

    /// How long a request is waited for before another may go in its place.
    pub(super) fn patience(&self) -> Duration {
        self.at_first.map_or(UNKNOWN_PATIENCE, |took| {
            SHORTEST_PATIENCE.max(took.saturating_mul(PATIENCE_FACTOR))
        })
    }

    /// A round is over: was it as quick as at first?
    fn judge(&mut self) {
        self.took.sort_unstable();
        let last = self.took.len().saturating_sub(1);
        let took = self.took.get(last * 3 / 4).copied();
        let took = took.unwrap_or_default();
        let at_first = *self.at_first.get_or_insert(took);
        if took <= at_first + at_first / GOOD_SHARE + NOISE {
            // Quicker than ever: what was new and cold at first is warm now.
            self.at_first = Some(at_first.min(took));
            self.slow_rounds = 0;
            self.good = self.good.max(self.window);
            self.set_window(self.window + (self.window * 2 / 5).max(1));
            return;
        }
        if self.window <= self.good {
            self.slow_rounds += 1;
        }
        if self.slow_rounds >= SLOW_ROUNDS {
            self.begin_at(self.good / 2);
        } else {
            self.set_window(self.good);
        }
    }

    /// Nothing is known but where to begin.
    fn begin_at(&mut self, window: usize) {
        self.at_first = None;
        self.slow_rounds = 0;
        self.set_window(window);
        self.good = self.window;
    }

    /// Begins another round.
    fn set_window(&mut self, window: usize) {
        let largest = self.endpoints * LARGEST_PER_ENDPOINT;
        self.window = window.clamp(self.endpoints.min(1), largest);
        self.round = self.round.wrapping_add(1);
        self.took.clear();
    }
}
