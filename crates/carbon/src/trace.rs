//! A carbon-intensity series on a regular grid of slots. [`crate::forecast`] says what is known of it when.
//!
//! Reading files is the engine's work; here values are already in order. A slot without a value is
//! NaN: known to be missing, never taken for clean.

use thiserror::Error;

use crate::unit::{AverageIntensity, UnitError};

/// Values per slot, from a first moment on.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    start: i64,
    slot_seconds: i64,
    values: Vec<f64>,
}

/// Why values are no trace.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TraceError {
    /// Nothing in it.
    #[error("the trace has no value")]
    Empty,
    /// Below a second or above a day.
    #[error("a slot of {0} s is not between 1 s and a day")]
    SlotLength(i64),
    /// A value that no grid has.
    #[error("slot {0}")]
    Value(usize, #[source] UnitError),
}

impl Trace {
    /// Checks the values; a gap (NaN) takes the value of the same time a day before, else the last
    /// value, else the next one.
    pub fn new(start: i64, slot_seconds: i64, values: Vec<f64>) -> Result<Self, TraceError> {
        if !(1..=86_400).contains(&slot_seconds) {
            return Err(TraceError::SlotLength(slot_seconds));
        }
        if values.iter().all(|value| value.is_nan()) {
            return Err(TraceError::Empty);
        }
        for (i, value) in values.iter().enumerate().filter(|(_, v)| !v.is_nan()) {
            AverageIntensity::new(*value).map_err(|error| TraceError::Value(i, error))?;
        }
        let mut trace = Self {
            start,
            slot_seconds,
            values,
        };
        trace.fill();
        Ok(trace)
    }

    fn fill(&mut self) {
        let day = usize::try_from(86_400 / self.slot_seconds).unwrap_or(1);
        let first = self.values.iter().copied().find(|v| !v.is_nan());
        for i in 0..self.values.len() {
            if self.values.get(i).is_some_and(|v| v.is_nan()) {
                let filled = i
                    .checked_sub(day)
                    .or_else(|| i.checked_sub(1))
                    .and_then(|from| self.values.get(from).copied())
                    .or(first)
                    .unwrap_or(0.0);
                if let Some(value) = self.values.get_mut(i) {
                    *value = filled;
                }
            }
        }
    }

    /// When the first slot begins.
    pub const fn start(&self) -> i64 {
        self.start
    }

    /// How long a slot is.
    pub const fn slot_seconds(&self) -> i64 {
        self.slot_seconds
    }

    /// One value per slot.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// When the last slot ends.
    pub fn end(&self) -> i64 {
        self.start + self.slot_seconds * i64::try_from(self.values.len()).unwrap_or(i64::MAX)
    }
}
