//! How far forecasts can be trusted, by their own past errors: each one is kept until what it foretold has happened, and compared
//! by how far ahead it looked. [`crate::policy::optimal`] reserves credit for a slot to come only as far as such slots came true
//! before. A forecast that was always right is trusted in full.

use std::collections::VecDeque;

use super::hours::signed;
use crate::unit::MOST_INTENSE;

/// How far ahead forecasts are judged, in slots.
const MOST_LEADS: usize = 96;

/// Fewer comparisons than this say nothing: two days of half-hours.
const ENOUGH: f64 = 96.0;

/// What past forecasts came to.
#[derive(Clone, Debug)]
pub struct Skill {
    /// Errors count for so many days, about.
    memory_days: f64,
    /// Oldest first.
    made: VecDeque<Made>,
    leads: Vec<Lead>,
}

/// A forecast that waits for what it foretold.
#[derive(Clone, Debug)]
struct Made {
    at: i64,
    level: f64,
    values: Vec<f64>,
}

/// Sums over comparisons, old ones fading: a regression through the forecast's own level.
#[derive(Clone, Copy, Debug, Default)]
struct Lead {
    said: f64,
    came: f64,
    count: f64,
}

impl Skill {
    /// Nothing is known yet; errors will count for so many days, about.
    pub fn new(memory_days: usize) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a few days")]
        let memory_days = memory_days as f64;
        Self {
            memory_days,
            made: VecDeque::new(),
            leads: Vec::new(),
        }
    }

    /// Compares all earlier forecasts of the slot that ended `now` with what it was, and keeps the present one.
    pub fn learn(&mut self, now: i64, slot_seconds: i64, seen: Option<f64>, forecast: &[f64]) {
        let slot = slot_seconds.max(1);
        if self.made.back().is_some_and(|made| made.at >= now) {
            // The same moment again, or time that runs backwards: nothing new has happened.
            return;
        }
        self.leads.resize(MOST_LEADS, Lead::default());
        let ended = now - slot;
        let is_over = |made: &Made| made.at + slot * signed(made.values.len()) <= ended;
        while self.made.front().is_some_and(is_over) {
            self.made.pop_front();
        }
        #[expect(clippy::cast_precision_loss, reason = "a slot's length")]
        let kept = 1.0 - (slot as f64 / (self.memory_days * 86_400.0)).min(1.0);
        for made in &self.made {
            let lead = usize::try_from((ended - made.at).div_euclid(slot)).ok();
            let lead = lead.and_then(|lead| Some((lead, made.values.get(lead)?)));
            let Some((lead, foretold)) = lead.filter(|(_, v)| v.is_finite()) else {
                continue;
            };
            let Some((actual, sums)) = seen.filter(|v| v.is_finite()).zip(self.leads.get_mut(lead))
            else {
                continue;
            };
            let said = foretold - made.level;
            sums.said = sums.said * kept + said * said;
            sums.came = sums.came * kept + said * (actual - made.level);
            sums.count = sums.count * kept + 1.0;
        }
        // Nonsense is taken as the plan takes it, or one absurd number would spoil the sums for weeks.
        let sane = |value: &f64| {
            if value.is_finite() {
                value.clamp(0.0, MOST_INTENSE)
            } else {
                f64::NAN
            }
        };
        let values: Vec<f64> = forecast.iter().take(MOST_LEADS).map(sane).collect();
        if let Some(level) = level(&values) {
            self.made.push_back(Made {
                at: now,
                level,
                values,
            });
        }
    }

    /// Which part of what forecasts said of a slot so far ahead, above or below their own mean, came true: one while too few
    /// were compared, never more than one, and zero for a forecast that says nothing.
    pub fn trust(&self, lead: usize) -> f64 {
        match self.leads.get(lead.min(MOST_LEADS - 1)) {
            Some(sums) if sums.count >= ENOUGH && sums.said > 0.0 => {
                (sums.came / sums.said).clamp(0.0, 1.0)
            }
            _ => 1.0,
        }
    }
}

/// The mean of what is known; none if nothing is.
pub fn level(forecast: &[f64]) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in forecast.iter().filter(|v| v.is_finite()) {
        sum += value;
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_learned_by_how_far_ahead_it_was() {
        let mut skill = Skill::new(60);
        let actual = |t: i64| if t % 2 == 0 { 90.0 } else { 110.0 };
        for t in 0..400 {
            // The next slot as it will be, the one after it twice as far from the mean, the third the wrong way.
            let forecast = [
                actual(t),
                100.0 + 2.0 * (actual(t + 1) - 100.0),
                200.0 - actual(t + 2),
                100.0 + 2.0 * (actual(t + 1) - 100.0) * -0.5,
                f64::NAN,
            ];
            let seen = (t > 0).then(|| actual(t - 1));
            skill.learn(t * 3_600, 3_600, seen, &forecast);
            if t == 50 {
                assert!((skill.trust(1) - 1.0).abs() < 1e-12, "too early to say");
            }
        }
        let trusted = [0, 1, 2, 4].map(|lead| skill.trust(lead));
        assert!(trusted[0] > 0.9, "{trusted:?}");
        assert!((trusted[1] - 0.5).abs() < 0.1, "{trusted:?}");
        assert!(trusted[2].abs() < 1e-9, "{trusted:?}");
        assert!(
            (trusted[3] - 1.0).abs() < 1e-12,
            "never compared: {trusted:?}"
        );
        skill.learn(
            400 * 3_600,
            3_600,
            None,
            &[f64::INFINITY, 1e300, -1e300, f64::NAN],
        );
        skill.learn(402 * 3_600, 3_600, Some(100.0), &[]);
        let spoilt = (0..96).map(|lead| skill.trust(lead));
        assert!(spoilt.into_iter().all(|trust| (0.0..=1.0).contains(&trust)));
        let trusted = [0, 1, 2, 4].map(|lead| skill.trust(lead));
        skill.learn(0, 3_600, Some(1.0), &[1.0]);
        let after = [0, 1, 2, 4].map(|lead| skill.trust(lead));
        assert_eq!(
            format!("{after:?}"),
            format!("{trusted:?}"),
            "time does not run backwards"
        );
    }
}
