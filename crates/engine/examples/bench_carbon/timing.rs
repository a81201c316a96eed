//! How long a decision takes, and a simulated year with all policies.

use std::time::Instant;

use weir_carbon::unit::ErrorRate;
use weir_engine::simulate::demand::{Demand, PER_HOUR};
use weir_engine::simulate::{BudgetWindow, Forecast, Keep, Request, Source, parse, play, prepare};

use crate::decisions;
use crate::figures::Figures;

pub(crate) fn measure(figures: &mut Figures) {
    // The least of some tries: what the code takes, not what else the machine had to do.
    let least = |tries: u32, measure: &dyn Fn() -> f64| {
        (0..tries).map(|_| measure()).fold(f64::INFINITY, f64::min)
    };
    let week = decisions::micros(7, 60);
    let year = decisions::micros(364, 364 + 60);
    for (id, micros) in [
        ("carbon.decision_us", mean(&week)),
        ("carbon.decision_worst_us", worst(&week)),
        ("carbon.decision_worst_year_us", worst(&year)),
    ] {
        figures.below(id, micros, "us", 100.0);
    }
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

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}

fn worst(of: &[f64]) -> f64 {
    of.iter().copied().fold(0.0, f64::max)
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
