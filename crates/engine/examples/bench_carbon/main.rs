//! The judge of `optimal`: every built-in trace × target error × demand × budget window × history, against the fair
//! and the free optimum and the constant mix; the ESOCC days; and how long a decision takes, in the mean and at worst.
//!
//! `cargo xtask bench carbon [--quick] [--json FILE]` runs it; by itself it also takes `--timing`, for the last part alone.
//! With `--choose` it shows instead what other settings would do, chosen on some traces and judged on others.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a measurement, not the product"
)]

mod cells;
mod choose;
mod decisions;
mod esocc;
mod figures;
mod timing;

use std::env;
use std::fs;

use cells::{Cell, Score};
use figures::Figures;
use weir_carbon::outlook::OutlookSettings;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let is_quick = arguments.iter().any(|a| a == "--quick");
    let json = arguments.iter().position(|a| a == "--json");
    let json = json.and_then(|at| arguments.get(at + 1));
    let mut figures = Figures::default();

    if arguments.iter().any(|a| a == "--choose") {
        println!("{}", choose::tables());
        return;
    }
    if !arguments.iter().any(|a| a == "--timing") {
        let scores = cells::play(&Cell::grid(is_quick), OutlookSettings::default());
        println!("{}", cells::table(&scores));
        judge(&mut figures, &scores);
        println!("{}", esocc::table(&mut figures));
    }
    timing::measure(&mut figures);
    println!("{}", figures.table());
    if let Some(file) = json {
        fs::write(file, figures.json()).expect("the figures are written");
    }
}

fn judge(figures: &mut Figures, scores: &[Score]) {
    let violations: u64 = scores.iter().map(|s| s.violations).sum();
    figures.at_most("carbon.violations", violations as f64, "requests", 0.0);
    let below = scores.iter().filter(|s| s.saved < s.mix).count();
    figures.at_most("carbon.below_constant_mix", below as f64, "cells", 0.0);
    let mut share = |id: &str, goal: f64, which: &dyn Fn(&Cell) -> bool| {
        let of: Vec<f64> = scores
            .iter()
            .filter(|s| which(&s.cell))
            .map(Score::share)
            .collect();
        if !of.is_empty() {
            let mean = of.iter().sum::<f64>() / of.len() as f64;
            figures.at_least(id, mean, "ratio", goal);
        }
    };
    share("carbon.share.168h.perfect.mean", 0.98, &|c| {
        c.window == "168h" && c.forecast == "perfect"
    });
    share("carbon.share.168h.vintages", 0.94, &|c| {
        c.window == "168h" && c.forecast == "vintages"
    });
    share("carbon.share.720h.perfect.mean", 0.94, &|c| {
        c.window == "720h" && c.forecast == "perfect"
    });
    share("carbon.share.720h.vintages", 0.90, &|c| {
        c.window == "720h" && c.forecast == "vintages"
    });
    share("carbon.share.year.history.mean", 0.90, &|c| {
        // Great Britain's second trace is no whole year.
        c.window == "trace"
            && c.forecast == "perfect"
            && c.history.is_some()
            && !c.trace.starts_with("gb")
    });
}
