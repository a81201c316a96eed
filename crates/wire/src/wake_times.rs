//! How long a backend takes to wake, learned from the last times, and what `Retry-After` says by it.

use std::{sync::Mutex, time::Duration};

use crate::lock;

/// So many of the last times count.
const REMEMBERED: usize = 8;
/// What is said before anything is known: about what a small pod needs.
const UNKNOWN: Duration = Duration::from_secs(5);
/// Nobody is told to stay away for longer than this.
const LONGEST: Duration = Duration::from_mins(2);

/// The last times that a backend took to wake.
#[derive(Debug, Default)]
pub struct WakeTimes(Mutex<Vec<Duration>>);

impl WakeTimes {
    /// It took this long.
    pub fn add(&self, took: Duration) {
        let mut times = lock(&self.0);
        if times.len() == REMEMBERED {
            times.remove(0);
        }
        times.push(took);
    }

    /// In how many seconds to come again, when others have waited for so long already. The longest of the last
    /// times counts: who comes too early is refused once more, who comes a little later loses little.
    pub fn retry_after(&self, waited: Duration, is_ready: bool) -> u64 {
        if is_ready {
            return 1;
        }
        let usual = lock(&self.0).iter().max().copied().unwrap_or(UNKNOWN);
        let rest = usual.saturating_sub(waited).min(LONGEST);
        // Rounded up: 0 would ask for a storm.
        rest.as_millis()
            .div_ceil(1000)
            .try_into()
            .map_or(1, |seconds: u64| seconds.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn it_is_learned_from_the_last_times() {
        let times = WakeTimes::default();
        assert_eq!(times.retry_after(Duration::ZERO, false), 5);
        times.add(seconds(40.0));
        assert_eq!(times.retry_after(Duration::ZERO, false), 40);
        for _ in 0..REMEMBERED {
            times.add(seconds(2.2));
        }
        assert_eq!(times.retry_after(Duration::ZERO, false), 3);
        assert_eq!(times.retry_after(seconds(1.0), false), 2);
        assert_eq!(times.retry_after(seconds(10.0), false), 1, "overdue");
        assert_eq!(
            times.retry_after(Duration::ZERO, true),
            1,
            "awake, but full"
        );
        times.add(seconds(100_000.0));
        assert_eq!(times.retry_after(Duration::ZERO, false), 120);
    }
}
