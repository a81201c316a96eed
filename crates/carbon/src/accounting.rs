//! What was emitted, and what would have been: the figures behind "saved", "share of the optimum" and
//! "gain over a constant mix", as they grow while a window goes on.

use crate::flavour::Flavours;
use crate::optimum::{self, Known};
use crate::unit::{AverageIntensity, ErrorRate, Grams, KilowattHours};

/// The books of one budget window. Flavours' costs are taken as Wh per request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Books {
    slots: Vec<Known>,
    emitted: f64,
    requests: f64,
}

/// Where a window stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Emitted so far.
    pub emitted: Grams,
    /// Emitted if the best flavour had answered everything.
    pub baseline: Grams,
    /// Emitted by a constant mix of the target's error.
    pub constant_mix: Grams,
    /// Emitted by the best plan that is never in debt, with full knowledge of what happened so far.
    pub optimum: Grams,
    /// Grams per request, the software carbon intensity without embodied carbon; none without requests.
    pub per_request: Option<Grams>,
    /// Saved, as a share of what the optimum saves; none where it saves nothing.
    pub share_of_optimum: Option<f64>,
    /// Saved, against what the constant mix saves: 0.2 is a fifth more; none where it saves nothing.
    pub gain_over_constant_mix: Option<f64>,
}

impl Books {
    /// A slot is over: requests per flavour, in the order of the set. Slots without intensity cannot be
    /// accounted for and are left out by the caller, which says so.
    pub fn slot(&mut self, intensity: AverageIntensity, flavours: &Flavours, served: &[u64]) {
        let mut requests = 0.0;
        for (flavour, count) in flavours.all().iter().zip(served) {
            #[expect(clippy::cast_precision_loss, reason = "requests of a slot")]
            let count = *count as f64;
            requests += count;
            self.emitted += intensity.emitted_by(energy(flavour.cost, count)).0;
        }
        self.requests += requests;
        self.slots.push(Known {
            intensity: intensity.grams_per_kwh(),
            demand: requests,
        });
    }

    /// The figures as of now.
    pub fn standing(&self, flavours: &Flavours, target: ErrorRate) -> Standing {
        let target = target.fraction();
        let weight: f64 = self.slots.iter().map(|s| s.intensity * s.demand).sum();
        let grams = |cost: f64| cost / 1_000.0;
        let baseline = grams(weight * flavours.best_cost());
        let mix = grams(weight * optimum::constant_mix(flavours, target));
        let best = grams(optimum::fair(&self.slots, flavours, target));
        let saved = baseline - self.emitted;
        Standing {
            emitted: Grams(self.emitted),
            baseline: Grams(baseline),
            constant_mix: Grams(baseline - mix),
            optimum: Grams(baseline - best),
            per_request: (self.requests > 0.0).then(|| Grams(self.emitted / self.requests)),
            share_of_optimum: (best > 0.0).then(|| saved / best),
            gain_over_constant_mix: (mix > 0.0).then(|| saved / mix - 1.0),
        }
    }
}

fn energy(watt_hours: f64, requests: f64) -> KilowattHours {
    KilowattHours(watt_hours * requests / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flavour::Flavour;
    use crate::unit::Precision;

    #[test]
    fn a_day_in_the_books() {
        let flavour = |m, cost| Flavour::new(Precision::from_millionths(m), cost);
        let flavours = Flavours::new(vec![flavour(1_000_000, 1.0), flavour(0, 0.0)]).unwrap();
        let target = ErrorRate::from_millionths(100_000);
        let mut books = Books::default();
        assert_eq!(books.standing(&flavours, target).per_request, None);
        books.slot(
            AverageIntensity::new(100.0).unwrap(),
            &flavours,
            &[1_000, 0],
        );
        books.slot(
            AverageIntensity::new(300.0).unwrap(),
            &flavours,
            &[800, 200],
        );
        let standing = books.standing(&flavours, target);
        assert!((standing.baseline.0 - 400.0).abs() < 1e-9);
        assert!((standing.emitted.0 - 340.0).abs() < 1e-9);
        assert_eq!(standing.share_of_optimum, Some(1.0));
        assert!((standing.gain_over_constant_mix.unwrap() - 0.5).abs() < 1e-9);
    }
}
