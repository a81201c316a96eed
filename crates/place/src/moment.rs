//! A point in time that no clock setting can move: the time since some start that the caller chose, such as that of the
//! process. Everything here that compares times uses it; wall-clock seconds appear only in a status.

use std::time::Duration;

/// Time since the caller's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub Duration);

impl Moment {
    /// The moment so many seconds after the start.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// How long ago `earlier` was; nothing if it lies ahead.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// This moment and so much later.
    #[must_use]
    pub const fn plus(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }
}
