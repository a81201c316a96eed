//! A random game, and what the simulator makes of it with one decider.

use weir_carbon::budget::Windows;
use weir_carbon::flavour::{Flavour, Flavours};
use weir_carbon::forecast::{Capture, Forecaster, Vintages};
use weir_carbon::policy::{NAMES, by_name};
use weir_carbon::simulate::{Keep, Setup, measure, run};
use weir_carbon::trace::Trace;
use weir_carbon::unit::{ErrorRate, Precision};

use super::chance::Chance;

pub(super) struct Game {
    pub(super) trace: Trace,
    pub(super) history: Vec<f64>,
    pub(super) vintages: Vintages,
    forecast: usize,
    pub(super) demand: Vec<u64>,
    pub(super) flavours: Flavours,
    pub(super) target: ErrorRate,
    pub(super) windows: Windows,
}

impl Game {
    pub(super) fn random(chance: &mut Chance) -> Self {
        let slot = chance.of(&[900, 1_800, 1_800, 3_600, 7_000, 10_800]);
        let length = 1 + chance.index(120);
        let scale = chance.of(&[1.0, 60.0, 300.0, 900.0]);
        let mut level = chance.part() * scale;
        let values = (0..length).map(|_| {
            level = (level + (chance.part() - 0.5) * scale / 3.0).clamp(0.0, scale);
            match chance.below(60) {
                0 => 0.0,
                1 => f64::NAN,
                _ => level,
            }
        });
        let mut values: Vec<f64> = values.collect();
        values[0] = level;
        let start = chance.within(-2_000_000, 2_000_000_000);
        let busy = chance.of(&[1, 20, 150, 400]);
        let demand = (0..length).map(|_| match chance.below(40) {
            0..5 => 0,
            5 => busy * 30,
            _ => chance.below(busy + 1),
        });
        let demand = demand.collect();
        let lasts = slot * i64::try_from(length).expect("small");
        let captures = (0..chance.index(12)).map(|_| Capture {
            at: start + chance.within(-90_000, lasts),
            values: (0..chance.index(100))
                .map(|_| cell(chance, scale))
                .collect(),
        });
        let captures = captures.collect();
        Self {
            demand,
            vintages: Vintages::new(slot, captures),
            forecast: chance.index(4),
            flavours: flavours(chance),
            history: (0..chance.index(200))
                .map(|_| {
                    if chance.once_in(9) {
                        f64::NAN
                    } else {
                        chance.part() * scale
                    }
                })
                .collect(),
            target: ErrorRate::from_millionths(target(chance)),
            windows: Windows::new(chance.within(1, 400) * 3_600).expect("a length"),
            trace: Trace::new(start, slot, values).expect("a trace"),
        }
    }

    pub(super) fn forecaster(&self) -> Forecaster<'_> {
        [
            Forecaster::Perfect,
            Forecaster::Vintages(&self.vintages),
            Forecaster::Persistence,
            Forecaster::Climatology,
        ][self.forecast]
    }
}

/// What a provider may say: also nonsense.
#[expect(clippy::cast_possible_truncation, reason = "made up anyway")]
fn cell(chance: &mut Chance, scale: f64) -> f32 {
    match chance.below(20) {
        0 => f32::NAN,
        1 => f32::INFINITY,
        2 => -50.0,
        _ => (chance.part() * scale * 3.0) as f32,
    }
}

/// In whole percents as people write them, or in any millionths.
pub(super) fn target(chance: &mut Chance) -> u32 {
    let millionths = match chance.below(10) {
        0 => 0,
        1..4 => chance.below(600_001),
        _ => chance.below(40) * 10_000,
    };
    u32::try_from(millionths).expect("small")
}

/// The best flavour is always perfect: with a worse one the bound can be missed by no choice of ours.
fn flavours(chance: &mut Chance) -> Flavours {
    let mut all = vec![Flavour::new(Precision::FULL, 1.0)];
    for _ in 0..chance.index(7) {
        let unit = chance.of(&[1, 10_000, 50_000]);
        let precision = chance.below(1_000_000 / unit) * unit;
        let precision = Precision::from_millionths(u32::try_from(precision).expect("small"));
        if all.iter().all(|f| f.precision != precision) {
            all.push(Flavour::new(precision, chance.part() * 1.2));
        }
    }
    Flavours::new(all).expect("a set")
}

/// `optimal` and another policy, against the yardsticks.
pub(super) fn simulated(game: &Game, chance: &mut Chance) {
    let setup = Setup {
        trace: &game.trace,
        history: &game.history,
        forecaster: game.forecaster(),
        demand: &game.demand,
        flavours: &game.flavours,
        target: game.target,
        windows: game.windows,
    };
    let sticks = measure(&setup);
    for name in ["optimal", chance.of(&NAMES)] {
        let mut policy = by_name(name, chance.next()).expect("a policy");
        let outcome = run(&setup, policy.as_mut(), Keep::default());
        assert_eq!(outcome.budget_violations, 0, "{name}");
        assert!(outcome.max_running_error <= game.target.fraction() + 1e-12);
        let saved = sticks.baseline - outcome.emitted;
        let most = sticks.fair * (1.0 + 1e-9) + 1e-6;
        assert!(
            saved <= most,
            "{name} saved {saved}, the optimum {sticks:?}"
        );
    }
}
