//! Inputs that nobody wants and everybody has: each has an answer, none panics, none breaks the budget.

use weir_carbon::budget::{Account, Windows};
use weir_carbon::demand::DemandProfile;
use weir_carbon::flavour::{Flavour, Flavours};
use weir_carbon::forecast::{Capture, Forecaster, Vintages};
use weir_carbon::policy::optimal::Optimal;
use weir_carbon::policy::{Policy, View, Why};
use weir_carbon::simulate::{Keep, Outcome, Setup, Yardsticks, measure, run};
use weir_carbon::trace::{Trace, TraceError};
use weir_carbon::unit::{ErrorRate, Precision};

const HOURS: usize = 24 * 21;

fn flavours(of: &[(u32, f64)]) -> Flavours {
    let one = |&(percent, cost): &(u32, f64)| {
        Flavour::new(Precision::from_millionths(percent * 10_000), cost)
    };
    Flavours::new(of.iter().map(one).collect()).expect("a set")
}

/// Three weeks with a rhythm of a day and of a week.
fn grid() -> Vec<f64> {
    (0..HOURS)
        .map(|h| {
            let h = f64::from(u32::try_from(h).expect("small"));
            200.0 + 80.0 * (h / 3.8).sin() + 60.0 * (h / 26.7).sin()
        })
        .collect()
}

fn play(demand: &[u64], forecaster: Forecaster<'_>, set: &Flavours) -> (Outcome, Yardsticks) {
    let trace = Trace::new(0, 3_600, grid()).expect("a trace");
    let setup = Setup {
        trace: &trace,
        history: &[],
        forecaster,
        demand,
        flavours: set,
        target: ErrorRate::from_millionths(100_000),
        windows: Windows::new(604_800).expect("a week"),
    };
    let outcome = run(&setup, &mut Optimal::default(), Keep::default());
    assert_eq!(outcome.budget_violations, 0);
    (outcome, measure(&setup))
}

fn share((outcome, sticks): &(Outcome, Yardsticks)) -> f64 {
    (sticks.baseline - outcome.emitted) / sticks.fair
}

const THREE: [(u32, f64); 3] = [(100, 1.0), (50, 0.6), (30, 0.3)];

#[test]
fn a_day_without_demand_and_a_spike_cost_carbon_at_most() {
    let set = flavours(&THREE);
    let mut demand = vec![100; HOURS];
    demand[100..124].fill(0);
    demand[300] = 100_000;
    let played = play(&demand, Forecaster::Perfect, &set);
    assert!(share(&played) > 0.3, "{played:?}");
    let none = play(&[0; HOURS], Forecaster::Perfect, &set);
    assert_eq!(none.0.requests, 0);
    assert!(none.0.emitted.abs() < 1e-12);
}

#[test]
fn a_forecast_that_is_wrong_by_three_still_beats_the_constant_mix() {
    let set = flavours(&THREE);
    // Three times too high, as published every hour: the order of the slots is right, the level is not.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "forecasts are kept in single precision"
    )]
    let values: Vec<f32> = grid().into_iter().map(|v| v as f32 * 3.0).collect();
    let captures = (0..HOURS).map(|h| Capture {
        at: i64::try_from(h).expect("small") * 3_600,
        values: values[h..(h + 48).min(HOURS)].to_vec(),
    });
    let vintages = Vintages::new(3_600, captures.collect());
    let (outcome, sticks) = play(&[100; HOURS], Forecaster::Vintages(&vintages), &set);
    let saved = sticks.baseline - outcome.emitted;
    assert!(saved > sticks.constant_mix, "{saved} {sticks:?}");
}

#[test]
fn without_any_forecast_yesterday_stands_in() {
    let set = flavours(&THREE);
    let nothing = Vintages::default();
    let (outcome, sticks) = play(&[100; HOURS], Forecaster::Vintages(&nothing), &set);
    assert!(sticks.baseline - outcome.emitted > 0.8 * sticks.constant_mix);
}

#[test]
fn one_flavour_or_none_within_the_target_means_the_best() {
    let alone = play(&[100; HOURS], Forecaster::Perfect, &flavours(&[(100, 1.0)]));
    assert!((alone.0.emitted - alone.1.baseline).abs() < 1e-6);
    let dearer = flavours(&[(100, 1.0), (50, 1.5)]);
    let useless = play(&[100; HOURS], Forecaster::Perfect, &dearer);
    assert!(useless.0.mean_error.abs() < 1e-12);
}

