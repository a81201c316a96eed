//! How long one decision takes: 96 slots, 8 flavours on the frontier; with a window of a week and 60 days of past, and with a
//! window and a past of a year. `cargo bench -p weir-carbon`; `cargo xtask bench carbon` has the mean over a week as
//! `carbon.decision_us` and the dearest ones as `carbon.decision_worst_us` and `carbon.decision_worst_year_us`.

#![allow(
    clippy::expect_used,
    missing_docs,
    reason = "a measurement, not the product"
)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use weir_carbon::flavour::{Flavour, Flavours};
use weir_carbon::policy::optimal::Optimal;
use weir_carbon::policy::{Policy, View};
use weir_carbon::unit::{ErrorRate, Precision};

/// A year and 60 days of half-hours.
const PAST: i64 = (364 + 60) * 48;
const WEEK: i64 = 604_800;

fn intensity(slot: i64) -> f64 {
    let slot = f64::from(i32::try_from(slot).expect("small"));
    150.0 + 60.0 * (slot / 7.6).sin() + 40.0 * (slot / 97.0).cos()
}

fn flavours() -> Flavours {
    let one = |i: u32| {
        let precision = Precision::from_millionths(1_000_000 - i * 100_000);
        Flavour::new(precision, 1.0 / f64::from(i + 1))
    };
    Flavours::new((0..8).map(one).collect()).expect("a set")
}

fn decisions(c: &mut Criterion) {
    let flavours = flavours();
    let seen: Vec<f64> = (0..PAST + 2).map(intensity).collect();
    let forecasts: Vec<Vec<f64>> = (0..2)
        .map(|t| (0..96).map(|k| intensity(PAST + t + k)).collect())
        .collect();
    let served = [1_000; 2];
    let decide = |policy: &mut Optimal, t: usize, window: i64, past_days: usize| {
        let at = i64::try_from(t).expect("small");
        let now = usize::try_from(PAST).expect("small") + t;
        black_box(policy.decide(&View {
            now: WEEK * 2_800 + at * 1_800,
            slot_seconds: 1_800,
            window_end: WEEK * 2_800 + window,
            balance: 50_000_000,
            target: ErrorRate::from_millionths(100_000),
            flavours: &flavours,
            forecast: &forecasts[t],
            seen: &seen[now - past_days * 48..now],
            served: &served[..t],
            last_error: Some(0.1),
        }));
    };
    c.bench_function("decision, 96 slots x 8 flavours", |b| {
        let warm = || {
            let mut policy = Optimal::default();
            // The first three make the outlook.
            decide(&mut policy, 0, WEEK, 60);
            decide(&mut policy, 0, WEEK, 60);
            decide(&mut policy, 0, WEEK, 60);
            policy
        };
        let decide = |policy: &mut Optimal| decide(policy, 1, WEEK, 60);
        b.iter_batched_ref(warm, decide, BatchSize::SmallInput);
    });
    // Once in six hours.
    for (name, window, past_days) in [
        ("decision that makes the outlook anew", WEEK, 60),
        (
            "decision that makes that of a year anew",
            52 * WEEK,
            364 + 60,
        ),
    ] {
        c.bench_function(name, |b| {
            let decide = |policy: &mut Optimal| decide(policy, 0, window, past_days);
            b.iter_batched_ref(Optimal::default, decide, BatchSize::SmallInput);
        });
    }
}

criterion_group!(benches, decisions);
criterion_main!(benches);
