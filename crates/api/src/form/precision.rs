//! The label `carbonstat.precision` of a flavour's Deployment: `85`, `0.85`, `1`.
//!
//! Below one it is a fraction, from one on a percentage, and `1` itself is the whole: nobody runs a
//! flavour of one percent. The budget counts errors in whole millionths, so the value is read from
//! its digits and kept as such, without floating point; `steer::names` makes flavour names of it.

use thiserror::Error;

use super::decimal::{DecimalParts, split_decimal};

/// A precision of 100 %, in millionths.
pub const WHOLE_MILLIONTHS: u32 = 1_000_000;

/// How precise a flavour's answers are: above 0, at most 100 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Precision {
    millionths: u32,
}

/// Why a label value is not a precision.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PrecisionError {
    /// No number at all.
    #[error("`{0}` is not a number; write a percentage such as 85, or a fraction such as 0.85")]
    NotANumber(String),
    /// Zero, negative, or less than a millionth.
    #[error("`{0}` is not above zero; a precision is above 0 and at most 100")]
    NotPositive(String),
    /// More than 100 %.
    #[error("`{0}` is above 100; a precision is above 0 and at most 100")]
    TooLarge(String),
}

impl Precision {
    /// Parses a label value.
    ///
    /// Digits beyond a millionth are cut off: a precision is never taken for better than it is.
    pub fn parse(text: &str) -> Result<Self, PrecisionError> {
        let parts =
            split_decimal(text).ok_or_else(|| PrecisionError::NotANumber(text.to_owned()))?;
        let not_positive = || PrecisionError::NotPositive(text.to_owned());
        let too_large = || PrecisionError::TooLarge(text.to_owned());

        let number = Significant::of(parts);
        if number.digits.is_empty() || parts.negative {
            return Err(not_positive());
        }
        let is_fraction = number.point <= 0 || (number.digits == "1" && number.point == 1);
        // A fraction has six decimal places in a millionth, a percentage has four.
        let places = if is_fraction { 6 } else { 4 };
        match number.scaled_down(places) {
            Some(0) => Err(not_positive()),
            Some(millionths) if millionths < WHOLE_MILLIONTHS => Ok(Self { millionths }),
            // Exactly the whole: `100.00001` must not slip through because its end is cut off.
            Some(WHOLE_MILLIONTHS) if number.digits == "1" => Ok(Self {
                millionths: WHOLE_MILLIONTHS,
            }),
            _ => Err(too_large()),
        }
    }

    /// The precision in millionths, 1 to 1,000,000.
    pub const fn millionths(self) -> u32 {
        self.millionths
    }

    /// The error of an answer, 1 − precision, in millionths: what a budget is charged.
    pub const fn error_millionths(self) -> u32 {
        WHOLE_MILLIONTHS - self.millionths
    }

    /// The precision in whole percent, rounded to the nearest (halves up): what names and status
    /// show. Two precisions that round alike are one flavour, as in the original.
    pub const fn percent(self) -> u32 {
        (self.millionths + 5_000) / 10_000
    }
}

/// A number as `0.<digits> × 10^point`, where the digits neither start nor end with a zero.
struct Significant {
    digits: String,
    point: i64,
}

impl Significant {
    fn of(parts: DecimalParts<'_>) -> Self {
        let written = format!("{}{}", parts.whole, parts.fraction);
        let digits = written.trim_start_matches('0');
        let leading_zeros = length(&written) - length(digits);
        // An exponent too long to read moves the point out of sight, on the side of its sign.
        let exponent = match parts.exponent {
            "" => 0,
            text if text.starts_with('-') => text.parse().unwrap_or(i64::MIN / 2),
            text => text.parse().unwrap_or(i64::MAX / 2),
        };
        Self {
            digits: digits.trim_end_matches('0').to_owned(),
            point: (length(parts.whole) - leading_zeros).saturating_add(exponent),
        }
    }

    /// The number times ten to the power of `places`, rounded down; none when 32 bits cannot hold it.
    fn scaled_down(&self, places: i64) -> Option<u32> {
        let kept = usize::try_from(self.point.saturating_add(places)).unwrap_or(0);
        if kept == 0 {
            return Some(0);
        }
        // More than ten digits are more than 32 bits hold.
        if kept > 10 {
            return None;
        }
        format!(
            "{:0<kept$}",
            self.digits.get(..kept).unwrap_or(&self.digits)
        )
        .parse()
        .ok()
    }
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fractions_percentages_and_the_whole() {
        for (text, millionths, percent) in [
            ("100", 1_000_000, 100),
            ("1", 1_000_000, 100),
            ("1.0", 1_000_000, 100),
            ("01", 1_000_000, 100),
            ("1e0", 1_000_000, 100),
            ("1e2", 1_000_000, 100),
            ("85", 850_000, 85),
            ("85.5", 855_000, 86),
            ("0.85", 850_000, 85),
            (".3", 300_000, 30),
            ("5e-1", 500_000, 50),
            ("0.29", 290_000, 29),
            ("2", 20_000, 2),
            // Just above one: one percent and a bit, rounded as the original does.
            ("1.5", 15_000, 2),
            ("1.4", 14_000, 1),
            ("0.999999999", 999_999, 100),
            ("33.333333333", 333_333, 33),
            ("0.000001", 1, 0),
        ] {
            let precision = Precision::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(precision.millionths(), millionths, "{text}");
            assert_eq!(
                precision.error_millionths(),
                1_000_000 - millionths,
                "{text}"
            );
            assert_eq!(precision.percent(), percent, "{text}");
        }
    }

    #[test]
    fn what_is_not_a_precision() {
        use PrecisionError::{NotANumber, NotPositive, TooLarge};
        let own = str::to_owned;
        for text in ["", "high", "50%", "NaN", "0,5", " 50", "0x10"] {
            assert_eq!(Precision::parse(text), Err(NotANumber(own(text))), "{text}");
        }
        for text in [
            "0",
            "0.0",
            "-1",
            "-0.5",
            "0.0000001",
            "1e-99999999999999999999",
            "0e9",
        ] {
            assert_eq!(
                Precision::parse(text),
                Err(NotPositive(own(text))),
                "{text}"
            );
        }
        for text in [
            "101",
            "100.001",
            "100.00001",
            "1000000",
            "1e3",
            "1e99999999999999999999",
        ] {
            assert_eq!(Precision::parse(text), Err(TooLarge(own(text))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_fraction_and_its_percentage_are_the_same(millionths in 10_001_u32..1_000_000) {
            let fraction = Precision::parse(&format!("0.{millionths:06}")).unwrap();
            let percentage =
                Precision::parse(&format!("{}.{:04}", millionths / 10_000, millionths % 10_000));
            prop_assert_eq!(Ok(fraction), percentage);
            prop_assert_eq!(fraction.millionths(), millionths);
            prop_assert!(fraction.percent() <= 100);
        }

        #[test]
        fn no_label_value_makes_it_panic(text in "[-+.eE0-9]{0,63}|\\PC{0,20}") {
            if let Ok(precision) = Precision::parse(&text) {
                prop_assert!((1..=WHOLE_MILLIONTHS).contains(&precision.millionths()));
            }
        }
    }
}
