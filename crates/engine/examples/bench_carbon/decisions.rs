//! How long each decision of a week takes, one by one: 96 slots, 8 flavours on the frontier. A decision that makes the outlook
//! anew is dearer than the others, and a mean would hide it.

use std::time::Instant;

use weir_carbon::flavour::{Flavour, Flavours};
use weir_carbon::policy::optimal::Optimal;
use weir_carbon::policy::{Policy, View};
use weir_carbon::unit::{ErrorRate, Precision};

/// Half-hours.
const WEEK: i64 = 336;
const TRIES: usize = 20;

/// The first week of a window of so many days, after so many days of past: microseconds by decision, each the least of some
/// tries, which is what the code takes, and not what else the machine had to do.
pub(crate) fn micros(window_days: i64, past_days: i64) -> Vec<f64> {
    let steps = (0..8_u32).map(|i| {
        let precision = Precision::from_millionths(1_000_000 - i * 100_000);
        Flavour::new(precision, 1.0 / f64::from(i + 1))
    });
    let flavours = Flavours::new(steps.collect()).expect("a set");
    assert_eq!(flavours.frontier().len(), 7, "all eight are worth choosing");
    let intensity = |t: i64| 150.0 + 60.0 * (t as f64 / 7.6).sin() + 40.0 * (t as f64 / 97.0).cos();
    let past = past_days * 48;
    let seen: Vec<f64> = (0..past + WEEK).map(intensity).collect();
    let served = [1_000_u64; WEEK as usize];
    let start = 604_800 * 2_800;
    let mut least = vec![f64::INFINITY; WEEK as usize];
    for _ in 0..TRIES {
        let mut policy = Optimal::default();
        for (at, least) in (0..).zip(&mut least) {
            let t = at as usize;
            let forecast: Vec<f64> = (0..96).map(|k| intensity(past + at + k)).collect();
            let view = View {
                now: start + at * 1_800,
                slot_seconds: 1_800,
                window_end: start + window_days * 86_400,
                balance: 50_000_000 + at * 1_000_000,
                target: ErrorRate::from_millionths(100_000),
                flavours: &flavours,
                forecast: &forecast,
                seen: &seen[..past as usize + t],
                served: &served[..t],
                last_error: Some(0.1),
            };
            let started = Instant::now();
            policy.decide(&view);
            *least = least.min(started.elapsed().as_secs_f64() * 1e6);
        }
    }
    least
}
