//! Counts while the run goes on: a few shards, so that thousands of connections neither wait for each other nor
//! have a histogram each.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use hdrhistogram::Histogram;

use super::{
    failure::{Failure, Link, MOST_KEPT},
    outcome::{Counts, Outcome},
    report::{Latency, Report, Second},
    schedule::Schedule,
};

const SHARDS: usize = 16;
/// A day, in microseconds: longer latencies count as this.
const LONGEST: u64 = 24 * 3600 * 1_000_000;

/// What all workers report to.
pub(super) struct Recorder {
    shards: Vec<Mutex<Shard>>,
    /// Counted when a request is begun; at the end it must be what the outcomes add up to.
    sent: AtomicU64,
}

struct Shard {
    counts: Counts,
    unsent: u64,
    bytes: u64,
    latencies: Histogram<u64>,
    timeline: Vec<Second>,
    cut_by_server: u64,
    failures: Vec<Failure>,
}

impl Recorder {
    pub(super) fn new(schedule: &Schedule) -> Self {
        let seconds = schedule.duration.as_secs() + 1;
        let seconds = usize::try_from(seconds).unwrap_or(usize::MAX);
        let shard = || {
            Mutex::new(Shard {
                counts: Counts::default(),
                unsent: 0,
                bytes: 0,
                latencies: new_histogram(),
                timeline: vec![Second::default(); seconds],
                cut_by_server: 0,
                failures: Vec::new(),
            })
        };
        Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            sent: AtomicU64::new(0),
        }
    }

    /// A request is about to be sent.
    pub(super) fn begin(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// A request that was begun has ended. `at` is when it was meant to be sent, counted from the start.
    pub(super) fn end(
        &self,
        worker: usize,
        at: Duration,
        latency: Duration,
        (bytes, link): (u64, Link),
        outcome: &Outcome,
    ) {
        let microseconds = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        let mut shard = self.shard(worker);
        shard.counts.add(outcome);
        shard.bytes += bytes;
        if *outcome == Outcome::Ok {
            shard.latencies.saturating_record(microseconds);
        } else {
            shard.cut_by_server += u64::from(link.is_cut_by_server(outcome));
            if shard.failures.len() < MOST_KEPT {
                shard.failures.push(Failure {
                    at_seconds: at.as_secs_f64(),
                    took_seconds: latency.as_secs_f64(),
                    outcome: outcome.to_string(),
                    link,
                });
            }
        }
        let Some(second) = second(&mut shard.timeline, at) else {
            return;
        };
        second.sent += 1;
        second.slowest_microseconds = second.slowest_microseconds.max(microseconds);
        if *outcome == Outcome::Ok {
            second.ok += 1;
        } else {
            second.failed += 1;
        }
    }

    /// A request could not be sent at all: no connection was free in time.
    pub(super) fn unsent(&self, worker: usize, at: Duration) {
        let mut shard = self.shard(worker);
        shard.unsent += 1;
        if let Some(second) = second(&mut shard.timeline, at) {
            second.unsent += 1;
        }
    }

    /// What came of it all; for when nobody reports any more.
    pub(super) fn report(&self, url: &str, schedule: &Schedule) -> Report {
        let mut counts = Counts::default();
        let mut latencies = new_histogram();
        let mut timeline: Vec<Second> = Vec::new();
        let (mut unsent, mut bytes, mut cut_by_server) = (0, 0, 0);
        let mut failures = Vec::new();
        for number in 0..SHARDS {
            let shard = self.shard(number);
            counts.merge(&shard.counts);
            // Made alike, so this cannot fail.
            let _ = latencies.add(&shard.latencies);
            unsent += shard.unsent;
            bytes += shard.bytes;
            cut_by_server += shard.cut_by_server;
            failures.extend(shard.failures.iter().cloned());
            timeline.resize(shard.timeline.len(), Second::default());
            for (sum, second) in timeline.iter_mut().zip(&shard.timeline) {
                sum.merge(second);
            }
        }
        // The last is only half a second, or none, unless the duration says otherwise.
        while timeline.last() == Some(&Second::default()) {
            timeline.pop();
        }
        failures.sort_by(|a, b| a.at_seconds.total_cmp(&b.at_seconds));
        failures.truncate(MOST_KEPT);
        let took = schedule.start.elapsed();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Report {
            started_unix_seconds: (now.unwrap_or_default().saturating_sub(took)).as_secs_f64(),
            url: url.to_owned(),
            rate: schedule.rate,
            seconds: schedule.duration.as_secs_f64(),
            took_seconds: took.as_secs_f64(),
            intended: schedule.total,
            sent: self.sent.load(Ordering::Relaxed),
            unsent,
            outcomes: counts,
            cut_by_server,
            failures,
            bytes_received: bytes,
            latency: Latency::of(&latencies),
            timeline,
        }
    }

    fn shard(&self, worker: usize) -> MutexGuard<'_, Shard> {
        let shard = self.shards[worker % SHARDS].lock();
        // Whoever panicked ends the run anyway.
        shard.unwrap_or_else(PoisonError::into_inner)
    }
}

fn second(timeline: &mut [Second], at: Duration) -> Option<&mut Second> {
    timeline.get_mut(usize::try_from(at.as_secs()).ok()?)
}

/// Three significant digits from a microsecond up to [`LONGEST`], in some 200 KiB.
fn new_histogram() -> Histogram<u64> {
    match Histogram::new_with_max(LONGEST, 3) {
        Ok(histogram) => histogram,
        // Only for bounds or a precision that it does not know.
        Err(_) => unreachable!("HdrHistogram takes 0 to 5 significant digits, and this bound"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn long_latencies_are_kept_as_they_are_and_absurd_ones_are_cut_to_the_longest() {
        let schedule = Schedule::new(Instant::now(), 2, Duration::from_secs(1));
        let recorder = Recorder::new(&schedule);
        for (worker, latency) in [Duration::from_mins(50), Duration::MAX]
            .into_iter()
            .enumerate()
        {
            recorder.begin();
            recorder.end(
                worker,
                Duration::ZERO,
                latency,
                (0, Link::New),
                &Outcome::Ok,
            );
        }
        let report = recorder.report("", &schedule);
        assert!(report.adds_up());
        let close = |value: u64, to: u64| value.abs_diff(to) <= to / 1000;
        assert!(close(report.latency.p50, 3_000_000_000), "{report:?}");
        assert!(close(report.latency.max, LONGEST), "{report:?}");
    }
}
