//! Decimal numbers as strings: the strict ones of `TrafficWatch`, the lenient ones of
//! `TrafficSchedule`, and Go's way to print one.
//!
//! The patterns are RE2 and stand in the schemas' CEL rules word for word; here the grammar is read
//! by hand, and tests hold both together. `precision` and `threshold` build on this file.

use thiserror::Error;

/// What a positive decimal of a `TrafficWatch` looks like. CEL's `double()` alone would also take
/// `Inf` and `0x1p3`.
pub const POSITIVE_DECIMAL_PATTERN: &str = r"^[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$";

/// The most characters that a positive decimal of a `TrafficWatch` may have.
pub const POSITIVE_DECIMAL_MAX_LENGTH: usize = 32;

/// What a decimal of a `TrafficSchedule` looks like; anything else falls to the field's default.
pub const LENIENT_DECIMAL_PATTERN: &str =
    r"^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$";

/// How Go and Python spell a number that is not finite; a `TrafficSchedule` with one is refused.
pub const NOT_FINITE_PATTERN: &str =
    r"^\s*[+-]?([nN][aA][nN]|[iI][nN][fF]([iI][nN][iI][tT][yY])?)\s*$";

/// A finite number above zero, as `maxBandwidthPercent` and `clearPercent` hold it.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct PositiveDecimal(f64);

/// Why a text is not a positive decimal.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PositiveDecimalError {
    /// More characters than [`POSITIVE_DECIMAL_MAX_LENGTH`].
    #[error("the number has {0} characters; at most {POSITIVE_DECIMAL_MAX_LENGTH} are allowed")]
    TooLong(usize),
    /// Not of the form of [`POSITIVE_DECIMAL_PATTERN`].
    #[error("`{0}` is not a plain decimal number, such as 60, 0.5 or 1.5e-03")]
    NotADecimal(String),
    /// Zero, or so small that it is zero in 64 bits.
    #[error("`{0}` is zero; the number must be above zero")]
    NotPositive(String),
    /// So large that it is infinite in 64 bits.
    #[error("`{0}` is too large; the number must be finite")]
    NotFinite(String),
}

/// Why a text is not a decimal of a `TrafficSchedule`. The two cases differ in what follows.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LenientDecimalError {
    /// No number at all: the caller takes the field's default and says so in a condition.
    #[error("`{0}` is not a decimal number, such as 0.15")]
    NotADecimal(String),
    /// A number that is not finite: the caller refuses it.
    #[error("`{0}` is not finite; write a decimal number, such as 0.15")]
    NotFinite(String),
}

/// The parts of a decimal number, as they are written. Digits only, except for the exponent's sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DecimalParts<'a> {
    pub(super) negative: bool,
    pub(super) whole: &'a str,
    pub(super) fraction: &'a str,
    /// Empty when there is none.
    pub(super) exponent: &'a str,
}

impl PositiveDecimal {
    /// Parses a text of the form of [`POSITIVE_DECIMAL_PATTERN`].
    pub fn parse(text: &str) -> Result<Self, PositiveDecimalError> {
        let length = text.chars().count();
        if length > POSITIVE_DECIMAL_MAX_LENGTH {
            return Err(PositiveDecimalError::TooLong(length));
        }
        if !is_strict_decimal(text) {
            return Err(PositiveDecimalError::NotADecimal(text.to_owned()));
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_infinite() => {
                Err(PositiveDecimalError::NotFinite(text.to_owned()))
            }
            Ok(value) if value > 0.0 => Ok(Self(value)),
            Ok(_) => Err(PositiveDecimalError::NotPositive(text.to_owned())),
            Err(_) => Err(PositiveDecimalError::NotADecimal(text.to_owned())),
        }
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// Parses a decimal of a `TrafficSchedule`: [`LENIENT_DECIMAL_PATTERN`], and finite. Spaces around it
/// do not matter, as they did not to the original.
///
/// A number too large for 64 bits is [`LenientDecimalError::NotFinite`], as it is infinite to
/// whoever computes with it.
pub fn lenient_decimal(text: &str) -> Result<f64, LenientDecimalError> {
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
    if names_a_number_that_is_not_finite(text) {
        return Err(LenientDecimalError::NotFinite(text.to_owned()));
    }
    let not_a_decimal = || LenientDecimalError::NotADecimal(text.to_owned());
    split_decimal(text).ok_or_else(not_a_decimal)?;
    let value: f64 = text.parse().map_err(|_| not_a_decimal())?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err(LenientDecimalError::NotFinite(text.to_owned()))
    }
}

/// The number as Go's `strconv.FormatFloat(x, 'e', -1, 64)` prints it: `1.06976e-04`, `6e+01`.
///
/// `status.nodes[].currentBandwidthPercent` is written so, because the original's readers know it
/// so. Before the first window that field is a bare `0`: that is up to the caller, as here zero is
/// `0e+00`, the way Go has it.
pub fn go_scientific(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    // Rust prints the same shortest digits, but the exponent bare: `1.06976e-4`, `6e1`. (Where two
    // shortest ones are equally near, which starts at 10^14, the last digit may differ from Go's.)
    let printed = format!("{value:e}");
    let Some((mantissa, exponent)) = printed.split_once('e') else {
        return printed;
    };
    let (sign, digits) = exponent
        .strip_prefix('-')
        .map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// Takes a text of the form of [`LENIENT_DECIMAL_PATTERN`] apart.
pub(super) fn split_decimal(text: &str) -> Option<DecimalParts<'_>> {
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || !all_digits(digits) {
                return None;
            }
            (mantissa, exponent)
        }
        None => (unsigned, ""),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    (has_digits && all_digits(whole) && all_digits(fraction)).then_some(DecimalParts {
        negative,
        whole,
        fraction,
        exponent,
    })
}

