//! Possible futures from the end of the forecast on, by the hour.

use super::OutlookSettings;
use super::hours::{DAY, HOUR, Slots, signed};

/// A season repeats after this many days: nearest to a year that keeps the day of the week.
const YEAR_DAYS: usize = 364;
/// Over how many days the present level is compared with last year's.
const LEVEL_DAYS: usize = 28;

/// What may come, and how likely.
#[derive(Clone, Debug)]
pub struct Futures {
    trailing: Vec<f64>,
    season: Option<Vec<f64>>,
    level: f64,
    persistence: f64,
    last_year: f64,
    recent: usize,
}

/// One future.
#[derive(Clone, Copy, Debug)]
pub struct Future<'a> {
    source: &'a [f64],
    begins: usize,
    gap: f64,
    /// Its share of all futures.
    pub weight: f64,
}

impl Futures {
    /// Futures of this many hours after what is known; none when nothing is known at all.
    pub fn new(slots: &Slots<'_>, hours: usize, settings: &OutlookSettings) -> Option<Self> {
        let trailing = slots.trailing(settings.trailing_days)?;
        let level = mean(trailing.get(trailing.len().saturating_sub(DAY)..)?);
        Some(Self {
            season: season(slots, &trailing, hours),
            level,
            persistence: settings.persistence,
            last_year: settings.last_year,
            recent: settings.futures.clamp(1, (trailing.len() / DAY).max(1)),
            trailing,
        })
    }

    /// Which part of a difference in level is left on this day after the forecast; the same in all futures.
    pub fn near(&self, day: usize) -> f64 {
        self.persistence.powf(count_as_float(day) + 1.0)
    }

    /// How many hours of the past they are made of.
    pub fn hours(&self) -> usize {
        self.trailing.len()
            + self
                .season
                .as_ref()
                .map_or(0, |s| s.len() + DAY * LEVEL_DAYS)
    }

    /// How many there are: last year's is the first of them, if there is one.
    pub fn count(&self) -> usize {
        self.recent + usize::from(self.season.is_some())
    }

    /// One of them.
    pub fn get(&self, number: usize) -> Future<'_> {
        match (&self.season, number) {
            (Some(source), 0) => Future {
                source,
                begins: 0,
                gap: gap(self.level, mean(source.get(..DAY).unwrap_or(source))),
                weight: self.last_year,
            },
            (Some(_), _) => self.recent(number - 1, 1.0 - self.last_year),
            (None, _) => self.recent(number, 1.0),
        }
    }

    fn recent(&self, number: usize, weight: f64) -> Future<'_> {
        let days = self.trailing.len() / DAY;
        let begins = number * days / self.recent * DAY;
        // The day before it in the circle of days: where this future comes from.
        let before = (begins + self.trailing.len()).saturating_sub(DAY) % self.trailing.len();
        let from = mean(self.trailing.get(before..before + DAY).unwrap_or_default());
        Future {
            source: &self.trailing,
            begins,
            gap: gap(self.level, from),
            weight: weight / count_as_float(self.recent),
        }
    }
}

impl Future<'_> {
    /// A day of it, hour by hour. It starts from the level at which the forecast ends and goes back to
    /// its own, by a part each day: [`Futures::near`] is what is left of the gap.
    pub fn day(&self, day: usize, near: f64) -> impl Iterator<Item = f64> {
        let start = (self.begins + day * DAY) % self.source.len().max(1);
        let factor = (self.gap * near).exp();
        let rest = self.source.get(start..).unwrap_or_default().iter();
        let hours = rest.chain(self.source.iter().cycle()).take(DAY);
        hours.map(move |value| value * factor)
    }
}

/// Last year's hours for the leads to come, brought to the present level.
fn season(slots: &Slots<'_>, trailing: &[f64], hours: usize) -> Option<Vec<f64>> {
    let back = HOUR * signed(DAY * YEAR_DAYS);
    if hours == 0 || slots.seen.len() < usize::try_from(back / slots.slot_seconds).ok()? {
        return None;
    }
    // Beyond a year the season begins again.
    let mut season = slots.hours(slots.end() - back, hours.min(DAY * YEAR_DAYS))?;
    let level = DAY * LEVEL_DAYS;
    let then = slots.hours(slots.end() - back - HOUR * signed(level), level)?;
    let now = trailing.get(trailing.len().saturating_sub(level)..)?;
    let ratio = gap(mean(now), mean(&then)).exp();
    for value in &mut season {
        *value *= ratio;
    }
    Some(season)
}

/// How far one level lies above another, as a logarithm; a grid without carbon has no gap.
fn gap(level: f64, other: f64) -> f64 {
    if level > 0.0 && other > 0.0 {
        (level / other).ln()
    } else {
        0.0
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count_as_float(values.len().max(1))
}

#[expect(clippy::cast_precision_loss, reason = "counts of hours and futures")]
fn count_as_float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn futures_start_from_the_present_level_and_return_to_their_own() {
        let mut seen = vec![100.0; 24 * 20];
        seen.extend([200.0; 24]);
        let slots = Slots {
            seen: &seen,
            known: &[],
            now: 0,
            slot_seconds: HOUR,
        };
        let futures = Futures::new(&slots, 240, &OutlookSettings::default()).unwrap();
        let future = futures.get(5);
        let first = future.day(0, futures.near(0)).next().unwrap();
        let later = future.day(6, futures.near(6)).next().unwrap();
        assert!((140.0..200.0).contains(&first), "{first}");
        assert!((100.0..105.0).contains(&later), "{later}");
        let all: f64 = (0..futures.count()).map(|n| futures.get(n).weight).sum();
        assert!((all - 1.0).abs() < 1e-9);
    }

    #[test]
    fn last_year_is_brought_to_the_present_level() {
        let mut seen = vec![50.0; 24 * 364];
        seen.extend([100.0; 24 * 60]);
        let slots = Slots {
            seen: &seen,
            known: &[],
            now: 0,
            slot_seconds: HOUR,
        };
        let futures = Futures::new(&slots, 240, &OutlookSettings::default()).unwrap();
        let season = futures.get(0);
        assert!((season.weight - 0.5).abs() < 1e-9);
        assert!((season.day(9, futures.near(9)).next().unwrap() - 100.0).abs() < 1e-6);
    }
}
