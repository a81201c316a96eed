//! A NIC's bandwidth as people write it: `10Gbit`, `2.5Gbit/s`, `100Mbps`, `1000000000`.
//!
//! The node annotation `traffic.example.com/bandwidth` holds one. Units are decimal (a kbit is 1000
//! bit) and in bits: the letter before the unit may be of either case, since nobody means millibits,
//! and so may `bit`; but in `bps` the case of the `b` tells bits from bytes elsewhere, so only the
//! lower-case one is taken. A number without a unit is bits per second.

use thiserror::Error;

use super::decimal::split_decimal;

/// A rate above zero, in whole bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitsPerSecond(u64);

/// Why a text is not a bandwidth.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BandwidthError {
    /// It does not start with a plain decimal number.
    #[error("`{0}` does not start with a number; write a bandwidth such as 10Gbit")]
    NotANumber(String),
    /// A unit that we do not know, or that means bytes.
    #[error("`{0}` is not a unit of bits per second; use bit, kbit, Mbit, Gbit or Tbit")]
    UnknownUnit(String),
    /// A fraction of a bit.
    #[error("`{0}` is not a whole number of bits per second")]
    NotWhole(String),
    /// Zero.
    #[error("`{0}` is zero; a bandwidth must be above zero")]
    Zero(String),
    /// More than 64 bits hold.
    #[error("`{0}` is too large; a bandwidth is below 18 million Tbit")]
    TooLarge(String),
}

impl BitsPerSecond {
    /// Parses a bandwidth; spaces around the number and the unit do not matter.
    pub fn parse(text: &str) -> Result<Self, BandwidthError> {
        let own = || text.to_owned();
        let trimmed = text.trim();
        let end = trimmed
            .find(|c: char| c != '.' && !c.is_ascii_digit())
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let parts = split_decimal(number).ok_or_else(|| BandwidthError::NotANumber(own()))?;
        let unit = unit.trim_start();
        let power =
            power_of_ten(unit).ok_or_else(|| BandwidthError::UnknownUnit(unit.to_owned()))?;

        let fraction = parts.fraction.trim_end_matches('0');
        let zeros = power
            .checked_sub(fraction.len())
            .ok_or_else(|| BandwidthError::NotWhole(own()))?;
        let digits = format!("{}{fraction}{}", parts.whole, "0".repeat(zeros));
        match digits.parse() {
            Ok(0) => Err(BandwidthError::Zero(own())),
            Ok(bits) => Ok(Self(bits)),
            Err(_) => Err(BandwidthError::TooLarge(own())),
        }
    }

    /// Bits per second.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// The power of ten that a unit multiplies by.
fn power_of_ten(unit: &str) -> Option<usize> {
    if unit.is_empty() {
        return Some(0);
    }
    let without_per_second = unit.strip_suffix("/s").unwrap_or(unit);
    let split = without_per_second.len().checked_sub("bit".len())?;
    let prefix = match (
        without_per_second.get(..split)?,
        without_per_second.get(split..)?,
    ) {
        (prefix, bit) if bit.eq_ignore_ascii_case("bit") => prefix,
        (prefix, "bps") if without_per_second == unit => prefix,
        _ => return None,
    };
    match prefix {
        "" => Some(0),
        "k" | "K" => Some(3),
        "m" | "M" => Some(6),
        "g" | "G" => Some(9),
        "t" | "T" => Some(12),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn units_and_plain_numbers() {
        for (text, bits) in [
            ("10Gbit", 10_000_000_000),
            ("10gbit", 10_000_000_000),
            ("10GBit", 10_000_000_000),
            ("10 Gbit/s", 10_000_000_000),
            ("10Gbps", 10_000_000_000),
            ("2.5Gbit", 2_500_000_000),
            ("2.50Gbit", 2_500_000_000),
            (".1kbit", 100),
            ("100Mbit", 100_000_000),
            ("1Tbit", 1_000_000_000_000),
            ("9600bit", 9_600),
            ("9600bps", 9_600),
            ("1000000000", 1_000_000_000),
            (" 1kbit ", 1_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(
                BitsPerSecond::parse(text).map(BitsPerSecond::get),
                Ok(bits),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_not_a_bandwidth() {
        use BandwidthError::{NotANumber, NotWhole, TooLarge, UnknownUnit, Zero};
        let own = str::to_owned;
        for text in ["", "fast", "-1Gbit", "Gbit", "1.2.3Gbit", "."] {
            assert_eq!(
                BitsPerSecond::parse(text),
                Err(NotANumber(own(text))),
                "{text}"
            );
        }
        for (text, unit) in [
            ("10G", "G"),
            ("10GB", "GB"),
            ("10GB/s", "GB/s"),
            ("10GBps", "GBps"),
            ("10Gibit", "Gibit"),
            ("10Gbps/s", "Gbps/s"),
            ("1e9", "e9"),
            ("10Gbit please", "Gbit please"),
            ("10\u{b5}bit", "\u{b5}bit"),
            ("1é", "é"),
        ] {
            assert_eq!(
                BitsPerSecond::parse(text),
                Err(UnknownUnit(own(unit))),
                "{text}"
            );
        }
        assert_eq!(BitsPerSecond::parse("0.5"), Err(NotWhole(own("0.5"))));
        assert_eq!(
            BitsPerSecond::parse("1.0001kbit"),
            Err(NotWhole(own("1.0001kbit")))
        );
        assert_eq!(BitsPerSecond::parse("0Gbit"), Err(Zero(own("0Gbit"))));
        let large = "18446744073709551616";
        assert_eq!(BitsPerSecond::parse(large), Err(TooLarge(own(large))));
    }

    proptest! {
        #[test]
        fn every_unit_is_its_power_of_ten(number in 1_u64..1_000_000) {
            for (power, unit) in ["bit", "kbit", "Mbit", "Gbit", "Tbit"].iter().enumerate() {
                let bits = number * 1000_u64.pow(u32::try_from(power).unwrap());
                let parsed = BitsPerSecond::parse(&format!("{number}{unit}"));
                prop_assert_eq!(parsed.map(BitsPerSecond::get), Ok(bits));
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[0-9. ]{0,8}[kKmMgGtTbBits/p]{0,8}|\\PC{0,20}") {
            if let Ok(rate) = BitsPerSecond::parse(&text) {
                prop_assert!(rate.get() > 0);
            }
        }
    }
}
