//! Tumbling windows: where the one that holds a moment begins and ends.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The shortest window, in seconds: an hour.
pub const SHORTEST: i64 = 3_600;
/// The longest window, in seconds: 366 days.
pub const LONGEST: i64 = 366 * 86_400;
/// A week.
pub const DEFAULT: i64 = 7 * 86_400;

/// Windows of one length, one after the other for all time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    length: i64,
    anchor: i64,
}

/// Why a length is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a budget window of {0} s is not between {SHORTEST} s (1h) and {LONGEST} s (366d)")]
pub struct LengthError(i64);

impl Windows {
    /// Aligned to the epoch of UTC, as all deciders agree without talking to each other.
    pub fn new(length: i64) -> Result<Self, LengthError> {
        if (SHORTEST..=LONGEST).contains(&length) {
            Ok(Self { length, anchor: 0 })
        } else {
            Err(LengthError(length))
        }
    }

    /// One window that begins here; the simulator's "whole trace".
    pub fn starting_at(from: i64, length: i64) -> Self {
        Self {
            length: length.max(1),
            anchor: from,
        }
    }

    /// Length and anchor, for [`super::code`].
    pub(super) const fn parts(self) -> (i64, i64) {
        (self.length, self.anchor)
    }

    /// What [`Windows::parts`] gave.
    pub(super) fn from_parts(length: i64, anchor: i64) -> Self {
        Self::starting_at(anchor, length)
    }

    /// When the window that holds this moment began.
    pub const fn start(&self, now: i64) -> i64 {
        let since = now.saturating_sub(self.anchor);
        self.anchor
            .saturating_add(since.div_euclid(self.length).saturating_mul(self.length))
    }

    /// When it ends.
    pub const fn end(&self, now: i64) -> i64 {
        self.start(now).saturating_add(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_hold_every_moment_once() {
        let weekly = Windows::new(DEFAULT).unwrap();
        for now in [i64::MIN / 4, -1, 0, 1, DEFAULT - 1, DEFAULT, 1_700_000_000] {
            assert!(weekly.start(now) <= now && now < weekly.end(now), "{now}");
        }
        assert_eq!(weekly.start(DEFAULT), DEFAULT);
        assert_eq!(weekly.start(-1), -DEFAULT);
    }

    #[test]
    fn lengths_have_limits() {
        assert!(Windows::new(SHORTEST - 1).is_err());
        assert!(Windows::new(LONGEST + 1).is_err());
        assert!(Windows::new(SHORTEST).is_ok() && Windows::new(LONGEST).is_ok());
    }
}
