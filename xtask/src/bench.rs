//! `cargo xtask bench`: measurements, always beside something else in the same run.
//!
//! A benchmark returns [`Figure`]s; they are printed as a table and, if asked for, written as JSON in one format
//! for all. What was not measured is absent, never zero.

mod carbon;
mod load;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::{
    cli::Benchmark,
    table::{self, Align},
};

/// One thing that was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Figure {
    pub(crate) id: &'static str,
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
    pub(crate) fn new(id: &'static str, value: f64, unit: &'static str) -> Self {
        Self {
            id,
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
}

pub(crate) fn run(benchmark: Benchmark, quick: bool, json: Option<PathBuf>) -> Result<ExitCode> {
    let (name, figures) = match benchmark {
        Benchmark::Carbon => return carbon::run(quick, json.as_deref()),
        Benchmark::Load => ("load", load::run()?),
    };
    println!("\n{}", render(&figures));
    if let Some(path) = json {
        write(&path, name, &figures)?;
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
            figure.id.to_owned(),
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
}
