//! What could have been saved at best, with full knowledge: the yardsticks of [`crate::simulate`].

use crate::flavour::Flavours;
use crate::spend::Market;

/// One slot as it turned out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// gCO2/kWh.
    pub intensity: f64,
    /// Requests.
    pub demand: f64,
}

/// The most that a fractional plan saves in one window without ever being in debt, in intensity × cost.
pub fn fair(window: &[Known], flavours: &Flavours, target: f64) -> f64 {
    let earned = target - flavours.least_error();
    if earned <= 0.0 {
        return 0.0;
    }
    let mut market = Market::default();
    let mut saved = 0.0;
    for (i, slot) in window.iter().enumerate().rev() {
        market.open(i, slot.intensity, slot.demand, flavours.frontier());
        saved += market.pour(earned * slot.demand, |_, _| {});
    }
    saved
}

/// The same, where the plan may borrow within the window and only closes its budget at the end.
pub fn free(window: &[Known], flavours: &Flavours, target: f64) -> f64 {
    let earned = target - flavours.least_error();
    if earned <= 0.0 {
        return 0.0;
    }
    let mut market = Market::default();
    let mut credit = 0.0;
    for (i, slot) in window.iter().enumerate() {
        market.open(i, slot.intensity, slot.demand, flavours.frontier());
        credit += earned * slot.demand;
    }
    market.pour(credit, |_, _| {})
}

/// What a constant mix of the frontier with this mean error saves per unit of intensity and request:
/// the honest baseline, since it needs no carbon data at all.
pub fn constant_mix(flavours: &Flavours, target: f64) -> f64 {
    let mut left = target - flavours.least_error();
    let mut saved = 0.0;
    for step in flavours.frontier() {
        if left <= 0.0 {
            break;
        }
        let taken = left.min(step.error);
        saved += taken * step.saving_per_error;
        left -= taken;
    }
    saved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flavour::Flavour;
    use crate::unit::Precision;

    fn flavours() -> Flavours {
        let flavour = |m, cost| Flavour::new(Precision::from_millionths(m), cost);
        Flavours::new(vec![flavour(1_000_000, 1.0), flavour(300_000, 0.3)]).unwrap()
    }

    fn slots(intensities: &[f64]) -> Vec<Known> {
        let known = |&intensity| Known {
            intensity,
            demand: 10.0,
        };
        intensities.iter().map(known).collect()
    }

    #[test]
    fn credit_is_kept_for_what_comes_later_but_not_lent_to_what_came_before() {
        let earned = 0.1 * 10.0;
        let rising = fair(&slots(&[100.0, 200.0]), &flavours(), 0.1);
        assert!((rising - 2.0 * earned * 200.0).abs() < 1e-9);
        let falling = fair(&slots(&[200.0, 100.0]), &flavours(), 0.1);
        assert!((falling - earned * 300.0).abs() < 1e-9);
        let borrowed = free(&slots(&[200.0, 100.0]), &flavours(), 0.1);
        assert!((borrowed - 2.0 * earned * 200.0).abs() < 1e-9);
    }

    #[test]
    fn a_flat_grid_leaves_nothing_to_gain_over_the_constant_mix() {
        let flat = slots(&[150.0; 20]);
        let mix = constant_mix(&flavours(), 0.15) * 150.0 * 200.0;
        assert!((fair(&flat, &flavours(), 0.15) - mix).abs() < 1e-6);
    }

    #[test]
    fn without_room_in_the_budget_nothing_is_saved() {
        assert!(fair(&slots(&[100.0]), &flavours(), 0.0).abs() < 1e-12);
        assert!(constant_mix(&flavours(), 0.0).abs() < 1e-12);
    }
}