#[test]
fn a_best_flavour_worse_than_the_target_is_served_and_told() {
    let set = flavours(&[(80, 1.0), (30, 0.3)]);
    let trace = Trace::new(0, 3_600, grid()).expect("a trace");
    let setup = Setup {
        trace: &trace,
        history: &[],
        forecaster: Forecaster::Perfect,
        demand: &[10; HOURS],
        flavours: &set,
        target: ErrorRate::from_millionths(100_000),
        windows: Windows::new(604_800).expect("a week"),
    };
    let outcome = run(&setup, &mut Optimal::default(), Keep::default());
    // Nothing worse than the unavoidable was chosen, and every request is counted as beyond the target.
    assert!((outcome.max_running_error - 0.2).abs() < 1e-12);
    assert_eq!(outcome.budget_violations, outcome.requests);
    assert!(measure(&setup).fair.abs() < 1e-12);
}

#[test]
fn time_that_runs_backwards_and_a_window_that_is_over_are_decided_as_well() {
    let set = flavours(&THREE);
    let mut policy = Optimal::default();
    for (now, end) in [
        (7_200, 604_800),
        (0, 604_800),
        (-50, -100),
        (604_800, 604_800),
    ] {
        let decision = policy.decide(&View {
            now,
            slot_seconds: 1_800,
            window_end: end,
            balance: -5,
            target: ErrorRate::from_millionths(100_000),
            flavours: &set,
            forecast: &[100.0, f64::NAN, -7.0, f64::INFINITY, 1e300],
            seen: &[],
            served: &[],
            last_error: None,
        });
        assert_eq!(
            decision
                .weights
                .percent()
                .iter()
                .map(|w| u32::from(*w))
                .sum::<u32>(),
            100
        );
    }
    let blind = policy.decide(&View {
        now: 0,
        slot_seconds: 1_800,
        window_end: 604_800,
        balance: 0,
        target: ErrorRate::from_millionths(100_000),
        flavours: &set,
        forecast: &[],
        seen: &[],
        served: &[],
        last_error: None,
    });
    assert_eq!(blind.why, Why::NoForecast);
    assert_eq!(blind.weights.percent(), [86, 0, 14]);
}

#[test]
fn traces_that_are_none_are_refused() {
    assert_eq!(Trace::new(0, 1_800, Vec::new()), Err(TraceError::Empty));
    assert_eq!(Trace::new(0, 1_800, vec![f64::NAN]), Err(TraceError::Empty));
    assert_eq!(Trace::new(0, 0, vec![1.0]), Err(TraceError::SlotLength(0)));
    for bad in [-1.0, f64::INFINITY, 20_000.0] {
        assert!(matches!(
            Trace::new(0, 60, vec![1.0, bad]),
            Err(TraceError::Value(1, _))
        ));
    }
}

#[test]
fn a_forecast_that_goes_mad_for_a_day_costs_carbon_at_most() {
    let set = flavours(&THREE);
    let values = grid();
    let capture = |hour: usize| Capture {
        at: i64::try_from(hour).expect("small") * 3_600,
        values: (0..48)
            .map(|lead| match (hour, lead % 4) {
                (200..224, 0) => f32::NAN,
                (200..224, 1) => -4e30,
                (200..224, 2) => f32::INFINITY,
                (200..224, _) => 3e38,
                #[expect(clippy::cast_possible_truncation, reason = "three digits")]
                _ => values.get(hour + lead).map_or(f32::NAN, |v| *v as f32),
            })
            .collect(),
    };
    let vintages = Vintages::new(3_600, (0..values.len()).map(capture).collect());
    let demand = vec![200; values.len()];
    let mad = play(&demand, Forecaster::Vintages(&vintages), &set);
    assert_eq!(mad.0.budget_violations, 0);
    assert!(share(&mad) > 0.7, "{}", share(&mad));
}

#[test]
fn feedback_of_slots_long_past_changes_neither_account_nor_plan() {
    let set = flavours(&THREE);
    let target = ErrorRate::from_millionths(100_000);
    let mut account = Account::new(Windows::new(3_600).expect("a length"), 0);
    let ticket = account.choose(0, &set, |_| true, target).expect("one");
    account.advance(90_000);
    account.answered(ticket);
    assert_eq!((account.balance(), account.since()), (0, 90_000));

    let mut profile = DemandProfile::default();
    profile.learn(&[10; 48], 48 * 3_600, 3_600);
    // An hour of yesterday is reported again, late: nothing that is new.
    profile.learn(&[10; 47], 48 * 3_600, 3_600);
    profile.learn(&[10; 48], 48 * 3_600, 3_600);
    assert!((profile.expect(48 * 3_600, 3_600) - 10.0).abs() < 1e-9);
}
