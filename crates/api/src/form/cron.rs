//! Cron lines of five fields: `enabledPeriod.schedule` and the `schedule` trigger of an
//! `ElastiService`.
//!
//! They mean what they mean to robfig/cron's standard parser, which read them before: `?` is `*`,
//! Sunday is 0 and only 0, `5/15` runs from 5 to the end in steps of 15, and when both days are
//! restricted either will do. [`field`] reads one field; [`search`] finds the firings, and [`pause`]
//! the end of windows that overlap.
//!
//! **Daylight saving time**, as robfig has it: a firing is an instant at which the wall clock of the
//! zone shows a matching minute. A time that the clock jumps over does not fire that day, and one
//! that it shows twice fires twice. On the few days when robfig's own search slips from that rule
//! (midnight is jumped over, or the clock changes by half an hour), the rule is followed.
//!
//! Two deliberate differences: `@daily` and its like are refused, and so is the meaningless `*-5`.

mod field;
mod pause;
mod search;
#[cfg(test)]
mod tests;

use jiff::{
    Timestamp,
    civil::{Date, DateTime},
    tz::{TimeZone, TimeZoneDatabase},
};
use thiserror::Error;

use self::field::Field;
pub use self::field::{FieldError, FieldName};

/// A parsed cron line, with its time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: Field,
    hours: Field,
    days_of_month: Field,
    months: Field,
    days_of_week: Field,
    zone: TimeZone,
}

/// Why a text is not a cron line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CronError {
    /// Not five fields.
    #[error(
        "the schedule has {0} fields; write five: minute, hour, day of month, month, day of week"
    )]
    FieldCount(usize),
    /// `@daily` and its like, which have a form of five fields.
    #[error("`{descriptor}` is not accepted; write `{fields}`, which means the same")]
    Descriptor {
        /// The descriptor.
        descriptor: String,
        /// The five fields that say the same.
        fields: &'static str,
    },
    /// Anything else that starts with `@`, such as `@every 1h`.
    #[error(
        "`{0}` is not accepted; write five fields: minute, hour, day of month, month, day of week"
    )]
    UnknownDescriptor(String),
    /// A zone that is not in the IANA database.
    #[error("`{0}` is not a time zone; use an IANA name, such as Europe/Berlin")]
    UnknownZone(String),
    /// One of the fields is wrong.
    #[error("{name} `{text}`: {source}")]
    Field {
        /// Which field.
        name: FieldName,
        /// What it says.
        text: String,
        /// What is wrong with it.
        source: FieldError,
    },
}

impl Cron {
    /// Parses five fields, after an optional `CRON_TZ=Zone ` or `TZ=Zone `; without it, in UTC.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let text = text.trim();
        let (zone, fields) = split_zone(text)?;
        if fields.starts_with('@') {
            return Err(refuse_descriptor(fields));
        }
        let texts: Vec<&str> = fields.split_whitespace().collect();
        let [minutes, hours, days_of_month, months, days_of_week] = texts.as_slice() else {
            return Err(CronError::FieldCount(texts.len()));
        };
        let field = |name: FieldName, text: &str| {
            Field::parse(name, text).map_err(|source| CronError::Field {
                name,
                text: text.to_owned(),
                source,
            })
        };
        Ok(Self {
            minutes: field(FieldName::Minute, minutes)?,
            hours: field(FieldName::Hour, hours)?,
            days_of_month: field(FieldName::DayOfMonth, days_of_month)?,
            months: field(FieldName::Month, months)?,
            days_of_week: field(FieldName::DayOfWeek, days_of_week)?,
            zone,
        })
    }

    /// The zone whose wall clock the line speaks of.
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Whether the line names this minute of the wall clock; seconds do not matter.
    pub fn matches(&self, clock: DateTime) -> bool {
        self.matches_day(clock.date())
            && self.hours.contains(clock.hour())
            && self.minutes.contains(clock.minute())
    }

    /// Whether now lies in a window that a firing opens: some firing t has t ≤ now < t + duration.
    pub fn window_contains(&self, now: Timestamp, duration: std::time::Duration) -> bool {
        // The latest firing decides: the windows of earlier ones end earlier.
        self.prev_at_or_before(now).is_some_and(|opened| {
            std::time::Duration::try_from(now.duration_since(opened))
                .is_ok_and(|elapsed| elapsed < duration)
        })
    }

    fn matches_day(&self, date: Date) -> bool {
        if !self.months.contains(date.month()) {
            return false;
        }
        let by_month = self.days_of_month.contains(date.day());
        let by_week = self
            .days_of_week
            .contains(date.weekday().to_sunday_zero_offset());
        if self.days_of_month.is_any() || self.days_of_week.is_any() {
            by_month && by_week
        } else {
            by_month || by_week
        }
    }
}

/// Takes the zone off the front of a line.
fn split_zone(text: &str) -> Result<(TimeZone, &str), CronError> {
    let Some(rest) = text
        .strip_prefix("CRON_TZ=")
        .or_else(|| text.strip_prefix("TZ="))
    else {
        return Ok((TimeZone::UTC, text));
    };
    let (name, fields) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    // The bundled database, not the machine's: the same line must mean the same everywhere.
    let zone = TimeZoneDatabase::bundled()
        .get(name)
        .map_err(|_| CronError::UnknownZone(name.to_owned()))?;
    Ok((zone, fields.trim_start()))
}

fn refuse_descriptor(descriptor: &str) -> CronError {
    let fields = match descriptor {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => return CronError::UnknownDescriptor(descriptor.to_owned()),
    };
    CronError::Descriptor {
        descriptor: descriptor.to_owned(),
        fields,
    }
}
