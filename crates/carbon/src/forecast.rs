//! What is known of the future at a moment: forecasts as data, for [`crate::simulate`] and the engine.

use crate::trace::Trace;

/// How far providers look ahead, in seconds: 48 hours.
pub const HORIZON: i64 = 48 * 3_600;

/// How forecasts come about.
#[derive(Clone, Copy, Debug)]
pub enum Forecaster<'a> {
    /// The next 48 hours exactly as they will be.
    Perfect,
    /// What was really published, vintage by vintage.
    Vintages(&'a Vintages),
    /// As it was a day ago.
    Persistence,
    /// The mean of the same time of day over the last four weeks.
    Climatology,
}

/// Forecasts as they were published, in order of capture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vintages {
    captures: Vec<Capture>,
    slot_seconds: i64,
}

/// One published forecast: values from the slot that holds `at` on; NaN was not captured.
#[derive(Clone, Debug, PartialEq)]
pub struct Capture {
    /// When it was published.
    pub at: i64,
    /// One value per slot.
    pub values: Vec<f32>,
}

impl Vintages {
    /// Puts them in order.
    pub fn new(slot_seconds: i64, mut captures: Vec<Capture>) -> Self {
        captures.sort_by_key(|capture| capture.at);
        Self {
            captures,
            slot_seconds: slot_seconds.max(1),
        }
    }

    /// All of them, oldest first.
    pub fn captures(&self) -> &[Capture] {
        &self.captures
    }

    /// What the newest vintages at this moment said of the slots from `now` on; a cell that was not
    /// captured is taken from the vintages of the day before it, else it stays NaN.
    fn look(&self, now: i64, out: &mut Vec<f64>) {
        let newest = self.captures.partition_point(|capture| capture.at <= now);
        let oldest_use = now - 86_400;
        for capture in self.captures[..newest].iter().rev() {
            if capture.at < oldest_use {
                break;
            }
            let age = now.div_euclid(self.slot_seconds) - capture.at.div_euclid(self.slot_seconds);
            let skipped = usize::try_from(age).unwrap_or(0);
            let known = capture.values.get(skipped..).unwrap_or_default();
            if out.is_empty() {
                out.extend(known.iter().map(|v| f64::from(*v)));
            } else {
                for (have, older) in out.iter_mut().zip(known) {
                    if have.is_nan() {
                        *have = f64::from(*older);
                    }
                }
            }
            if out.iter().all(|v| !v.is_nan()) {
                break;
            }
        }
    }
}

impl Forecaster<'_> {
    /// Writes what is known at the start of slot `t` of the trace into `out`, one value per slot, the
    /// present one first. `seen` is all that was observed before, the history included.
    pub fn look(&self, trace: &Trace, t: usize, seen: &[f64], out: &mut Vec<f64>) {
        out.clear();
        let slots = |seconds: i64| usize::try_from(seconds / trace.slot_seconds()).unwrap_or(1);
        let (ahead, day) = (slots(HORIZON).max(1), slots(86_400).max(1));
        match self {
            Self::Perfect => out.extend(trace.values().iter().skip(t).take(ahead)),
            Self::Vintages(vintages) => {
                let steps = i64::try_from(t).unwrap_or(i64::MAX);
                vintages.look(trace.start() + steps * trace.slot_seconds(), out);
            }
            Self::Persistence => {
                let last = seen
                    .get(seen.len().saturating_sub(day)..)
                    .unwrap_or_default();
                let last = if last.len() < day { seen.last() } else { None }
                    .map_or(last, std::slice::from_ref);
                out.extend(last.iter().cycle().take(ahead));
            }
            Self::Climatology => {
                let weeks = 28_usize;
                for k in 0..day.min(ahead) {
                    let same_time = (1..=weeks).filter_map(|days| {
                        let back = (days * day).checked_sub(k)?;
                        seen.get(seen.len().checked_sub(back)?).copied()
                    });
                    let (mut sum, mut count) = (0.0, 0.0);
                    for value in same_time.filter(|v| !v.is_nan()) {
                        sum += value;
                        count += 1.0;
                    }
                    let last = seen.last().copied().unwrap_or(f64::NAN);
                    out.push(if count > 0.0 { sum / count } else { last });
                }
                for k in out.len()..ahead {
                    out.push(out.get(k - day).copied().unwrap_or(f64::NAN));
                }
            }
        }
    }
}
