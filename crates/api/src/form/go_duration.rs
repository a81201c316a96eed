//! Durations as Go writes them: `1h30m`, `1.5s`, `250ms`.
//!
//! `enabledPeriod.duration`, `budgetWindow`, place's intervals and `POLLING_INTERVAL` were all read
//! by Go's `time.ParseDuration` before, so this accepts exactly what that accepts, and prints what
//! `Duration.String` prints.

use std::{fmt, str::FromStr, time::Duration};

use thiserror::Error;

/// One past the largest `i64`: the largest magnitude, which only a negative duration may have.
const LARGEST_MAGNITUDE: u64 = 1 << 63;

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// A signed span of time in whole nanoseconds, as Go's `time.Duration`: about ±292 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration(i64);

/// Why a text is not a duration, or why a duration is not a span that can be waited for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GoDurationError {
    /// Nothing, or only a sign.
    #[error("the duration is empty; write a number with a unit, such as 30s or 1h30m")]
    Empty,
    /// Where a number should stand there is none.
    #[error("`{0}` is not a duration; write numbers with units, such as 30s or 1h30m")]
    NotANumber(String),
    /// A number without a unit; only a single `0` may stand alone.
    #[error("`{0}` lacks a unit; add one of ns, us, ms, s, m or h, such as {0}s")]
    MissingUnit(String),
    /// A unit that Go does not know, such as `d`.
    #[error("`{unit}` in `{text}` is not a unit; use ns, us, ms, s, m or h (a day is 24h)")]
    UnknownUnit {
        /// The whole text.
        text: String,
        /// The part of it that stands where a unit should.
        unit: String,
    },
    /// More than 64 bits of nanoseconds hold.
    #[error("`{0}` is too long; a duration is at most 2562047h47m16.854775807s")]
    Overflow(String),
    /// A negative duration where a span of time is needed.
    #[error("{0} is negative; a span of time must not be")]
    Negative(GoDuration),
}

impl GoDuration {
    /// The duration of so many nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// The duration in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Parses what Go's `time.ParseDuration` accepts, and nothing else.
    pub fn parse(text: &str) -> Result<Self, GoDurationError> {
        let overflow = || GoDurationError::Overflow(text.to_owned());
        let negative = text.starts_with('-');
        let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
        if rest == "0" {
            return Ok(Self(0));
        }
        if rest.is_empty() {
            return Err(GoDurationError::Empty);
        }
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (span, after) = leading_span(text, rest)?;
            rest = after;
            total = total
                .checked_add(span)
                .filter(|sum| *sum <= LARGEST_MAGNITUDE)
                .ok_or_else(overflow)?;
        }
        let nanos = if negative {
            0_i64.checked_sub_unsigned(total)
        } else {
            i64::try_from(total).ok()
        };
        nanos.map(Self).ok_or_else(overflow)
    }

    /// The same span as a [`Duration`], which cannot be negative.
    pub fn to_std(self) -> Result<Duration, GoDurationError> {
        u64::try_from(self.0)
            .map(Duration::from_nanos)
            .map_err(|_| GoDurationError::Negative(self))
    }
}

impl FromStr for GoDuration {
    type Err = GoDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        match nanos {
            0 => f.write_str("0s"),
            1..MICROSECOND => write!(f, "{nanos}ns"),
            MICROSECOND..MILLISECOND => write!(f, "{}µs", with_fraction(nanos, MICROSECOND)),
            MILLISECOND..SECOND => write!(f, "{}ms", with_fraction(nanos, MILLISECOND)),
            _ => {
                if nanos >= HOUR {
                    write!(f, "{}h", nanos / HOUR)?;
                }
                if nanos >= MINUTE {
                    write!(f, "{}m", nanos % HOUR / MINUTE)?;
                }
                write!(f, "{}s", with_fraction(nanos % MINUTE, SECOND))
            }
        }
    }
}

/// The first `number unit` of `rest` in nanoseconds, and what follows it.
fn leading_span<'a>(text: &str, rest: &'a str) -> Result<(u64, &'a str), GoDurationError> {
    let overflow = || GoDurationError::Overflow(text.to_owned());
    let (whole, rest) = leading_digits(rest);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), leading_digits);
    if whole.is_empty() && fraction.is_empty() {
        return Err(GoDurationError::NotANumber(text.to_owned()));
    }
    let end = rest
        .find(|c: char| c == '.' || c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let unit_nanos = match unit {
        "" => return Err(GoDurationError::MissingUnit(text.to_owned())),
        "ns" => 1,
        // The micro sign (U+00B5) and the Greek letter mu (U+03BC) look alike; Go takes both.
        "us" | "\u{b5}s" | "\u{3bc}s" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        _ => {
            return Err(GoDurationError::UnknownUnit {
                text: text.to_owned(),
                unit: unit.to_owned(),
            });
        }
    };
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| overflow())?
    };
    let nanos = whole
        .checked_mul(unit_nanos)
        .and_then(|nanos| nanos.checked_add(fraction_nanos(fraction, unit_nanos)))
        .filter(|nanos| *nanos <= LARGEST_MAGNITUDE)
        .ok_or_else(overflow)?;
    Ok((nanos, rest))
}

/// `0.<digits>` of a unit in nanoseconds, rounded down the way Go does it: in floating point, from
/// as many digits as 63 bits hold.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "Go computes in float64 here, and the same text must give the same nanoseconds"
)]
fn fraction_nanos(digits: &str, unit_nanos: u64) -> u64 {
    let (mut value, mut scale) = (0_u64, 1.0_f64);
    for digit in digits.bytes().map(|byte| u64::from(byte - b'0')) {
        match value
            .checked_mul(10)
            .and_then(|tenfold| tenfold.checked_add(digit))
        {
            Some(longer) if longer <= LARGEST_MAGNITUDE => value = longer,
            _ => break,
        }
        scale *= 10.0;
    }
    (value as f64 * (unit_nanos as f64 / scale)) as u64
}

