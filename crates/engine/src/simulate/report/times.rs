//! Where a time axis has marks: at midnights, first days of months or round hours, never between, so that a date under a mark
//! is that date. `chart` draws them.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};

/// About so many marks fit.
const MOST: i64 = 8;
const DAY: i64 = 86_400;

/// Moments from one to the other, in UTC, with what to write there.
pub(super) fn ticks(from: i64, to: i64) -> Vec<(i64, String)> {
    let Some(first) = Timestamp::from_second(from).ok().filter(|_| to > from) else {
        return Vec::new();
    };
    let first = first.to_zoned(TimeZone::UTC);
    let per_mark = (to - from) / MOST;
    if per_mark > 14 * DAY {
        return months(&first, from, to);
    }
    let hours = [1, 3, 6, 12, 24, 48, 168, 336];
    let step = hours.map(|hours| hours * 3_600).into_iter();
    let step = step.into_iter().find(|step| *step >= per_mark);
    let step = step.unwrap_or(14 * DAY);
    let format = if step < DAY {
        "%e %b %H:%M"
    } else {
        "%e %b %Y"
    };
    // From a midnight on, so that steps of hours and of days fall on round ones.
    let midnight = from - from.rem_euclid(DAY);
    let marks = (0..).map(|k| midnight + k * step);
    let marks = marks.skip_while(|at| *at < from).take_while(|at| *at <= to);
    marks
        .filter_map(|at| Some((at, named(at, format)?)))
        .collect()
}

/// First days of every so many-th month.
fn months(first: &Zoned, from: i64, to: i64) -> Vec<(i64, String)> {
    let count = (to - from) / (30 * DAY);
    let every = [1, 2, 3, 6, 12]
        .into_iter()
        .find(|every| count / every <= MOST);
    let every = every.unwrap_or(12);
    let Ok(begin) = first.first_of_month().and_then(|day| day.start_of_day()) else {
        return Vec::new();
    };
    let marks = (0..).map_while(|k: i64| begin.checked_add((k * every).months()).ok());
    let marks = marks.map(|at| at.timestamp().as_second());
    let marks = marks.skip_while(|at| *at < from).take_while(|at| *at <= to);
    marks
        .filter_map(|at| Some((at, named(at, "%e %b %Y")?)))
        .collect()
}

fn named(at: i64, format: &str) -> Option<String> {
    let name = Timestamp::from_second(at)
        .ok()?
        .strftime(format)
        .to_string();
    Some(name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(from: &str, days: i64) -> Vec<String> {
        let from = from.parse::<Timestamp>().unwrap().as_second();
        let marks = ticks(from, from + days * DAY);
        marks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn marks_are_at_round_times() {
        let day = labels("2023-10-05T00:00:00Z", 1);
        assert_eq!(day.first().unwrap(), "5 Oct 00:00");
        assert_eq!(day.get(1).unwrap(), "5 Oct 03:00");
        assert_eq!(day.len(), 9);
        let week = labels("2023-10-05T06:00:00Z", 7);
        assert_eq!(week.first().unwrap(), "6 Oct 2023");
        assert_eq!(week.len(), 7);
        let year = labels("2023-01-15T00:00:00Z", 365);
        assert_eq!(year.first().unwrap(), "1 Mar 2023");
        assert!(year.iter().all(|label| label.starts_with("1 ")), "{year:?}");
    }

    #[test]
    fn any_span_has_a_few_marks_or_none() {
        for days in 1..2_000 {
            let count = labels("2022-02-03T04:30:00Z", days).len();
            assert!((2..=12).contains(&count), "{days} days: {count}");
        }
        assert!(ticks(5, 5).is_empty());
        assert!(ticks(i64::MAX - 9, i64::MAX).is_empty());
    }
}
