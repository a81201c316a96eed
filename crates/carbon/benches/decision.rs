//! How long one decision takes: 96 slots, 8 flavours on the frontier, a weekly window and 60 days of past.
//! `cargo bench -p weir-carbon`; `cargo xtask bench carbon` has the mean over a week as `carbon.decision_us`.

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

const DAYS: i64 = 60 * 48;

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
    let seen: Vec<f64> = (0..DAYS + 2).map(intensity).collect();
    let forecasts: Vec<Vec<f64>> = (0..2)
        .map(|t| (0..96).map(|k| intensity(DAYS + t + k)).collect())
        .collect();
    let served = [1_000; 2];
    let decide = |policy: &mut Optimal, t: usize| {
        let at = i64::try_from(t).expect("small");
        black_box(policy.decide(&View {
            now: 604_800 * 2_800 + at * 1_800,
            slot_seconds: 1_800,
            window_end: 604_800 * 2_801,
            balance: 50_000_000,
            target: ErrorRate::from_millionths(100_000),
            flavours: &flavours,
            forecast: &forecasts[t],
            seen: &seen[..usize::try_from(DAYS).expect("small") + t],
            served: &served[..t],
            last_error: Some(0.1),
        }));
    };
    c.bench_function("decision, 96 slots x 8 flavours", |b| {
        let warm = || {
            let mut policy = Optimal::default();
            decide(&mut policy, 0);
            policy
        };
        b.iter_batched_ref(warm, |policy| decide(policy, 1), BatchSize::SmallInput);
    });
    // Once in six hours.
    c.bench_function("decision that makes the outlook anew", |b| {
        b.iter_batched_ref(
            Optimal::default,
            |policy| decide(policy, 0),
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, decisions);
criterion_main!(benches);
