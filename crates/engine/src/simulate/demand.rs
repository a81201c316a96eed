//! How many requests come in each slot: constant, with two humps a day, or from a file.

use thiserror::Error;
use weir_carbon::trace::Trace;

use super::table::{self, TableError};

/// Requests per hour on average, for the built-in shapes: enough for shares in whole percents to come true
/// within a slot.
pub const PER_HOUR: u32 = 400;
/// More requests in a slot than this are counted in units of several.
const MOST_PER_SLOT: f64 = 1_000_000.0;

/// Where demand comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// The same in each slot: so many requests an hour.
    Constant(u32),
    /// Two humps a day, in the morning and in the evening; quiet at night. So many an hour on average.
    Camel(u32),
    /// A file's name and content.
    File(String, String),
}

/// Why a file is no demand.
#[derive(Debug, Error)]
pub enum DemandError {
    /// It cannot be read.
    #[error("the demand `{0}` cannot be used")]
    Table(String, #[source] TableError),
    /// A count that is none.
    #[error("the demand `{0}` has {1} requests in a row; give counts from 0 up")]
    Count(String, f64),
    /// Nothing within the trace.
    #[error("the demand `{0}` has no request within the time of the trace")]
    Elsewhere(String),
}

impl Demand {
    /// Requests per slot of the trace, and what has to be said about them.
    pub fn of(&self, trace: &Trace) -> Result<(Vec<u64>, Vec<String>), DemandError> {
        let times = (0_i64..).map(|i| trace.start() + i * trace.slot_seconds());
        let times = times.take(trace.values().len());
        #[expect(clippy::cast_precision_loss, reason = "a slot's length")]
        let hours = trace.slot_seconds() as f64 / 3_600.0;
        match self {
            Self::Constant(per_hour) => {
                let count = whole(f64::from(*per_hour) * hours);
                Ok((times.map(|_| count).collect(), Vec::new()))
            }
            Self::Camel(per_hour) => {
                let count = |at| whole(f64::from(*per_hour) * hours * camel(at));
                Ok((times.map(count).collect(), Vec::new()))
            }
            Self::File(name, text) => from_file(name, text, trace),
        }
    }
}

/// Humps at 10:00 and 19:00; a mean of about one.
fn camel(at: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "seconds of a day")]
    let hour = at.rem_euclid(86_400) as f64 / 3_600.0;
    let hump = |top: f64| (-(hour - top).powi(2) / 8.0).exp();
    0.3 + 1.5 * hump(10.0) + 1.9 * hump(19.0)
}

fn from_file(
    name: &str,
    text: &str,
    trace: &Trace,
) -> Result<(Vec<u64>, Vec<String>), DemandError> {
    let (rows, mut notes) =
        table::rows_of(text).map_err(|e| DemandError::Table(name.to_owned(), e))?;
    let mut sums = vec![0.0; trace.values().len()];
    for (at, count) in rows {
        if count.is_nan() {
            continue;
        }
        if !(0.0..1e15).contains(&count) {
            return Err(DemandError::Count(name.to_owned(), count));
        }
        let slot = (at - trace.start()).div_euclid(trace.slot_seconds());
        if let Ok(slot) = usize::try_from(slot)
            && let Some(sum) = sums.get_mut(slot)
        {
            *sum += count;
        }
    }
    let most = sums.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return Err(DemandError::Elsewhere(name.to_owned()));
    }
    let unit = (most / MOST_PER_SLOT).max(1.0).ceil();
    if unit > 1.0 {
        notes.push(format!(
            "demand is counted in units of {unit} requests; grams are of those units"
        ));
    }
    Ok((
        sums.into_iter().map(|sum| whole(sum / unit)).collect(),
        notes,
    ))
}

fn whole(count: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts from 0 to a million"
    )]
    let count = count.round() as u64;
    count
}