/// The decimal digits that `text` starts with, and the rest.
fn leading_digits(text: &str) -> (&str, &str) {
    text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    )
}

/// `nanos` in units of `unit`, with as many decimal places as it takes.
fn with_fraction(nanos: u64, unit: u64) -> String {
    let (whole, part) = (nanos / unit, nanos % unit);
    if part == 0 {
        return whole.to_string();
    }
    // `unit` is a power of ten, so its zeros are the number of decimal places.
    let places = unit.ilog10() as usize;
    let digits = format!("{part:0places$}");
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Text, nanoseconds and printed form, all three as Go 1.24 gives them.
    const GIVEN_BY_GO: &[(&str, i64, &str)] = &[
        ("1h30m", 5_400_000_000_000, "1h30m0s"),
        ("30m1h", 5_400_000_000_000, "1h30m0s"),
        ("90m", 5_400_000_000_000, "1h30m0s"),
        ("1m1m", 120_000_000_000, "2m0s"),
        ("1.5s", 1_500_000_000, "1.5s"),
        ("1500ms", 1_500_000_000, "1.5s"),
        (".5s", 500_000_000, "500ms"),
        ("5.s", 5_000_000_000, "5s"),
        ("1.h", 3_600_000_000_000, "1h0m0s"),
        ("00001s", 1_000_000_000, "1s"),
        ("+5s", 5_000_000_000, "5s"),
        ("-1.5h", -5_400_000_000_000, "-1h30m0s"),
        ("100h", 360_000_000_000_000, "100h0m0s"),
        ("0", 0, "0s"),
        ("-0", 0, "0s"),
        ("1ns", 1, "1ns"),
        ("999ns", 999, "999ns"),
        ("1001ns", 1_001, "1.001µs"),
        ("1us", 1_000, "1µs"),
        ("1\u{b5}s", 1_000, "1µs"),
        ("1\u{3bc}s", 1_000, "1µs"),
        ("1.000000001s", 1_000_000_001, "1.000000001s"),
        ("39877.61s", 39_877_610_000_000, "11h4m37.61s"),
        ("0.3333333333333333333h", 1_200_000_000_000, "20m0s"),
        (
            "0.9223372036854775807h",
            3_320_413_933_267,
            "55m20.413933267s",
        ),
        (
            "9223372036854775807ns",
            i64::MAX,
            "2562047h47m16.854775807s",
        ),
        (
            "-9223372036854775808ns",
            i64::MIN,
            "-2562047h47m16.854775808s",
        ),
    ];

    #[test]
    fn parses_and_prints_as_go_does() {
        for (text, nanos, printed) in GIVEN_BY_GO {
            let duration = GoDuration::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(duration.as_nanos(), *nanos, "{text}");
            assert_eq!(duration.to_string(), *printed, "{text}");
        }
    }

    #[test]
    fn refuses_what_go_refuses_and_says_why() {
        use GoDurationError::{Empty, MissingUnit, NotANumber, Overflow, UnknownUnit};
        let own = str::to_owned;
        let unknown = |text: &str, unit: &str| UnknownUnit {
            text: own(text),
            unit: own(unit),
        };
        for (text, error) in [
            ("", Empty),
            ("-", Empty),
            ("+", Empty),
            ("1", MissingUnit(own("1"))),
            ("1h5", MissingUnit(own("1h5"))),
            (".s", NotANumber(own(".s"))),
            (" 1s", NotANumber(own(" 1s"))),
            ("--1s", NotANumber(own("--1s"))),
            ("1d", unknown("1d", "d")),
            ("1h ", unknown("1h ", "h ")),
            ("1S", unknown("1S", "S")),
            (
                "9223372036854775808ns",
                Overflow(own("9223372036854775808ns")),
            ),
            (
                "9223372036854775.808us",
                Overflow(own("9223372036854775.808us")),
            ),
            ("3000000h", Overflow(own("3000000h"))),
            (
                "99999999999999999999s",
                Overflow(own("99999999999999999999s")),
            ),
        ] {
            assert_eq!(GoDuration::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn only_a_duration_that_is_not_negative_can_be_waited_for() {
        let parse = |text| GoDuration::parse(text).unwrap();
        assert_eq!(parse("1.5s").to_std(), Ok(Duration::from_millis(1500)));
        assert_eq!(parse("0").to_std(), Ok(Duration::ZERO));
        let refused = parse("-1ns").to_std().unwrap_err();
        assert_eq!(
            refused.to_string(),
            "-1ns is negative; a span of time must not be"
        );
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_back(nanos in any::<i64>()) {
            let duration = GoDuration::from_nanos(nanos);
            prop_assert_eq!(GoDuration::parse(&duration.to_string()), Ok(duration));
        }

        #[test]
        fn small_ones_print_and_parse_back_too(nanos in -10_000_000_000_i64..10_000_000_000) {
            let duration = GoDuration::from_nanos(nanos);
            prop_assert_eq!(GoDuration::parse(&duration.to_string()), Ok(duration));
        }

        #[test]
        fn units_add_up_in_any_order(h in 0_i64..1000, m in 0_i64..1000, s in 0_i64..1000) {
            let nanos = ((h * 60 + m) * 60 + s) * 1_000_000_000;
            for text in [format!("{h}h{m}m{s}s"), format!("{s}s{h}h{m}m")] {
                prop_assert_eq!(GoDuration::parse(&text), Ok(GoDuration::from_nanos(nanos)));
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-+0-9.nuµμmsh ]{0,24}|\\PC{0,12}") {
            let _ = GoDuration::parse(&text);
        }
    }
}
