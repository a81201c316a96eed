//! Quantities that must not be confused, each its own type: intensities (average and marginal ones
//! do not mix), energy, mass, precision, error and weight. [`crate::flavour`] and
//! [`crate::trace`] are built of them.

use std::fmt;
use std::marker::PhantomData;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One whole (100 %) in the integers in which errors are counted.
pub const WHOLE: u32 = 1_000_000;

/// No grid has ever been this dirty: pure lignite is below 1,500 gCO2/kWh. Beyond it a value is a slip of units.
pub const MOST_INTENSE: f64 = 10_000.0;

/// The mean over all generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Average {}

/// The generation that answers one more unit of demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marginal {}

/// Carbon intensity of electricity, in gCO2e per kWh: finite, not negative, not absurd.
pub struct Intensity<Kind> {
    grams_per_kwh: f64,
    kind: PhantomData<Kind>,
}

/// What most grid operators publish.
pub type AverageIntensity = Intensity<Average>;

/// What WattTime publishes; never added to or compared with an average.
pub type MarginalIntensity = Intensity<Marginal>;

/// Mass of carbon dioxide equivalent, in grams.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Grams(pub f64);

/// Energy.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct KilowattHours(pub f64);

/// How good a flavour's answers are, in millionths: 0 to [`WHOLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Precision(u32);

/// One minus the precision, in millionths: 0 to [`WHOLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ErrorRate(u32);

/// Why a number is no such quantity.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum UnitError {
    /// NaN, infinite, negative or beyond [`MOST_INTENSE`].
    #[error("{0} is no carbon intensity; give gCO2/kWh from 0 to {MOST_INTENSE}")]
    Intensity(f64),
    /// NaN or outside 0 to 1.
    #[error("{0} is no precision; give a fraction from 0 to 1")]
    Precision(f64),
    /// NaN or outside 0 to 1.
    #[error("{0} is no error; give a fraction from 0 to 1")]
    Error(f64),
}

impl<Kind> Intensity<Kind> {
    /// Checks the value.
    pub fn new(grams_per_kwh: f64) -> Result<Self, UnitError> {
        if (0.0..=MOST_INTENSE).contains(&grams_per_kwh) {
            Ok(Self {
                grams_per_kwh,
                kind: PhantomData,
            })
        } else {
            Err(UnitError::Intensity(grams_per_kwh))
        }
    }

    /// In gCO2e per kWh.
    pub const fn grams_per_kwh(self) -> f64 {
        self.grams_per_kwh
    }

    /// What this energy emits.
    pub fn emitted_by(self, energy: KilowattHours) -> Grams {
        Grams(self.grams_per_kwh * energy.0)
    }
}

// By hand, since deriving would ask the same of `Kind`, which is only a name.
impl<Kind> Clone for Intensity<Kind> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Kind> Copy for Intensity<Kind> {}

impl<Kind> PartialEq for Intensity<Kind> {
    fn eq(&self, other: &Self) -> bool {
        self.grams_per_kwh.total_cmp(&other.grams_per_kwh).is_eq()
    }
}

impl<Kind> fmt::Debug for Intensity<Kind> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} gCO2/kWh", self.grams_per_kwh)
    }
}

impl Precision {
    /// Answers without error.
    pub const FULL: Self = Self(WHOLE);

    /// From a fraction; digits beyond a millionth are cut off, so that it is never taken for better than it is.
    pub fn from_fraction(fraction: f64) -> Result<Self, UnitError> {
        millionths(fraction, f64::floor)
            .map(Self)
            .ok_or(UnitError::Precision(fraction))
    }

    /// From millionths; what lies above the whole is the whole.
    pub const fn from_millionths(millionths: u32) -> Self {
        Self(if millionths > WHOLE {
            WHOLE
        } else {
            millionths
        })
    }

    /// As a fraction.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }

    /// What is missing to the whole.
    pub const fn error(self) -> ErrorRate {
        ErrorRate(WHOLE - self.0)
    }

    /// In whole percent, halves up: what names and status show.
    pub const fn percent(self) -> u32 {
        (self.0 + 5_000) / 10_000
    }
}

impl ErrorRate {
    /// From a fraction, to the nearest millionth: targets are written in decimals.
    pub fn from_fraction(fraction: f64) -> Result<Self, UnitError> {
        millionths(fraction, f64::round)
            .map(Self)
            .ok_or(UnitError::Error(fraction))
    }

    /// From millionths; what lies above the whole is the whole.
    pub const fn from_millionths(millionths: u32) -> Self {
        Self(if millionths > WHOLE {
            WHOLE
        } else {
            millionths
        })
    }

    /// In millionths.
    pub const fn millionths(self) -> i64 {
        self.0 as i64
    }

    /// As a fraction.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }
}

fn millionths(fraction: f64, to_whole: fn(f64) -> f64) -> Option<u32> {
    if !(0.0..=1.0).contains(&fraction) {
        return None;
    }
    // The tiny push undoes what binary took from a decimal such as 0.29.
    let scaled = to_whole(fraction * f64::from(WHOLE) + 1e-6);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 1,000,000 by the check above"
    )]
    let whole = scaled as u32;
    Some(whole.min(WHOLE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_intensities_are_refused() {
        for bad in [f64::NAN, f64::INFINITY, -0.1, 10_001.0] {
            assert!(AverageIntensity::new(bad).is_err(), "{bad}");
        }
        let clean = AverageIntensity::new(0.0).unwrap();
        assert_eq!(clean.emitted_by(KilowattHours(5.0)), Grams(0.0));
    }

    #[test]
    fn decimals_keep_their_meaning() {
        for percent in 0..=100_u32 {
            let precision = Precision::from_fraction(f64::from(percent) / 100.0).unwrap();
            assert_eq!(precision, Precision::from_millionths(percent * 10_000));
            assert_eq!(precision.percent(), percent);
            assert_eq!(
                precision.error().millionths(),
                i64::from(WHOLE - percent * 10_000)
            );
        }
        assert!(Precision::from_fraction(1.1).is_err());
        assert!(ErrorRate::from_fraction(f64::NAN).is_err());
    }
}
