//! Observed and forecast intensities as hourly means, whatever the slots' length.

/// A series of slots: what was seen, then what is forecast.
#[derive(Clone, Copy, Debug)]
pub struct Slots<'a> {
    /// All slots before the present one.
    pub seen: &'a [f64],
    /// The present one and those after it.
    pub known: &'a [f64],
    /// When the present slot begins.
    pub now: i64,
    /// Length of a slot.
    pub slot_seconds: i64,
}

/// An hour, in seconds.
pub const HOUR: i64 = 3_600;
/// Hours of a day.
pub const DAY: usize = 24;
/// Hours of a week.
pub const WEEK: usize = 7 * DAY;

impl Slots<'_> {
    /// When what is known ends.
    pub fn end(&self) -> i64 {
        self.now + self.slot_seconds * signed(self.known.len())
    }

    /// The mean of the slots that overlap the hour which begins then; none where nothing is known.
    pub fn hour(&self, from: i64) -> Option<f64> {
        let (first, last) = self.overlapping(from);
        self.mean(first, last)
    }

    /// The first and the last slot that overlap the hour which begins then, counted from the present one.
    fn overlapping(&self, from: i64) -> (i64, i64) {
        let first = (from - self.now).div_euclid(self.slot_seconds);
        let last = (from + HOUR - 1 - self.now).div_euclid(self.slot_seconds);
        (first, last)
    }

    fn mean(&self, first: i64, last: i64) -> Option<f64> {
        let (mut sum, mut count) = (0.0, 0.0);
        for i in first..=last {
            let value = match usize::try_from(i) {
                Ok(ahead) => self.known.get(ahead),
                Err(_) => usize::try_from(-i)
                    .ok()
                    .and_then(|back| self.seen.len().checked_sub(back))
                    .and_then(|at| self.seen.get(at)),
            };
            if let Some(value) = value.filter(|v| !v.is_nan()) {
                sum += value;
                count += 1.0;
            }
        }
        (count > 0.0).then(|| sum / count)
    }

    /// So many hours from then on; an unknown hour takes the value before it, the first ones the
    /// first value known. None when fewer than nine in ten are known.
    pub fn hours(&self, from: i64, count: usize) -> Option<Vec<f64>> {
        let (first, last) = self.overlapping(from);
        let step = HOUR / self.slot_seconds.max(1);
        let is_even = step * self.slot_seconds == HOUR;
        let hour = |h: i64| {
            if is_even {
                // Each hour is as many slots after the one before it: no need to divide again.
                self.mean(first + step * h, last + step * h)
            } else {
                self.hour(from + HOUR * h)
            }
        };
        let values: Vec<Option<f64>> = (0..signed(count)).map(hour).collect();
        let known = values.iter().flatten().count();
        if known == 0 || known * 10 < count * 9 {
            return None;
        }
        let mut last = values.iter().flatten().copied().next()?;
        let filled = values.into_iter().map(|value| {
            last = value.unwrap_or(last);
            last
        });
        Some(filled.collect())
    }

    /// Whole days up to the end of what is known, at most so many: as many as have values.
    pub fn trailing(&self, at_most: usize) -> Option<Vec<f64>> {
        let slots = signed(self.seen.len() + self.known.len());
        let days = usize::try_from(slots * self.slot_seconds / (HOUR * signed(DAY))).unwrap_or(0);
        let days = days.clamp(1, at_most.max(1));
        // What lies before a long gap is no part of "the last weeks".
        (1..=days)
            .rev()
            .find_map(|days| self.hours(self.end() - HOUR * signed(DAY * days), DAY * days))
    }
}

pub(crate) fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_means_of_whatever_slots_there_are() {
        let slots = Slots {
            seen: &[1.0, 3.0, f64::NAN, 5.0],
            known: &[7.0, 9.0],
            now: 7_200,
            slot_seconds: 1_800,
        };
        let hours: Vec<_> = [0, 3_600, 7_200, 10_800].map(|at| slots.hour(at)).to_vec();
        assert_eq!(hours, [Some(2.0), Some(5.0), Some(8.0), None]);
        let long = Slots {
            seen: &[4.0],
            known: &[6.0],
            now: 10_800,
            slot_seconds: 10_800,
        };
        assert_eq!(long.hour(7_200), Some(4.0));
        assert_eq!(long.hours(0, 6), Some(vec![4.0, 4.0, 4.0, 6.0, 6.0, 6.0]));
        assert_eq!(long.hours(0, 12), None);
    }

    #[test]
    fn days_before_a_gap_do_not_count_as_the_last_ones() {
        let mut seen = vec![10.0; 48];
        seen.extend([f64::NAN; 72]);
        seen.extend([20.0; 24]);
        let slots = Slots {
            seen: &seen,
            known: &[20.0; 24],
            now: 0,
            slot_seconds: HOUR,
        };
        assert_eq!(slots.trailing(28), Some(vec![20.0; 48]));
    }
}
