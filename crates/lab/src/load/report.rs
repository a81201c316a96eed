//! What a run came to: for people as text, for programs as JSON.

use std::fmt;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::{failure::Failure, outcome::Counts};

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Where requests were sent.
    pub url: String,
    /// When the first request was meant to be sent, by the clock of the sender's machine, in seconds since 1970.
    #[serde(default)]
    pub started_unix_seconds: f64,
    /// Requests per second that were meant to be sent.
    pub rate: u32,
    /// How long requests were meant to be sent.
    pub seconds: f64,
    /// How long all of it took, to the last answer.
    pub took_seconds: f64,
    /// How many requests were meant to be sent.
    pub intended: u64,
    /// How many were sent; each has exactly one outcome.
    pub sent: u64,
    /// How many were not, because no connection was free until the time-out. Then the run is worth little:
    /// use more connections, or a lower rate.
    pub unsent: u64,
    /// How those that were sent ended.
    pub outcomes: Counts,
    /// Of those that failed: how many because the server itself closed a kept connection while a request was under way on it.
    #[serde(default)]
    pub cut_by_server: u64,
    /// The first of those that failed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// Bytes of bodies received.
    pub bytes_received: u64,
    /// Of right answers, counted from when the request was meant to be sent. Without any it is all zero, and not
    /// written.
    #[serde(default, skip_serializing_if = "Latency::is_none")]
    pub latency: Latency,
    /// One entry per second; requests count in the one in which they were meant to be sent.
    pub timeline: Vec<Second>,
}

/// Latencies in microseconds, to three significant digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "they say it themselves")]
pub struct Latency {
    pub mean: f64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
}

/// The requests that were meant to be sent within one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// How many of them were sent.
    pub sent: u64,
    /// How many of those were answered right.
    pub ok: u64,
    /// How many of those were not.
    pub failed: u64,
    /// How many were never sent.
    pub unsent: u64,
    /// The longest time one of them took, whatever its outcome.
    pub slowest_microseconds: u64,
}

impl Report {
    /// Is every request accounted for, exactly once? If not, the generator has a fault.
    pub fn adds_up(&self) -> bool {
        self.outcomes.total() == self.sent
            && self.sent + self.unsent == self.intended
            && self.timeline.iter().map(|s| s.sent + s.unsent).sum::<u64>() == self.intended
            && self.timeline.iter().all(|s| s.ok + s.failed == s.sent)
    }

    /// Right answers per second, over all the time it took.
    pub fn ok_per_second(&self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "exact up to 2^53 requests")]
        let ok = self.outcomes.ok as f64;
        ok / self.took_seconds.max(f64::MIN_POSITIVE)
    }
}

impl Latency {
    /// Nothing was measured: what was takes a microsecond at least.
    fn is_none(&self) -> bool {
        self.max == 0
    }

    pub(super) fn of(latencies: &Histogram<u64>) -> Self {
        if latencies.is_empty() {
            return Self::default();
        }
        Self {
            mean: latencies.mean(),
            p50: latencies.value_at_quantile(0.5),
            p90: latencies.value_at_quantile(0.9),
            p99: latencies.value_at_quantile(0.99),
            p999: latencies.value_at_quantile(0.999),
            max: latencies.max(),
        }
    }
}

impl Second {
    pub(super) fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.ok += other.ok;
        self.failed += other.failed;
        self.unsent += other.unsent;
        self.slowest_microseconds = self.slowest_microseconds.max(other.slowest_microseconds);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} requests/s for {} s took {:.1} s",
            self.url, self.rate, self.seconds, self.took_seconds
        )?;
        writeln!(f, "  sent     {} of {}", self.sent, self.intended)?;
        write!(f, "  outcomes {}", self.outcomes)?;
        if self.cut_by_server > 0 {
            write!(f, ", {} of them cut by the server", self.cut_by_server)?;
        }
        writeln!(f)?;
        let ms = |microseconds: u64| {
            let whole = microseconds / 1000;
            format!("{whole}.{:03}", microseconds % 1000)
        };
        let Latency {
            p50,
            p90,
            p99,
            p999,
            max,
            ..
        } = self.latency;
        if !self.latency.is_none() {
            writeln!(
                f,
                "  latency  p50 {} ms, p90 {}, p99 {}, p99.9 {}, max {}",
                ms(p50),
                ms(p90),
                ms(p99),
                ms(p999),
                ms(max)
            )?;
        }
        write!(f, "  answers  {:.1}/s right", self.ok_per_second())?;
        if self.unsent > 0 {
            write!(
                f,
                "\n*** {} requests were NOT SENT: no connection was free in time; use more connections",
                self.unsent
            )?;
        }
        Ok(())
    }
}
