//! When each request is meant to be sent, and who lets it go at that time.
//!
//! The [`Schedule`] is arithmetic. The [`Pacer`] has a thread of its own, because the runtime's timers only know
//! milliseconds, and hands out one permit per request to whoever of [`super::worker`] is free.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use tokio::sync::Semaphore;

/// Sleeping shorter than this costs more than it gives: the kernel itself is not more exact.
const SHORTEST_NAP: Duration = Duration::from_micros(100);
/// How soon a run that was given up is noticed.
const LONGEST_NAP: Duration = Duration::from_millis(50);

/// A constant rate for a while.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) start: Instant,
    pub(super) rate: u32,
    pub(super) duration: Duration,
    /// How many requests there are in all.
    pub(super) total: u64,
}

impl Schedule {
    pub(super) fn new(start: Instant, rate: u32, duration: Duration) -> Self {
        let total = u128::from(rate) * duration.as_nanos() / 1_000_000_000;
        Self {
            start,
            rate,
            duration,
            total: u64::try_from(total).unwrap_or(u64::MAX),
        }
    }

    /// How long after the start this request is meant to be sent.
    pub(super) fn offset(&self, index: u64) -> Duration {
        let rate = u64::from(self.rate);
        let rest = index % rate * 1_000_000_000 / rate;
        Duration::from_secs(index / rate) + Duration::from_nanos(rest)
    }

    /// How many requests are meant to be sent by this time, counting from the start.
    fn due(&self, elapsed: Duration) -> u64 {
        let due = u128::from(self.rate) * elapsed.as_nanos() / 1_000_000_000 + 1;
        u64::try_from(due).unwrap_or(u64::MAX).min(self.total)
    }
}

/// Lets requests go at their times, in their order.
pub(super) struct Pacer {
    schedule: Schedule,
    workers: usize,
    permits: Semaphore,
    next: AtomicU64,
    stopped: AtomicBool,
}

/// Ends the pacer's thread when it goes.
pub(super) struct Stop<'a>(&'a Pacer);

impl Pacer {
    pub(super) fn new(schedule: Schedule, workers: usize) -> Self {
        Self {
            schedule,
            workers,
            permits: Semaphore::new(0),
            next: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    pub(super) fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    pub(super) fn stop_when_dropped(&self) -> Stop<'_> {
        Stop(self)
    }

    /// The next request, once it is due; none when all have been taken.
    pub(super) async fn next(&self) -> Option<u64> {
        // Never closed, so this never fails.
        self.permits.acquire().await.ok()?.forget();
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.schedule.total).then_some(index)
    }

    /// Runs until all requests were let go, or nobody wants them any more.
    pub(super) fn pace(&self) {
        let mut gone = 0;
        while gone < self.schedule.total && !self.stopped.load(Ordering::Relaxed) {
            let elapsed = self.schedule.start.elapsed();
            let due = self.schedule.due(elapsed);
            self.let_go(due - gone);
            gone = due;
            let nap = self.schedule.offset(gone).saturating_sub(elapsed);
            thread::sleep(nap.clamp(SHORTEST_NAP, LONGEST_NAP));
        }
        // One more for each worker, which tells it that there is no more.
        self.permits.add_permits(self.workers);
    }

    fn let_go(&self, requests: u64) {
        let requests = usize::try_from(requests).unwrap_or(usize::MAX);
        self.permits
            .add_permits(requests.min(Semaphore::MAX_PERMITS / 2));
    }
}

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_due_and_when_agree(
            rate in 1_u32..200_000,
            milliseconds in 1_u64..100_000,
            index in 0_u64..10_000_000,
        ) {
            let duration = Duration::from_millis(milliseconds);
            let schedule = Schedule::new(Instant::now(), rate, duration);
            prop_assert!(schedule.offset(schedule.total.saturating_sub(1)) <= duration);
            prop_assert_eq!(schedule.due(duration), schedule.total);
            let index = index.min(schedule.total.saturating_sub(1));
            let offset = schedule.offset(index);
            if schedule.total > 0 {
                // Rounded down to a nanosecond, it may come one such step early.
                prop_assert!(schedule.due(offset + Duration::from_nanos(1)) > index);
                prop_assert!(schedule.due(offset) <= index + 1);
            }
        }
    }
}
