//! The time now. It does not jump: an overlap must not be cut short because somebody set the machine's clock.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A clock that began at the machine's time and goes on by itself.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Timestamp,
    at: Instant,
}

impl Clock {
    /// Begins now.
    pub fn start() -> Self {
        Self {
            began: Timestamp::now(),
            at: Instant::now(),
        }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        SignedDuration::try_from(self.at.elapsed())
            .ok()
            .and_then(|elapsed| self.began.checked_add(elapsed).ok())
            .unwrap_or(Timestamp::MAX)
    }

    /// That moment, as one to wait for.
    pub fn instant(&self, moment: Timestamp) -> Instant {
        let ahead = moment.duration_since(self.now());
        let ahead = ahead.try_into().unwrap_or_default();
        let now = Instant::now();
        now.checked_add(ahead).unwrap_or(now)
    }
}
