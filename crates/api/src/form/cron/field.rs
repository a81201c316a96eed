//! One of the five fields of a cron line: a list of values, ranges and steps, as a set of bits.

use std::fmt;

use thiserror::Error;

/// Which of the five fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldName {
    /// 0–59.
    Minute,
    /// 0–23.
    Hour,
    /// 1–31.
    DayOfMonth,
    /// 1–12 or JAN–DEC.
    Month,
    /// 0–6 or SUN–SAT.
    DayOfWeek,
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FieldError {
    /// Nothing but commas.
    #[error("the list is empty; write * for any")]
    Empty,
    /// Neither a number nor a name that the field knows.
    #[error("`{0}` is not a value; write a number, a range such as 1-5, or *")]
    NotAValue(String),
    /// A value outside the field's bounds.
    #[error("{value} is out of range; use {min} to {max}")]
    OutOfRange {
        /// The value.
        value: u32,
        /// The least that the field takes.
        min: u32,
        /// The most that it takes.
        max: u32,
    },
    /// A range whose end lies before its start.
    #[error("the range {0}-{1} runs backwards; split it into two, separated by a comma")]
    Reversed(u32, u32),
    /// A step that is not a number above zero.
    #[error("`{0}` is not a step; write a number above zero")]
    BadStep(String),
}

/// The values that a field allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Bit n stands for the value n.
    bits: u64,
    /// Whether the field says `*`, `?`, or either in steps of one: then the other day field alone
    /// decides about the day. In larger steps it is a restriction like any other.
    any: bool,
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl FieldName {
    const fn bounds(self) -> (u32, u32) {
        match self {
            Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek => (0, 6),
        }
    }

    /// The names of the field's values, from the least on.
    const fn value_names(self) -> &'static [&'static str] {
        match self {
            Self::Month => &MONTHS,
            Self::DayOfWeek => &WEEKDAYS,
            Self::Minute | Self::Hour | Self::DayOfMonth => &[],
        }
    }
}

impl fmt::Display for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
        })
    }
}

impl Field {
    /// Parses a comma-separated list. As in robfig, empty items are skipped: `1,,2` is `1,2`.
    pub(super) fn parse(name: FieldName, text: &str) -> Result<Self, FieldError> {
        let mut whole = Self {
            bits: 0,
            any: false,
        };
        for item in text.split(',').filter(|item| !item.is_empty()) {
            let part = Self::parse_item(name, item)?;
            whole.bits |= part.bits;
            whole.any |= part.any;
        }
        if whole.bits == 0 {
            Err(FieldError::Empty)
        } else {
            Ok(whole)
        }
    }

    /// Parses `*`, `a` or `a-b`, each perhaps with `/step`.
    fn parse_item(name: FieldName, item: &str) -> Result<Self, FieldError> {
        let (min, max) = name.bounds();
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(parse_step(step)?)),
            None => (item, None),
        };
        let is_star = matches!(range, "*" | "?");
        let (start, end) = match range.split_once('-') {
            _ if is_star => (min, max),
            Some((start, end)) => (parse_value(name, start)?, parse_value(name, end)?),
            None => {
                let value = parse_value(name, range)?;
                (value, if step.is_some() { max } else { value })
            }
        };
        if let Some(value) = [start, end]
            .into_iter()
            .find(|value| !(min..=max).contains(value))
        {
            return Err(FieldError::OutOfRange { value, min, max });
        }
        if start > end {
            return Err(FieldError::Reversed(start, end));
        }
        let step = step.unwrap_or(1);
        let bits = (start..=end)
            .step_by(step)
            .fold(0, |bits, value| bits | 1 << value);
        Ok(Self {
            bits,
            any: is_star && step == 1,
        })
    }

    /// Whether the field restricts nothing.
    pub(super) const fn is_any(self) -> bool {
        self.any
    }

    /// Whether the field allows the value, which comes from a calendar.
    pub(super) fn contains(self, value: i8) -> bool {
        self.at_or_after(value) == Some(value)
    }

    /// The least value at or after the given one.
    pub(super) fn at_or_after(self, value: i8) -> Option<i8> {
        let bits = self.bits & u64::MAX.checked_shl(u32::from(value.unsigned_abs()))?;
        if bits == 0 {
            None
        } else {
            i8::try_from(bits.trailing_zeros()).ok()
        }
    }

    /// The greatest value at or before the given one.
    pub(super) fn at_or_before(self, value: i8) -> Option<i8> {
        let unwanted = u64::MAX
            .checked_shl(u32::from(value.unsigned_abs()) + 1)
            .unwrap_or(0);
        (self.bits & !unwanted)
            .checked_ilog2()
            .and_then(|bit| i8::try_from(bit).ok())
    }
}

fn parse_value(name: FieldName, text: &str) -> Result<u32, FieldError> {
    let (min, _) = name.bounds();
    let named = (min..)
        .zip(name.value_names())
        .find_map(|(value, known)| text.eq_ignore_ascii_case(known).then_some(value));
    match named {
        Some(value) => Ok(value),
        None => text
            .parse()
            .map_err(|_| FieldError::NotAValue(text.to_owned())),
    }
}

fn parse_step(text: &str) -> Result<usize, FieldError> {
    match text.parse() {
        Ok(0) | Err(_) => Err(FieldError::BadStep(text.to_owned())),
        Ok(step) => Ok(step),
    }
}
