//! Traces from files of any sane shape: CSV with guessed columns, or JSON as the UK API and Electricity Maps
//! give it. `columns` guesses, `grid` puts rows onto a regular grid; both say what they did.

mod columns;
mod grid;
mod json;

use std::io;

use thiserror::Error;
use weir_carbon::forecast::{Capture, Vintages};
use weir_carbon::trace::{Trace, TraceError};

use super::{Source, builtin};
pub(super) use columns::{cells, moment};

/// A trace as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// On a regular grid, without gaps.
    pub trace: Trace,
    /// What the same source had before it.
    pub before: Vec<f64>,
    /// Columns guessed, gaps filled, rows left out.
    pub notes: Vec<String>,
}

/// A row: when, and how much; NaN is a gap.
pub(super) type Row = (i64, f64);

/// Why a file is no trace.
#[derive(Debug, Error)]
pub enum TableError {
    /// No rows.
    #[error("there is no row with a time and a value in it")]
    Empty,
    /// One row says nothing about slots.
    #[error("there is only one row; at least two are needed to know how long a slot is")]
    OneRow,
    /// Not a name that is built in.
    #[error("it is neither a file nor a built-in trace; built in are {0}")]
    Unknown(String),
    /// A built-in trace that does not unpack.
    #[error("its built-in copy is damaged")]
    Damaged(#[source] io::Error),
    /// No column with times.
    #[error(
        "no column holds times; one should be named `utc`, `datetime` or `from`, with values like 2023-01-31T13:30Z"
    )]
    NoTime,
    /// No column with intensities.
    #[error("no column holds numbers; one should be named `carbon_intensity` or `gco2_per_kwh`")]
    NoValue,
    /// Not JSON as known.
    #[error(
        "this JSON has neither `data[].from` (UK API) nor `history[].datetime` (Electricity Maps)"
    )]
    UnknownJson,
    /// Broken JSON.
    #[error("it is not valid JSON")]
    Json(#[from] serde_json::Error),
    /// A time that is none.
    #[error("line {line}: `{text}` is not a time; write it like 2023-01-31T13:30Z")]
    Time {
        /// Where.
        line: usize,
        /// What.
        text: String,
    },
    /// A number that is none.
    #[error("line {line}: `{text}` is not a number")]
    Number {
        /// Where.
        line: usize,
        /// What.
        text: String,
    },
    /// Far more slots than rows.
    #[error("{rows} rows spread over {slots} slots of {slot_seconds} s; is the time column right?")]
    Sparse {
        /// Rows in the file.
        rows: usize,
        /// Slots between first and last.
        slots: i64,
        /// Their length.
        slot_seconds: i64,
    },
    /// Values that no grid has.
    #[error("a value cannot be right")]
    Trace(#[from] TraceError),
}

/// Reads a trace from a file's content or from what is built in.
pub fn read(source: &Source) -> Result<Read, TableError> {
    let Some(text) = &source.content else {
        return read_builtin(&source.name);
    };
    let (rows, mut notes) = rows_of(text)?;
    let (trace, said) = grid::regular(rows)?;
    notes.extend(said);
    Ok(Read {
        trace,
        before: Vec::new(),
        notes,
    })
}

/// Reads published forecasts: a capture time, then one column per slot.
pub fn read_vintages(source: &Source, slot_seconds: i64) -> Result<Vintages, TableError> {
    let text = match &source.content {
        Some(text) => text.clone(),
        None => builtin::content(&source.name).ok_or_else(unknown)??,
    };
    let mut captures = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let cells = cells(line, ',');
        let Some((first, rest)) = cells.split_first().filter(|(_, rest)| !rest.is_empty()) else {
            continue;
        };
        let Some(at) = moment(first) else {
            if i == 0 {
                continue;
            }
            return Err(TableError::Time {
                line: i + 1,
                text: (*first).to_owned(),
            });
        };
        // An empty cell was not captured.
        let values = rest.iter().map(|cell| cell.parse().unwrap_or(f32::NAN));
        captures.push(Capture {
            at,
            values: values.collect(),
        });
    }
    if captures.is_empty() {
        return Err(TableError::Empty);
    }
    Ok(Vintages::new(slot_seconds, captures))
}

/// Rows of time and value, from CSV or JSON, with notes.
pub(super) fn rows_of(text: &str) -> Result<(Vec<Row>, Vec<String>), TableError> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with(['{', '[']) {
        json::rows(text)
    } else {
        columns::rows(text)
    }
}

fn read_builtin(name: &str) -> Result<Read, TableError> {
    let text = builtin::content(name).ok_or_else(unknown)??;
    let (rows, _) = rows_of(&text)?;
    let (whole, _) = grid::regular(rows)?;
    let Some((from, to)) = builtin::part(name) else {
        return Ok(Read {
            trace: whole,
            before: Vec::new(),
            notes: Vec::new(),
        });
    };
    let at =
        |time: i64| usize::try_from((time - whole.start()) / whole.slot_seconds()).unwrap_or(0);
    let values = whole.values().get(at(from)..at(to)).unwrap_or_default();
    Ok(Read {
        trace: Trace::new(from, whole.slot_seconds(), values.to_vec())?,
        before: whole.values().get(..at(from)).unwrap_or_default().to_vec(),
        notes: Vec::new(),
    })
}

fn unknown() -> TableError {
    let names: Vec<&str> = builtin::TRACES.iter().map(|(name, _)| *name).collect();
    TableError::Unknown(names.join(", "))
}