/// Whether the text is of the form of [`POSITIVE_DECIMAL_PATTERN`].
fn is_strict_decimal(text: &str) -> bool {
    split_decimal(text).is_some_and(|parts| {
        let exponent_digits = parts.exponent.trim_start_matches(['+', '-']).len();
        text.starts_with(|c: char| c.is_ascii_digit())
            && parts.fraction.is_empty() != text.contains('.')
            && exponent_digits <= 3
    })
}

fn names_a_number_that_is_not_finite(text: &str) -> bool {
    let name = text.strip_prefix(['+', '-']).unwrap_or(text);
    ["nan", "inf", "infinity"]
        .iter()
        .any(|spelling| name.eq_ignore_ascii_case(spelling))
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    #[test]
    fn positive_decimals() {
        for (text, value) in [
            ("60", 60.0),
            ("1.5e-03", 0.0015),
            ("007", 7.0),
            ("1E+2", 100.0),
        ] {
            assert_eq!(
                PositiveDecimal::parse(text).map(PositiveDecimal::get),
                Ok(value),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_not_a_positive_decimal() {
        use PositiveDecimalError::{NotADecimal, NotFinite, NotPositive, TooLong};
        let own = str::to_owned;
        for text in [
            "", "-1", "+1", ".5", "5.", "1e", "1e1000", "0x1p3", "Inf", "60%", " 60",
        ] {
            assert_eq!(
                PositiveDecimal::parse(text),
                Err(NotADecimal(own(text))),
                "{text}"
            );
        }
        assert_eq!(
            PositiveDecimal::parse("0.00"),
            Err(NotPositive(own("0.00")))
        );
        assert_eq!(
            PositiveDecimal::parse("1e-999"),
            Err(NotPositive(own("1e-999")))
        );
        assert_eq!(
            PositiveDecimal::parse("1e999"),
            Err(NotFinite(own("1e999")))
        );
        assert!(PositiveDecimal::parse(&"1".repeat(32)).is_ok());
        assert_eq!(PositiveDecimal::parse(&"1".repeat(33)), Err(TooLong(33)));
    }

    #[test]
    fn lenient_decimals() {
        for (text, value) in [
            ("0.15", 0.15),
            ("-1", -1.0),
            ("+.5", 0.5),
            ("5.", 5.0),
            ("1e2", 100.0),
            ("5.e-1", 0.5),
            (" 1", 1.0),
            ("1\t ", 1.0),
        ] {
            assert_eq!(lenient_decimal(text), Ok(value), "{text}");
        }
        for text in [
            "", ".", "+", "e5", "1e", "1_000", "0x10", "1,5", "1 2", "infinit", "१",
        ] {
            let error = LenientDecimalError::NotADecimal(text.to_owned());
            assert_eq!(lenient_decimal(text), Err(error), "{text}");
        }
        for text in ["NaN", "-nan", "inf", "+Inf", "-INFINITY", "1e999", "-1e999"] {
            let error = LenientDecimalError::NotFinite(text.to_owned());
            assert_eq!(lenient_decimal(text), Err(error), "{text}");
        }
    }

    #[test]
    fn printed_as_go_prints() {
        for (value, printed) in [
            (0.000_106_976, "1.06976e-04"),
            (60.0, "6e+01"),
            (0.0, "0e+00"),
            (1.0, "1e+00"),
            (100.0, "1e+02"),
            (99.95, "9.995e+01"),
            (123_456_789.0, "1.23456789e+08"),
            (-2.5, "-2.5e+00"),
            (1e100, "1e+100"),
            (1.5e-300, "1.5e-300"),
            (5e-324, "5e-324"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
        ] {
            assert_eq!(go_scientific(value), printed);
        }
    }

    proptest! {
        #[test]
        fn parsers_and_patterns_agree(text in "[-+.eE0-9]{0,10}|[+-]?(?i:nan|inf|infinity)") {
            let is = |pattern: &str| Regex::new(pattern).unwrap().is_match(&text);
            prop_assert_eq!(is_strict_decimal(&text), is(POSITIVE_DECIMAL_PATTERN));
            prop_assert_eq!(split_decimal(&text).is_some(), is(LENIENT_DECIMAL_PATTERN));
            prop_assert_eq!(names_a_number_that_is_not_finite(&text), is(NOT_FINITE_PATTERN));
            // Whatever has the form is a number to Rust, so `parse` never fails after the check.
            prop_assert!(!is(LENIENT_DECIMAL_PATTERN) || text.parse::<f64>().is_ok());
        }

        #[test]
        fn printing_loses_nothing(value in any::<f64>().prop_filter("finite", |x| x.is_finite())) {
            let printed = go_scientific(value);
            prop_assert_eq!(printed.parse::<f64>(), Ok(value));
            let exponent = printed.split_once('e').map(|(_, exponent)| exponent.len());
            prop_assert!(exponent >= Some(3));
        }
    }
}
