//! Weir's figures beside the interface's own counters, over the same windows. Functions of values.
//!
//! A window of Weir's ends when its exporter read the counters. When that was is not in the status to more than a second, but
//! what the counter said then is: our own readings tell when it stood there. So begin and end are ours, and so is the time
//! between them; bytes and percent are Weir's.

use crate::{
    bench::real,
    place::{
        nic::{self, Sample},
        seen::Figures,
    },
};

/// Readings so far apart are of one interval; others have one between them that was not seen.
const NEAREST_SECONDS: f64 = 8.0;
const FARTHEST_SECONDS: f64 = 12.0;
/// The status has whole seconds, and the answer takes a moment.
const AROUND_SECONDS: f64 = 2.0;

/// One window, in percent of the capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    pub(super) weir: f64,
    pub(super) counted: f64,
}

impl Window {
    pub(super) fn error(&self) -> f64 {
        (self.weir - self.counted).abs() / self.counted
    }
}

/// The windows between these readings that can be compared.
pub(super) fn between(readings: &[Figures], samples: &[Sample], capacity: u64) -> Vec<Window> {
    let pairs = readings.iter().zip(readings.iter().skip(1));
    pairs
        .filter_map(|(one, other)| {
            let from = when(one, samples)?;
            let to = when(other, samples)?;
            let is_one_interval = (NEAREST_SECONDS..=FARTHEST_SECONDS).contains(&(to - from));
            is_one_interval.then_some(())?;
            Some(Window {
                weir: other.percent,
                counted: nic::rate(samples, from, to)? / real(capacity) * 100.0,
            })
        })
        .collect()
}

/// When the exporter read the counters, if the status says about the same.
fn when(reading: &Figures, samples: &[Sample]) -> Option<f64> {
    let when = nic::when(samples, reading.transmit_total)?;
    let said = real(reading.time);
    (when - said).abs().le(&AROUND_SECONDS).then_some(when)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 bytes a second from the second 100 on, read ten times a second.
    fn samples() -> Vec<Sample> {
        (0..600_u32)
            .map(|tenth| Sample {
                at: 100.0 + f64::from(tenth) / 10.0,
                sent: u64::from(tenth) * 100,
            })
            .collect()
    }

    fn reading(second: u64, percent: f64) -> Figures {
        Figures {
            percent,
            transmit_total: (second - 100) * 1_000,
            time: second,
        }
    }

    #[test]
    fn the_error_is_what_weir_says_less_or_more_than_the_counters() {
        let readings = [reading(110, 0.0), reading(120, 80.0), reading(130, 82.0)];
        let windows = between(&readings, &samples(), 10_000);
        let errors: Vec<f64> = windows.iter().map(Window::error).collect();
        assert_eq!(errors.len(), 2);
        assert!(errors[0].abs() < 1e-6, "{errors:?}");
        assert!((errors[1] - 0.025).abs() < 1e-6, "{errors:?}");
    }

    #[test]
    fn a_reading_that_was_not_seen_leaves_its_windows_out() {
        let readings = [reading(110, 80.0), reading(130, 80.0), reading(140, 80.0)];
        assert_eq!(between(&readings, &samples(), 10_000).len(), 1);
        let mut wrong = reading(120, 80.0);
        wrong.time = 150;
        assert_eq!(
            between(&[reading(110, 80.0), wrong], &samples(), 10_000),
            []
        );
        assert_eq!(between(&[], &samples(), 10_000), []);
    }
}
