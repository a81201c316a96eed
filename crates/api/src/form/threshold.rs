//! The `threshold` of a trigger, which may be a number or a string with one.
//!
//! The schema leaves it untyped, as the peers do, so no CEL rule can see it: `hold::validate`
//! checks it with this, and the operator reads it with this.

use serde_json::Value;
use thiserror::Error;

use super::decimal::{LenientDecimalError, lenient_decimal};

/// Why a threshold is no use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ThresholdError {
    /// Neither a string nor a number.
    #[error("the threshold is {0}; write a number such as 0.5, or a string with one")]
    WrongType(&'static str),
    /// A string without a number in it.
    #[error("the threshold `{0}` is not a decimal number, such as 0.5")]
    NotADecimal(String),
    /// A number with which no value can be compared.
    #[error("the threshold `{0}` is not finite; write a decimal number, such as 0.5")]
    NotFinite(String),
    /// Bytes per second, below which nothing can be.
    #[error(
        "the threshold `{0}` is not above 0, so no traffic would ever be below it; write bytes per second, such as 4096"
    )]
    NotAboveZero(String),
}

/// The threshold as a finite number.
pub fn parse_threshold(value: &Value) -> Result<f64, ThresholdError> {
    match value {
        Value::String(text) => lenient_decimal(text).map_err(|error| match error {
            LenientDecimalError::NotADecimal(text) => ThresholdError::NotADecimal(text),
            LenientDecimalError::NotFinite(text) => ThresholdError::NotFinite(text),
        }),
        Value::Number(number) => number
            .as_f64()
            .filter(|number| number.is_finite())
            .ok_or_else(|| ThresholdError::NotFinite(number.to_string())),
        Value::Null => Err(ThresholdError::WrongType("missing")),
        Value::Bool(_) => Err(ThresholdError::WrongType("a boolean")),
        Value::Array(_) => Err(ThresholdError::WrongType("a list")),
        Value::Object(_) => Err(ThresholdError::WrongType("an object")),
    }
}

/// The threshold of a rate: a finite number above 0.
pub fn parse_rate(value: &Value) -> Result<f64, ThresholdError> {
    let rate = parse_threshold(value)?;
    if rate > 0.0 {
        Ok(rate)
    } else {
        Err(ThresholdError::NotAboveZero(rate.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_string_or_a_number() {
        for (value, threshold) in [
            (json!("0.5"), 0.5),
            (json!(0.5), 0.5),
            (json!(1), 1.0),
            (json!("-1"), -1.0),
            (json!("1e-3"), 0.001),
            (json!(u64::MAX), 18_446_744_073_709_551_615.0),
        ] {
            assert_eq!(parse_threshold(&value), Ok(threshold), "{value}");
        }
    }

    #[test]
    fn what_is_no_use_says_why() {
        for (value, message) in [
            (
                json!(null),
                "the threshold is missing; write a number such as 0.5, or a string with one",
            ),
            (
                json!(true),
                "the threshold is a boolean; write a number such as 0.5, or a string with one",
            ),
            (
                json!([1]),
                "the threshold is a list; write a number such as 0.5, or a string with one",
            ),
            (
                json!({}),
                "the threshold is an object; write a number such as 0.5, or a string with one",
            ),
            (
                json!("low"),
                "the threshold `low` is not a decimal number, such as 0.5",
            ),
            (
                json!(""),
                "the threshold `` is not a decimal number, such as 0.5",
            ),
            (
                json!("NaN"),
                "the threshold `NaN` is not finite; write a decimal number, such as 0.5",
            ),
        ] {
            assert_eq!(parse_threshold(&value).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn nothing_is_below_a_rate_of_zero() {
        assert_eq!(parse_rate(&json!("4096")), Ok(4096.0));
        assert_eq!(parse_rate(&json!(0.5)), Ok(0.5));
        for (value, message) in [
            (
                json!(0),
                "the threshold `0` is not above 0, so no traffic would ever be below it; write bytes per second, such as 4096",
            ),
            (
                json!("-1"),
                "the threshold `-1` is not above 0, so no traffic would ever be below it; write bytes per second, such as 4096",
            ),
            (
                json!("low"),
                "the threshold `low` is not a decimal number, such as 0.5",
            ),
        ] {
            assert_eq!(parse_rate(&value).unwrap_err().to_string(), message);
        }
        assert!(parse_rate(&json!(-0.0)).is_err());
    }

    proptest! {
        #[test]
        fn a_number_and_its_text_are_the_same(
            number in any::<f64>().prop_filter("finite", |number| number.is_finite()),
        ) {
            prop_assert_eq!(parse_threshold(&json!(number)), Ok(number));
            prop_assert_eq!(parse_threshold(&json!(number.to_string())), Ok(number));
        }
    }
}
