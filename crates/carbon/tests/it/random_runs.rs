//! Whole simulations of random grids, demands, flavours and forecasts: no policy ever breaks the
//! budget, and nothing panics.

use proptest::prelude::*;
use weir_carbon::budget::Windows;
use weir_carbon::flavour::{Flavour, Flavours};
use weir_carbon::forecast::{Capture, Forecaster, Vintages};
use weir_carbon::policy::{NAMES, by_name};
use weir_carbon::simulate::{Keep, Setup, measure, run};
use weir_carbon::trace::Trace;
use weir_carbon::unit::{ErrorRate, Precision};

fn values() -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![
        8 => 0.0..900.0_f64,
        1 => Just(0.0),
        1 => Just(f64::NAN),
    ];
    prop::collection::vec(value, 1..200)
}

fn demand() -> impl Strategy<Value = Vec<u64>> {
    let count = prop_oneof![
        6 => 0..300_u64,
        2 => Just(0),
        1 => 10_000..30_000_u64,
    ];
    // Shorter than the trace now and then: the rest is zero.
    prop::collection::vec(count, 0..220)
}

fn flavours() -> impl Strategy<Value = Flavours> {
    let one = (0..=100_u32, 0.0..2.0_f64);
    prop::collection::vec(one, 0..5).prop_map(|list| {
        let mut all = vec![Flavour::new(Precision::FULL, 1.0)];
        for (percent, cost) in list {
            let flavour = Flavour::new(Precision::from_millionths(percent * 10_000), cost);
            if all.iter().all(|f| f.precision != flavour.precision) {
                all.push(flavour);
            }
        }
        Flavours::new(all).expect("a set")
    })
}

fn vintages() -> impl Strategy<Value = Vintages> {
    let value = prop_oneof![
        6 => 0.0..2_000.0_f32,
        1 => Just(f32::NAN),
        1 => Just(f32::INFINITY),
        1 => Just(-50.0_f32),
    ];
    let capture = (0..400_000_i64, prop::collection::vec(value, 0..100))
        .prop_map(|(at, values)| Capture { at, values });
    prop::collection::vec(capture, 0..20).prop_map(|captures| Vintages::new(1_800, captures))
}

proptest! {
    // `WEIR_CARBON_CASES=100000 cargo test --release -p weir-carbon random` for the long run.
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("WEIR_CARBON_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(24)
    ))]

    #[test]
    fn no_policy_breaks_the_budget(
        values in values(),
        slot in prop_oneof![Just(900_i64), Just(1_800), Just(3_600), Just(10_800), Just(7_000)],
        demand in demand(),
        flavours in flavours(),
        vintages in vintages(),
        history in prop::collection::vec(prop_oneof![Just(f64::NAN), 0.0..500.0_f64], 0..80),
        which in 0..4_usize,
        target in 0..600_000_u32,
        hours in 1..400_i64,
        start in -200_000..200_000_i64,
    ) {
        let Ok(trace) = Trace::new(start, slot, values) else {
            return Ok(());
        };
        let setup = Setup {
            trace: &trace,
            history: &history,
            forecaster: [
                Forecaster::Perfect,
                Forecaster::Vintages(&vintages),
                Forecaster::Persistence,
                Forecaster::Climatology,
            ][which],
            demand: &demand,
            flavours: &flavours,
            target: ErrorRate::from_millionths(target),
            windows: Windows::new(hours * 3_600).expect("a length"),
        };
        let sticks = measure(&setup);
        prop_assert!(sticks.fair <= sticks.free * (1.0 + 1e-9) + 1e-9);
        for name in NAMES {
            let mut policy = by_name(name, 7).expect("a policy");
            let outcome = run(&setup, policy.as_mut(), Keep::default());
            prop_assert_eq!(outcome.budget_violations, 0, "{}", name);
            prop_assert!(outcome.max_running_error <= setup.target.fraction() + 1e-12);
            prop_assert!(outcome.emitted.is_finite());
            let saved = sticks.baseline - outcome.emitted;
            prop_assert!(saved <= sticks.fair * (1.0 + 1e-9) + 1e-6, "{} {:?}", name, sticks);
        }
    }
}
