//! Figures in the one format of all benchmarks, and as a table.

use std::fmt::Write;
use std::num::NonZero;
use std::thread;

use serde::Serialize;

/// All figures of a run. One that was not measured is absent.
#[derive(Debug, Default)]
pub(crate) struct Figures(Vec<Figure>);

#[derive(Debug, Serialize)]
struct Figure {
    id: String,
    value: f64,
    unit: &'static str,
    goal: String,
    met: bool,
}

impl Figures {
    pub(crate) fn at_least(&mut self, id: &str, value: f64, unit: &'static str, goal: f64) {
        self.push(id, value, unit, format!(">= {goal}"), value >= goal);
    }

    pub(crate) fn at_most(&mut self, id: &str, value: f64, unit: &'static str, goal: f64) {
        self.push(id, value, unit, format!("<= {goal}"), value <= goal);
    }

    pub(crate) fn below(&mut self, id: &str, value: f64, unit: &'static str, goal: f64) {
        self.push(id, value, unit, format!("< {goal}"), value < goal);
    }

    fn push(&mut self, id: &str, value: f64, unit: &'static str, goal: String, met: bool) {
        self.0.push(Figure {
            id: id.to_owned(),
            value,
            unit,
            goal,
            met,
        });
    }

    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        for figure in &self.0 {
            let _ = writeln!(
                text,
                "{:<38} {:>10.4} {:<9} goal {:<8} {}",
                figure.id,
                figure.value,
                figure.unit,
                figure.goal,
                if figure.met { "met" } else { "NOT MET" }
            );
        }
        text
    }

    pub(crate) fn json(&self) -> String {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let value = serde_json::json!({
            "bench": "carbon",
            "machine": {
                "os": std::env::consts::OS,
                "arch": std::env::consts::ARCH,
                "cores": cores,
            },
            "figures": self.0,
        });
        format!("{value:#}\n")
    }
}
