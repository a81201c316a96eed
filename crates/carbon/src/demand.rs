//! How many requests to expect: profiles of the day and of the week, learned from what was served. Each slot is foretold by
//! both before it is learned, and the one that was less wrong so far is believed: a weekly rhythm is used where there is
//! one, and costs nothing where there is none.

/// How many days the memory of a time of day reaches back, about.
const MEMORY_DAYS: f64 = 7.0;
/// How many weeks that of a time of the week does.
const MEMORY_WEEKS: f64 = 4.0;
/// A time of the week is known after so many weeks.
const ENOUGH_WEEKS: f64 = 2.0;
/// How long errors count, in slots of half an hour: two weeks.
const MEMORY_ERRORS: f64 = 14.0 * 48.0;

const DAY: i64 = 86_400;
const WEEK: i64 = 7 * DAY;

/// Mean requests per slot of the day, of the week, and over all.
#[derive(Clone, Debug, Default)]
pub struct DemandProfile {
    days: Profile,
    weeks: Profile,
    all: Bin,
    learned: usize,
    /// Mean errors of both over the same slots.
    day_error: Bin,
    week_error: Bin,
}

/// Means by the time within a period.
#[derive(Clone, Debug, Default)]
struct Profile {
    bins: Vec<Bin>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    mean: f64,
    count: f64,
}

impl Bin {
    fn learn(&mut self, value: f64, memory: f64) {
        self.count += 1.0;
        self.mean += (value - self.mean) / self.count.min(memory);
    }
}

impl Profile {
    fn at(&self, at: i64, period: i64, slot_seconds: i64) -> usize {
        let place = at.rem_euclid(period) / slot_seconds.max(1);
        let last = self.bins.len().saturating_sub(1);
        usize::try_from(place).unwrap_or(0).min(last)
    }

    /// True if it had to begin anew, for slots of another length.
    fn fit(&mut self, period: i64, slot_seconds: i64) -> bool {
        let count = usize::try_from(period / slot_seconds.max(1))
            .unwrap_or(1)
            .max(1);
        let is_new = self.bins.len() != count;
        if is_new {
            self.bins = vec![Bin::default(); count];
        }
        is_new
    }

    fn get(&self, at: i64, period: i64, slot_seconds: i64, enough: f64) -> Option<f64> {
        let bin = self.bins.get(self.at(at, period, slot_seconds))?;
        (bin.count >= enough).then_some(bin.mean)
    }

    fn learn(&mut self, at: i64, period: i64, slot_seconds: i64, value: f64, memory: f64) {
        let place = self.at(at, period, slot_seconds);
        if let Some(bin) = self.bins.get_mut(place) {
            bin.learn(value, memory);
        }
    }
}

impl DemandProfile {
    /// Learns the slots that are new in `served`, whose last one ended at `now`.
    pub fn learn(&mut self, served: &[u64], now: i64, slot_seconds: i64) {
        let is_new = self.days.fit(DAY, slot_seconds);
        if self.weeks.fit(WEEK, slot_seconds) || is_new {
            self.learned = 0;
        }
        let new = served.len().saturating_sub(self.learned);
        for (k, value) in served.iter().rev().take(new).rev().enumerate() {
            let back = i64::try_from(new - k).unwrap_or(0);
            #[expect(clippy::cast_precision_loss, reason = "requests of a slot")]
            let value = *value as f64;
            self.learn_one(now - back * slot_seconds, slot_seconds, value);
        }
        // A shorter past than before has nothing new in it, and does not make the rest new again.
        self.learned = self.learned.max(served.len());
    }

    fn learn_one(&mut self, at: i64, slot: i64, value: f64) {
        let by_day = self.days.get(at, DAY, slot, 1.0);
        let by_week = self.weeks.get(at, WEEK, slot, ENOUGH_WEEKS);
        if let Some((by_day, by_week)) = by_day.zip(by_week) {
            self.day_error.learn((value - by_day).abs(), MEMORY_ERRORS);
            self.week_error
                .learn((value - by_week).abs(), MEMORY_ERRORS);
        }
        self.all.learn(value, MEMORY_DAYS * 48.0);
        self.days.learn(at, DAY, slot, value, MEMORY_DAYS);
        self.weeks.learn(at, WEEK, slot, value, MEMORY_WEEKS);
    }

