//! `cargo xtask bench`: measurements, always beside something else in the same run.
//!
//! A benchmark returns [`Figure`]s; they are printed as a table and, if asked for, written as JSON in one format
//! for all. What was not measured is absent, never zero.

mod ask;
mod carbon;
mod load;
mod message;
mod nginx;
mod operator_scale;
mod packages;
mod place;
mod place_scale;
mod ports;
mod process;
mod resolver;
mod scale;
mod scratch;

use std::{fs, path::Path, process::ExitCode};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::{
    cli::{BenchArgs, Benchmark},
    table::{self, Align},
};

/// One thing that was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Figure {
    pub(crate) id: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// What it should be, and whether it is; most figures are just there to be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
}

#[derive(Serialize)]
struct Written<'a> {
    bench: &'a str,
    machine: Machine,
    figures: &'a [Figure],
}

/// What it was measured on.
#[derive(Serialize)]
struct Machine {
    cores: usize,
    kernel: String,
    architecture: &'static str,
}

impl Figure {
    pub(crate) fn new(id: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self {
            id: id.into(),
            value,
            unit,
            goal: None,
            met: None,
        }
    }

    /// It should not be below this.
    pub(crate) fn at_least(mut self, least: f64) -> Self {
        self.goal = Some(format!(">= {least}"));
        self.met = Some(self.value >= least);
        self
    }

    /// It should not be above this.
    pub(crate) fn at_most(mut self, most: f64) -> Self {
        self.goal = Some(format!("<= {most}"));
        self.met = Some(self.value <= most);
        self
    }

    /// It should be less than this.
    pub(crate) fn below(mut self, bound: f64) -> Self {
        self.goal = Some(format!("< {bound}"));
        self.met = Some(self.value < bound);
        self
    }

    /// It should be this, and it is counted: nothing lies between it and its neighbours.
    pub(crate) fn exactly(mut self, count: u32) -> Self {
        self.goal = Some(format!("= {count}"));
        self.met = Some((self.value - f64::from(count)).abs() < 0.5);
        self
    }
}

/// The one in the middle; of an even number the upper one.
fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The smallest value that at least this share of all does not exceed; of none it is not a number.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "an index: small, and not negative"
    )]
    let index = (sorted.len() as f64 * share).floor() as usize;
    let last = sorted.len().saturating_sub(1);
    sorted.get(index.min(last)).copied().unwrap_or(f64::NAN)
}

/// A count as a value to calculate with.
#[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
pub(crate) fn real(count: u64) -> f64 {
    count as f64
}

pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode> {
    let BenchArgs {
        benchmark,
        quick,
        only,
        services,
        program,
        json,
    } = args;
    let (quick, json) = (*quick, json.as_deref());
    if !only.is_empty() && *benchmark != Benchmark::Resolver {
        bail!("--only names parts of `bench resolver`");
    }
    let is_operator_scale = matches!(
        benchmark,
        Benchmark::OperatorScale | Benchmark::OperatorScaleInside
    );
    if (services.is_some() || program.is_some()) && !is_operator_scale {
        bail!("--services and --program are for `bench operator-scale`");
    }
    let (name, figures) = match benchmark {
        Benchmark::Carbon => return carbon::run(quick, json),
        Benchmark::Constants => return carbon::constants(),
        Benchmark::OperatorScale => {
            let services = operator_scale::services(*services, quick);
            return operator_scale::run(services, program.as_deref(), json);
        }
        Benchmark::OperatorScaleInside => {
            let services = operator_scale::services(*services, quick);
            return operator_scale::run_inside(services, json);
        }
        Benchmark::PlaceScale => return place_scale::run(quick, json),
        Benchmark::PlaceScaleInside => return place_scale::run_inside(quick, json),
        Benchmark::Load => ("load", load::run()?),
        Benchmark::Place => ("place", place::run()?),
        Benchmark::Resolver => ("resolver", resolver::run(quick, only)?),
    };
    finish(name, &figures, json)
}

/// Prints the figures and writes them, if asked for; a goal that is missed is a failure.
pub(crate) fn finish(name: &str, figures: &[Figure], json: Option<&Path>) -> Result<ExitCode> {
    println!("\n{}", render(figures));
    if let Some(path) = json {
        write(path, name, figures)?;
    }
    let is_short = figures.iter().any(|figure| figure.met == Some(false));
    Ok(if is_short {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn render(figures: &[Figure]) -> String {
    let head = ["figure", "value", "unit", "goal", ""].map(str::to_owned);
    let mut rows = vec![head.to_vec()];
    for figure in figures {
        let met = match figure.met {
            Some(true) => "met",
            Some(false) => "NOT MET",
            None => "",
        };
        let digits = if figure.value < 100.0 { 2 } else { 0 };
        rows.push(vec![
            figure.id.clone(),
            format!("{:.digits$}", figure.value),
            figure.unit.to_owned(),
            figure.goal.clone().unwrap_or_default(),
            met.to_owned(),
        ]);
    }
    table::render(&[Align::Left, Align::Right], &rows)
}

pub(crate) fn write(path: &Path, bench: &str, figures: &[Figure]) -> Result<()> {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let machine = Machine {
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        kernel: kernel.trim().to_owned(),
        architecture: std::env::consts::ARCH,
    };
    let written = Written {
        bench,
        machine,
        figures,
    };
    fs::write(path, serde_json::to_vec_pretty(&written)?)
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_judged_and_told() {
        let figures = [
            Figure::new("a.rate", 1234.5, "1/s"),
            Figure::new("a.ratio", 0.5, "ratio").at_least(0.4),
            Figure::new("b.ratio", 0.3, "ratio").at_least(0.4),
        ];
        assert_eq!(
            render(&figures),
            "  figure   value  unit   goal\n  a.rate    1234  1/s\n  \
             a.ratio   0.50  ratio  >= 0.4  met\n  b.ratio   0.30  ratio  >= 0.4  NOT MET"
        );
        let json = serde_json::to_value(&figures[..2]).unwrap();
        assert!(json[0].get("goal").is_none());
        assert_eq!(json[1]["goal"], ">= 0.4");
        assert_eq!(json[1]["met"], true);
    }

    #[test]
    fn every_kind_of_goal_is_judged_at_its_bound() {
        let figure = |value| Figure::new("a", value, "ms");
        let judged = |figure: Figure| (figure.goal.unwrap(), figure.met.unwrap());
        assert_eq!(judged(figure(1.25).at_most(1.25)), ("<= 1.25".into(), true));
        assert_eq!(
            judged(figure(1.26).at_most(1.25)),
            ("<= 1.25".into(), false)
        );
        assert_eq!(judged(figure(19.9).below(20.0)), ("< 20".into(), true));
        assert_eq!(judged(figure(20.0).below(20.0)), ("< 20".into(), false));
        assert_eq!(judged(figure(0.0).exactly(0)), ("= 0".into(), true));
        assert_eq!(judged(figure(1.0).exactly(0)), ("= 0".into(), false));
        // What could not be calculated meets no goal.
        assert_eq!(
            judged(figure(f64::NAN).at_most(1.0)),
            ("<= 1".into(), false)
        );
    }

    #[test]
    fn the_middle_one_counts() {
        let close = |value: f64, to: f64| (value - to).abs() < f64::EPSILON;
        assert!(close(median(&[3.0, 1.0, 2.0]), 2.0));
        assert!(median(&[]).is_nan());
        let hundred: Vec<f64> = (0..100).map(f64::from).collect();
        assert!(close(quantile(&hundred, 0.99), 99.0));
        assert!(close(quantile(&hundred, 1.0), 99.0));
    }
}
