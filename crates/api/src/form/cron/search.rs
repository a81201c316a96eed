//! When a cron line fires next, and when it fired last.
//!
//! Between two changes of a zone's offset the wall clock runs evenly, so each such span is searched
//! on the calendar alone, day by day; gaps and folds then need no thought, as the spans before and
//! after them are searched each by itself.

use jiff::{
    RoundMode, SignedDuration, Timestamp, Unit,
    civil::{Date, DateTime, DateTimeRound, Time},
};

use super::Cron;

/// How far to look. The rarest day there is, 29 February across a year like 2100, comes after eight
/// years; what does not come in twelve, such as 30 February, never does.
const HORIZON: SignedDuration = SignedDuration::from_hours(12 * 366 * 24);

/// The smallest step in time, to turn "at or after" into "after".
const INSTANT: SignedDuration = SignedDuration::from_nanos(1);

impl Cron {
    /// The first firing after the given time; none if the line names a date that never comes.
    pub fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        let horizon = time.checked_add(HORIZON).unwrap_or(Timestamp::MAX);
        let mut from = time.checked_add(INSTANT).ok()?;
        while from < horizon {
            let offset = self.zone.to_offset(from);
            let change = self.zone.following(from).next();
            let until = change.map_or(horizon, |change| change.timestamp().min(horizon));
            if let Some(clock) = self.first_in(offset.to_datetime(from), offset.to_datetime(until))
            {
                return offset.to_timestamp(clock).ok();
            }
            from = until;
        }
        None
    }

    /// The last firing at or before the given time; none if the line names a date that never comes.
    pub fn prev_at_or_before(&self, time: Timestamp) -> Option<Timestamp> {
        let horizon = time.checked_sub(HORIZON).unwrap_or(Timestamp::MIN);
        let mut until = time;
        while until > horizon {
            let offset = self.zone.to_offset(until);
            let change = self.zone.preceding(until.checked_add(INSTANT).ok()?).next();
            let from = change.map_or(horizon, |change| change.timestamp().max(horizon));
            if let Some(clock) = self.last_in(offset.to_datetime(from), offset.to_datetime(until)) {
                return offset.to_timestamp(clock).ok();
            }
            until = from.checked_sub(INSTANT).ok()?;
        }
        None
    }

    /// The first matching minute of the clock in `from..until`.
    fn first_in(&self, from: DateTime, until: DateTime) -> Option<DateTime> {
        let ceil = DateTimeRound::new()
            .smallest(Unit::Minute)
            .mode(RoundMode::Ceil);
        let start = from.round(ceil).ok()?;
        let (mut date, mut time) = (start.date(), start.time());
        while date <= until.date() {
            if self.matches_day(date)
                && let Some(found) = self.first_time(time)
            {
                let clock = date.to_datetime(found);
                return (clock < until).then_some(clock);
            }
            date = self.day_after(date)?;
            time = Time::midnight();
        }
        None
    }

    /// The last matching minute of the clock in `from..=until`.
    fn last_in(&self, from: DateTime, until: DateTime) -> Option<DateTime> {
        let (mut date, mut time) = (until.date(), until.time());
        while date >= from.date() {
            if self.matches_day(date)
                && let Some(found) = self.last_time(time)
            {
                let clock = date.to_datetime(found);
                return (clock >= from).then_some(clock);
            }
            date = self.day_before(date)?;
            time = Time::MAX;
        }
        None
    }

    /// The first matching minute of a day at or after `time`.
    fn first_time(&self, time: Time) -> Option<Time> {
        let in_this_hour = self.hours.contains(time.hour()).then(|| {
            self.minutes
                .at_or_after(time.minute())
                .map(|minute| (time.hour(), minute))
        });
        let later = || {
            Some((
                self.hours.at_or_after(time.hour() + 1)?,
                self.minutes.at_or_after(0)?,
            ))
        };
        let (hour, minute) = in_this_hour.flatten().or_else(later)?;
        Time::new(hour, minute, 0, 0).ok()
    }

    /// The last matching minute of a day at or before `time`.
    fn last_time(&self, time: Time) -> Option<Time> {
        let in_this_hour = self.hours.contains(time.hour()).then(|| {
            self.minutes
                .at_or_before(time.minute())
                .map(|minute| (time.hour(), minute))
        });
        let earlier = || {
            let hour = time.hour().checked_sub(1).filter(|hour| *hour >= 0)?;
            Some((
                self.hours.at_or_before(hour)?,
                self.minutes.at_or_before(59)?,
            ))
        };
        let (hour, minute) = in_this_hour.flatten().or_else(earlier)?;
        Time::new(hour, minute, 0, 0).ok()
    }

    /// The next day to look at: months that do not match are skipped whole.
    fn day_after(&self, date: Date) -> Option<Date> {
        let last_of_skipped = if self.months.contains(date.month()) {
            date
        } else {
            date.last_of_month()
        };
        last_of_skipped.tomorrow().ok()
    }

    /// The day to look at before: months that do not match are skipped whole.
    fn day_before(&self, date: Date) -> Option<Date> {
        let first_of_skipped = if self.months.contains(date.month()) {
            date
        } else {
            date.first_of_month()
        };
        first_of_skipped.yesterday().ok()
    }
}
