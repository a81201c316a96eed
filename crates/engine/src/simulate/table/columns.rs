//! CSV: which column holds the time, which the intensity.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::{Row, TableError};

/// Words in a header that speak for a column of times, the best first.
const TIMES: [&str; 6] = ["utc", "datetime", "timestamp", "from", "time", "date"];
/// Words that speak for intensities, the best first.
const VALUES: [&str; 8] = [
    "life cycle",
    "lifecycle",
    "actual",
    "gco2",
    "carbon_intensity",
    "carbon intensity",
    "intensity",
    "value",
];
/// Words that speak against a column, whatever else it is called.
const NOT_VALUES: [&str; 6] = ["forecast", "index", "source", "filled", "percent", "id"];

/// Rows of a CSV file.
pub(super) fn rows(text: &str) -> Result<(Vec<Row>, Vec<String>), TableError> {
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        .peekable();
    let (_, first) = *lines.peek().ok_or(TableError::Empty)?;
    let delimiter = delimiter(first);
    let head = cells(first, delimiter);
    let mut notes = Vec::new();
    let (time, value) = if head.iter().any(|cell| moment(cell).is_some()) {
        without_header(&head)?
    } else {
        let header: Vec<String> = head.iter().map(|cell| cell.to_lowercase()).collect();
        lines.next();
        let sample = lines.peek().map(|(_, line)| cells(line, delimiter));
        let found = by_name(&header, &sample.unwrap_or_default())?;
        let name = |i: usize| head.get(i).copied().unwrap_or_default();
        notes.push(format!(
            "time from column `{}`, intensity from column `{}`",
            name(found.0),
            name(found.1)
        ));
        found
    };
    let mut rows = Vec::new();
    let mut is_local = false;
    for (i, line) in lines {
        let cells = cells(line, delimiter);
        let text = cells.get(time).copied().unwrap_or_default();
        let at = moment(text).ok_or_else(|| TableError::Time {
            line: i + 1,
            text: text.to_owned(),
        })?;
        is_local |= text.parse::<Timestamp>().is_err();
        rows.push((at, number(cells.get(value).copied(), i + 1)?));
    }
    if is_local {
        notes.push("times without a zone are taken as UTC".to_owned());
    }
    Ok((rows, notes))
}

/// The cells of a line, without their quotes. A delimiter within quotes does not count.
pub(in crate::simulate) fn cells(line: &str, delimiter: char) -> Vec<&str> {
    let mut cells = Vec::new();
    let (mut start, mut quoted) = (0, false);
    for (i, c) in line.char_indices() {
        if c == '"' {
            quoted = !quoted;
        } else if c == delimiter && !quoted {
            cells.push(line.get(start..i).unwrap_or_default());
            start = i + c.len_utf8();
        }
    }
    cells.push(line.get(start..).unwrap_or_default());
    cells
        .into_iter()
        .map(|cell| cell.trim().trim_matches('"').trim())
        .collect()
}

/// A time in seconds of UTC: with a zone or an offset as it says, without one as UTC; a number is
/// seconds (or milliseconds) since the epoch.
pub(in crate::simulate) fn moment(text: &str) -> Option<i64> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time.as_second());
    }
    if let Ok(time) = text.parse::<DateTime>() {
        return time
            .to_zoned(TimeZone::UTC)
            .ok()
            .map(|z| z.timestamp().as_second());
    }
    match text.parse::<i64>().ok()? {
        seconds @ 100_000_000..=9_999_999_999 => Some(seconds),
        millis @ 100_000_000_000..=9_999_999_999_999 => Some(millis / 1_000),
        _ => None,
    }
}

fn number(cell: Option<&str>, line: usize) -> Result<f64, TableError> {
    let text = cell.unwrap_or_default();
    if ["", "-", "na", "n/a", "nan", "null", "none"].contains(&text.to_lowercase().as_str()) {
        return Ok(f64::NAN);
    }
    text.parse().map_err(|_| TableError::Number {
        line,
        text: text.to_owned(),
    })
}

fn delimiter(line: &str) -> char {
    let count = |c: char| line.matches(c).count();
    let mut best = ',';
    for other in [';', '\t'] {
        if count(other) > count(best) {
            best = other;
        }
    }
    best
}

fn without_header(first: &[&str]) -> Result<(usize, usize), TableError> {
    let time = first
        .iter()
        .position(|cell| moment(cell).is_some())
        .ok_or(TableError::NoTime)?;
    let is_value = |(i, cell): (usize, &&str)| i > time && cell.parse::<f64>().is_ok();
    let value = first
        .iter()
        .enumerate()
        .position(is_value)
        .ok_or(TableError::NoValue)?;
    Ok((time, value))
}

fn by_name(header: &[String], sample: &[&str]) -> Result<(usize, usize), TableError> {
    let is_time = |i: usize| sample.get(i).is_none_or(|cell| moment(cell).is_some());
    let time = TIMES
        .iter()
        .find_map(|word| (0..header.len()).find(|i| header[*i].contains(word) && is_time(*i)))
        .or_else(|| (0..sample.len()).find(|i| moment(sample[*i]).is_some()))
        .ok_or(TableError::NoTime)?;
    let is_number = |i: usize| {
        sample
            .get(i)
            .is_none_or(|cell| number(Some(cell), 0).is_ok())
    };
    let allowed = |i: &usize| {
        let words: Vec<&str> = header[*i].split(|c: char| !c.is_alphanumeric()).collect();
        *i != time && is_number(*i) && !NOT_VALUES.iter().any(|word| words.contains(word))
    };
    let named = |word: &&str| {
        (0..header.len())
            .filter(allowed)
            .find(|i| header[*i].contains(*word))
    };
    let value = VALUES
        .iter()
        .find_map(named)
        .or_else(|| (0..header.len()).find(allowed))
        .ok_or(TableError::NoValue)?;
    Ok((time, value))
}
