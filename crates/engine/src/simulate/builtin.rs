//! Traces that are built in, so that a newcomer needs no file; see `traces/README.md` for their sources.

use std::io::Read;

use flate2::read::GzDecoder;

use super::Source;
use super::table::TableError;

/// Name, and what it is.
pub const TRACES: [(&str, &str); 8] = [
    ("gb-day", "Great Britain, 5 October 2023"),
    ("gb-week", "Great Britain, 5 to 11 October 2023"),
    ("gb-2022", "Great Britain, 2022, half-hours"),
    (
        "gb-2023",
        "Great Britain, June 2023 to January 2024, half-hours",
    ),
    ("de-2022", "Germany, 2022, hours"),
    ("de-2023", "Germany, 2023, hours"),
    ("fr-2022", "France, 2022, hours"),
    ("fr-2023", "France, 2023, hours"),
];

/// 5 October 2023, a Thursday: where a budget window of a week begins.
const OCTOBER: i64 = 1_696_464_000;

/// The part of its file that a trace is: all of it, or from here to there.
pub(super) fn part(name: &str) -> Option<(i64, i64)> {
    match name {
        "gb-day" => Some((OCTOBER, OCTOBER + 86_400)),
        "gb-week" => Some((OCTOBER, OCTOBER + 7 * 86_400)),
        _ => None,
    }
}

/// The content of a built-in trace.
pub(super) fn content(name: &str) -> Option<Result<String, TableError>> {
    let packed: &[u8] = match name {
        "gb-2022" => include_bytes!("../../../../traces/gb-2022.csv.gz"),
        "gb-day" | "gb-week" | "gb-2023" => include_bytes!("../../../../traces/gb-2023.csv.gz"),
        "de-2022" => include_bytes!("../../../../traces/de-2022.csv.gz"),
        "de-2023" => include_bytes!("../../../../traces/de-2023.csv.gz"),
        "fr-2022" => include_bytes!("../../../../traces/fr-2022.csv.gz"),
        "fr-2023" => include_bytes!("../../../../traces/fr-2023.csv.gz"),
        "gb-2023-vintages" => include_bytes!("../../../../traces/gb-2023-vintages.csv.gz"),
        "esocc-days" => include_bytes!("../../../../traces/esocc-days.csv.gz"),
        _ => return None,
    };
    Some(unpack(packed))
}

/// The published forecasts for a built-in trace, where there are any.
pub(super) fn vintages_of(trace: &str) -> Option<Source> {
    matches!(trace, "gb-day" | "gb-week" | "gb-2023").then(|| Source {
        name: "gb-2023-vintages".to_owned(),
        content: None,
    })
}

/// The days of the ESOCC 2025 experiment, as CSV.
pub fn esocc_days() -> Result<String, TableError> {
    content("esocc-days").unwrap_or(Err(TableError::Empty))
}

fn unpack(packed: &[u8]) -> Result<String, TableError> {
    let mut text = String::new();
    GzDecoder::new(packed)
        .read_to_string(&mut text)
        .map_err(TableError::Damaged)?;
    Ok(text)
}
