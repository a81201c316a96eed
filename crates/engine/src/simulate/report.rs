//! `--report`: a run as one HTML file that needs nothing else. `chart` draws, `times` marks the axis, here is what is shown.

mod chart;
mod times;

use std::fmt::Write;

use weir_carbon::policy::ORIGINALS;
use weir_carbon::simulate::Outcome;

use self::chart::{Bar, Bars, Chart, Line};
use super::Played;
use super::output;

const STYLE: &str = "\
:root{--paper:#fff;--ink:#1b1f24;--soft:#6a737d;--rule:#d9dee3;--a:#0b6e4f;--b:#c2410c;--c:#1d4ed8;--d:#7c3aed}\
@media(prefers-color-scheme:dark){:root{--paper:#14171a;--ink:#e6e8ea;--soft:#98a2ac;--rule:#333a41;\
--a:#4ade80;--b:#fb923c;--c:#7cb2ff;--d:#c4a5ff}}\
body{background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2.2rem}p,figcaption{color:var(--soft)}figure{margin:1rem 0}\
svg{width:100%;height:auto;display:block}svg text{font:12px system-ui,sans-serif;fill:var(--soft)}\
svg text.name{font-weight:600}table{border-collapse:collapse;width:100%}\
td,th{padding:.25rem .5rem;text-align:right;border-bottom:1px solid var(--rule)}td:first-child,th:first-child{text-align:left}";

/// Lines beside each other in one chart: more cannot be told apart.
const MOST_LINES: usize = 4;

/// The whole page. Runs must have been played with their series.
pub fn html(runs: &[Played]) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <title>weir simulate</title><style>{STYLE}</style></head><body><h1>What steering would have saved</h1>\n"
    );
    for run in runs {
        section(&mut page, run);
    }
    page.push_str("</body></html>\n");
    page
}

fn section(page: &mut String, run: &Played) {
    let prepared = &run.prepared;
    let target = prepared.setup().target.fraction();
    // Writing to a string cannot fail.
    let _ = writeln!(
        page,
        "<h2>{}</h2><p>{} slots of {} minutes; forecast: {}; target error {target}. {}</p>",
        escape(&prepared.name),
        prepared.trace.values().len(),
        prepared.trace.slot_seconds() / 60,
        prepared.forecast,
        escape(&prepared.notes.join(". ")),
    );
    bars(page, run);
    let time = (prepared.trace.start(), prepared.trace.end());
    let chart = |title, unit, lines| Chart {
        title,
        unit,
        time,
        lines,
    };
    let intensity = vec![Line::new("grid", prepared.trace.values().to_vec())];
    chart("Carbon intensity of the grid", "gCO2/kWh", intensity).draw(page);
    if let Some(first) = run.outcomes.first() {
        let precision = first.series.iter().map(|point| (1.0 - point.error) * 100.0);
        let lines = vec![Line::new(first.policy, precision.collect())];
        chart(
            "Precision that was served: low where the grid is dirty",
            "percent",
            lines,
        )
        .draw(page);
        let error = Line::new(first.policy, running_error(run, first));
        let bound = Line::new("target", vec![target; first.series.len()]);
        let lines = vec![error, bound];
        chart(
            "Mean error since the budget window began: never above the target",
            "one minus precision",
            lines,
        )
        .draw(page);
    }
    let shown = run
        .outcomes
        .iter()
        .filter(|o| o.policy != "p100" && !ORIGINALS.contains(&o.policy))
        .take(MOST_LINES);
    let mut saved: Vec<(&str, Vec<f64>)> = shown.map(|o| (o.policy, saved(run, o))).collect();
    let most = saved.iter().flat_map(|(_, values)| values).copied();
    let is_much = most.fold(0.0, f64::max) >= 10_000.0;
    if is_much {
        for value in saved.iter_mut().flat_map(|(_, values)| values) {
            *value /= 1_000.0;
        }
    }
    let unit = if is_much { "kg CO2" } else { "g CO2" };
    let lines = saved.into_iter();
    let lines = lines.map(|(policy, values)| Line::new(policy, values));
    chart("Saved since the beginning", unit, lines.collect()).draw(page);
}

fn bars(page: &mut String, run: &Played) {
    let lines = output::lines(std::slice::from_ref(run));
    let mut bars = Bars {
        title: if lines.iter().all(|line| line.guarded) {
            "Saved against always the best flavour; possible is what full knowledge saves within the same budget"
        } else {
            "Saved against always the best flavour; possible is what full knowledge saves within the same budget; \
             outlined: as the original runs, without one"
        },
        rows: Vec::new(),
    };
    for line in &lines {
        let share = line.share_of_optimum.map_or(String::new(), |share| {
            format!(" ({:.1} % of what was possible)", share * 100.0)
        });
        let said = if line.budget_violations > 0 {
            format!(
                "{:.1} %, but the budget is broken: error up to {:.2}",
                line.saved_percent, line.max_running_error
            )
        } else {
            format!("{:.1} %{share}", line.saved_percent)
        };
        bars.rows.push(Bar {
            name: line.policy,
            value: line.saved_percent,
            said,
            is_hollow: !line.guarded,
        });
    }
    bars.draw(page);
}

/// The running mean error of the window, at the end of each slot.
fn running_error(run: &Played, outcome: &Outcome) -> Vec<f64> {
    let setup = run.prepared.setup();
    let (mut errors, mut requests, mut since) = (0.0, 0.0, None);
    let mut at = setup.trace.start();
    let slots = outcome.series.iter().zip(setup.demand);
    slots
        .map(|(point, demand)| {
            let start = setup.windows.start(at);
            if since != Some(start) {
                (errors, requests, since) = (0.0, 0.0, Some(start));
            }
            at += setup.trace.slot_seconds();
            if *demand > 0 {
                #[expect(clippy::cast_precision_loss, reason = "requests of a slot")]
                let count = *demand as f64;
                errors += point.error * count;
                requests += count;
            }
            if requests > 0.0 {
                errors / requests
            } else {
                0.0
            }
        })
        .collect()
}

/// Grams saved so far, at the end of each slot.
fn saved(run: &Played, outcome: &Outcome) -> Vec<f64> {
    let setup = run.prepared.setup();
    let mut sum = 0.0;
    let slots = outcome
        .series
        .iter()
        .zip(setup.demand)
        .zip(setup.trace.values());
    slots
        .map(|((point, demand), intensity)| {
            #[expect(clippy::cast_precision_loss, reason = "requests of a slot")]
            let baseline = intensity * setup.flavours.best_cost() * *demand as f64;
            sum += (baseline - point.emitted) / 1_000.0;
            sum
        })
        .collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
