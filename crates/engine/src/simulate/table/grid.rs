//! Rows onto a regular grid: sorted, each slot once, gaps filled by a stated rule.

use std::collections::BTreeMap;

use weir_carbon::trace::Trace;

use super::{Row, TableError};

/// Up to so many slots per row a file is merely full of gaps.
const MOST_SLOTS_PER_ROW: i64 = 20;

/// The trace, and what was done to get it.
pub(super) fn regular(mut rows: Vec<Row>) -> Result<(Trace, Vec<String>), TableError> {
    let mut notes = Vec::new();
    if rows.is_empty() {
        return Err(TableError::Empty);
    }
    if !rows.is_sorted_by_key(|row| row.0) {
        notes.push("rows were not in order of time: sorted".to_owned());
        rows.sort_by_key(|row| row.0);
    }
    let before = rows.len();
    // The first of equal times: when clocks go back, the hour that was there first.
    rows.dedup_by_key(|row| row.0);
    if rows.len() < before {
        let again = before - rows.len();
        notes.push(format!("{again} rows repeat a time: the first is kept"));
    }
    let slot = usual_step(&rows).ok_or(TableError::OneRow)?;
    let start = rows.first().map_or(0, |row| row.0);
    let span = rows.last().map_or(0, |row| row.0) - start;
    let slots = span / slot + 1;
    let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    if slots > count.saturating_mul(MOST_SLOTS_PER_ROW) {
        return Err(TableError::Sparse {
            rows: rows.len(),
            slots,
            slot_seconds: slot,
        });
    }
    let mut values = vec![f64::NAN; usize::try_from(slots).unwrap_or(0)];
    let mut odd = 0_usize;
    for (at, value) in rows {
        let since = at - start;
        odd += usize::from(since % slot != 0);
        if let Ok(i) = usize::try_from(since / slot)
            && let Some(place) = values.get_mut(i)
            && place.is_nan()
        {
            *place = value;
        }
    }
    if odd > 0 {
        notes.push(format!(
            "{odd} rows do not begin with a slot of {slot} s: moved to its beginning"
        ));
    }
    let gaps = values.iter().filter(|v| v.is_nan()).count();
    if gaps > 0 {
        notes.push(format!(
            "{gaps} of {} slots have no value: filled with the same time a day before, else the value before",
            values.len()
        ));
    }
    Ok((Trace::new(start, slot, values)?, notes))
}

/// The most common distance of neighbours; of two, the shorter.
fn usual_step(rows: &[Row]) -> Option<i64> {
    let mut steps: BTreeMap<i64, usize> = BTreeMap::new();
    for pair in rows.windows(2) {
        if let [a, b] = pair {
            *steps.entry(b.0 - a.0).or_default() += 1;
        }
    }
    steps
        .into_iter()
        .rev()
        .max_by_key(|(_, count)| *count)
        .map(|(step, _)| step)
}
