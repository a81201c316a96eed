//! How long a decision takes, and a simulated year with all policies.

use std::time::Instant;

use weir_carbon::flavour::{Flavour, Flavours};
use weir_carbon::policy::optimal::Optimal;
use weir_carbon::policy::{Policy, View};
use weir_carbon::unit::{ErrorRate, Precision};
use weir_engine::simulate::demand::{Demand, PER_HOUR};
use weir_engine::simulate::{BudgetWindow, Forecast, Keep, Request, Source, parse, play, prepare};

use crate::figures::Figures;

pub(crate) fn measure(figures: &mut Figures) {
    // The least of some tries: what the code takes, not what else the machine had to do.
    let least = |tries: u32, measure: &dyn Fn() -> f64| {
        (0..tries).map(|_| measure()).fold(f64::INFINITY, f64::min)
    };
    figures.below(
        "carbon.decision_us",
        least(10, &decision_micros),
        "us",
        100.0,
    );
    for (id, per_hour, target) in [
        ("carbon.year_all_policies_seconds", PER_HOUR, 100_000),
        ("carbon.year_2000_per_hour_seconds", 2_000, 100_000),
        // With a target like this no balance comes again, so that no round can be remembered.
        ("carbon.year_2000_per_hour_odd_seconds", 2_000, 123_457),
        ("carbon.year_100000_per_hour_seconds", 100_000, 100_000),
    ] {
        let seconds = least(3, &|| year_seconds(per_hour, target));
        figures.below(id, seconds, "s", 2.0);
    }
}

/// The mean over a week of half-hours: 96 slots, 8 flavours on the frontier, a weekly window, and a history of
/// 60 days; the outlook is made anew when it is due, and counts.
fn decision_micros() -> f64 {
    let steps = (0..8_u32).map(|i| {
        let precision = Precision::from_millionths(1_000_000 - i * 100_000);
        Flavour::new(precision, 1.0 / f64::from(i + 1))
    });
    let flavours = Flavours::new(steps.collect()).expect("a set");
    assert_eq!(flavours.frontier().len(), 7, "all eight are worth choosing");
    let intensity = |t: i64| 150.0 + 60.0 * (t as f64 / 7.6).sin() + 40.0 * (t as f64 / 97.0).cos();
    let days = 60 * 48;
    let seen: Vec<f64> = (0..days + 336).map(intensity).collect();
    let served = vec![1_000_u64; 336];
    let mut policy = Optimal::default();
    let started = Instant::now();
    for t in 0..336_usize {
        let at = i64::try_from(t).expect("small");
        let forecast: Vec<f64> = (0..96).map(|k| intensity(days + at + k)).collect();
        policy.decide(&View {
            now: 604_800 * 2_800 + at * 1_800,
            slot_seconds: 1_800,
            window_end: 604_800 * 2_801,
            balance: 50_000_000 + at * 1_000_000,
            target: ErrorRate::from_millionths(100_000),
            flavours: &flavours,
            forecast: &forecast,
            seen: &seen[..usize::try_from(days).expect("small") + t],
            served: &served[..t],
            last_error: Some(0.1),
        });
    }
    started.elapsed().as_secs_f64() * 1e6 / 336.0
}

/// A year of half-hours with all policies, so many requests an hour.
fn year_seconds(per_hour: u32, target: u32) -> f64 {
    let request = Request {
        trace: Source {
            name: "gb-2022".to_owned(),
            content: None,
        },
        history: None,
        forecast: Forecast::Perfect,
        flavours: parse::flavours("100:1.0,50:0.6,30:0.3").expect("flavours"),
        target: ErrorRate::from_millionths(target),
        window: BudgetWindow::Seconds(604_800),
        demand: Demand::Camel(per_hour),
        policies: Vec::new(),
        seed: 1,
        keep: Keep::default(),
    };
    let prepared = prepare(&request).expect("a game");
    let started = Instant::now();
    let runs = play(vec![(prepared, request)], &|_, _| {});
    assert_eq!(runs.len(), 1);
    started.elapsed().as_secs_f64()
}