    /// Expected requests of the slot that begins then. One where nothing is known: plans only need
    /// proportions.
    pub fn expect(&self, at: i64, slot_seconds: i64) -> f64 {
        let by_day = self.days.get(at, DAY, slot_seconds, 1.0);
        let by_week = self.weeks.get(at, WEEK, slot_seconds, ENOUGH_WEEKS);
        let by_week = by_week.filter(|_| self.week_error.mean < self.day_error.mean);
        match by_week.or(by_day) {
            Some(mean) => mean,
            None if self.all.count > 0.0 => self.all.mean,
            None => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600;

    /// Weeks of hours from a Thursday on, as the epoch began.
    fn weeks(count: i64, of: impl Fn(i64) -> u64) -> (DemandProfile, Vec<u64>) {
        let served: Vec<u64> = (0..count * 168).map(of).collect();
        let mut profile = DemandProfile::default();
        profile.learn(&served, count * WEEK, HOUR);
        (profile, served)
    }

    fn busy_but_on_weekends(hour: i64) -> u64 {
        let day = (hour / 24) % 7;
        if day == 2 || day == 3 {
            20
        } else {
            100 + u64::try_from(hour % 24).unwrap()
        }
    }

    #[test]
    fn nothing_known_is_one_and_one_day_is_known_by_the_hour() {
        let mut profile = DemandProfile::default();
        assert!((profile.expect(0, HOUR) - 1.0).abs() < 1e-12);
        let day: Vec<u64> = (0..24).collect();
        profile.learn(&day[..1], HOUR, HOUR);
        assert!(
            profile.expect(HOUR, HOUR).abs() < 1e-12,
            "all that is known is zero"
        );
        profile.learn(&day, DAY, HOUR);
        assert!((profile.expect(DAY + 5 * HOUR, HOUR) - 5.0).abs() < 1e-12);
    }

    #[test]
    fn a_weekly_rhythm_is_learned_once_weeks_were_seen() {
        let (profile, _) = weeks(1, busy_but_on_weekends);
        let weekend = WEEK + 2 * DAY + 12 * HOUR;
        assert!(profile.expect(weekend, HOUR) > 60.0, "a week is not enough");
        let (profile, _) = weeks(4, busy_but_on_weekends);
        let weekend = 4 * WEEK + 2 * DAY + 12 * HOUR;
        assert!((profile.expect(weekend, HOUR) - 20.0).abs() < 1e-9);
        assert!((profile.expect(weekend + 2 * DAY, HOUR) - 112.0).abs() < 1e-9);
    }

    #[test]
    fn without_a_rhythm_of_the_week_the_day_is_believed() {
        // The same each day, but for noise that has nothing to do with the week.
        let noise = |hour: i64| u64::try_from((hour * 7_919 + hour * hour * 31) % 41).unwrap();
        let (profile, _) = weeks(6, |hour| 80 + noise(hour));
        assert!(
            profile.day_error.mean <= profile.week_error.mean,
            "{profile:?}"
        );
    }

    #[test]
    fn other_slots_begin_anew_and_a_shorter_past_changes_nothing() {
        let (mut profile, served) = weeks(3, busy_but_on_weekends);
        let before = profile.expect(3 * WEEK, HOUR);
        profile.learn(&served[..100], 3 * WEEK, HOUR);
        assert!((profile.expect(3 * WEEK, HOUR) - before).abs() < 1e-9);
        profile.learn(&[7, 7], 3 * WEEK + 1_800, 1_800);
        assert!((profile.expect(3 * WEEK + DAY - 1_800, 1_800) - 7.0).abs() < 1e-9);
    }
}
