//! How long a decision takes, and a simulated year with all policies.

use std::time::Instant;

use weir_carbon::flavour::{Flavour, Flavours};
use weir_carbon::policy::optimal::Optimal;
use weir_carbon::policy::{Policy, View};
use weir_carbon::unit::{ErrorRate, Precision};
use weir_engine::simulate::demand::Demand;
use weir_engine::simulate::{BudgetWindow, Forecast, Request, Source, parse, play, prepare};

use crate::figures::Figures;

pub(crate) fn measure(figures: &mut Figures) {
    let micros = decision_micros();
    figures.below("carbon.decision_us", micros, "us", 100.0);
    figures.below("carbon.year_all_policies_seconds", year_seconds(), "s", 2.0);
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

fn year_seconds() -> f64 {
    let request = Request {
        trace: Source {
            name: "gb-2022".to_owned(),
            content: None,
        },
        history: None,
        forecast: Forecast::Perfect,
        flavours: parse::flavours("100:1.0,50:0.6,30:0.3").expect("flavours"),
        target: ErrorRate::from_millionths(100_000),
        window: BudgetWindow::Seconds(604_800),
        demand: Demand::Camel,
        policies: Vec::new(),
        seed: 1,
        series: false,
    };
    let prepared = prepare(&request).expect("a game");
    let started = Instant::now();
    let runs = play(vec![(prepared, request)], &|_, _| {});
    assert_eq!(runs.len(), 1);
    started.elapsed().as_secs_f64()
}
