//! The figures of a run, as a table for people, and as JSON or CSV for programs. The JSON's keys are a contract.

use std::fmt::Write;

use jiff::Timestamp;
use serde::Serialize;
use weir_carbon::policy::ORIGINALS;
use weir_carbon::simulate::Taken;

use super::Played;

/// Cost of 1 is taken as 1 Wh per request, so that intensity × cost is in thousandths of a gram.
const PER_GRAM: f64 = 1_000.0;

/// One policy's figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The trace's name.
    pub trace: String,
    /// How the future was known.
    pub forecast: &'static str,
    /// The policy's name.
    pub policy: &'static str,
    /// Saved against always answering with the best flavour.
    pub saved_percent: f64,
    /// Saved, as a share of the best plan under the same window that is never in debt; null when that
    /// saves nothing.
    pub share_of_optimum: Option<f64>,
    /// The same against the plan that may borrow within the window.
    pub share_of_free_optimum: Option<f64>,
    /// Saved, against what a constant mix of the same error saves: 0.2 is a fifth more.
    pub gain_over_constant_mix: Option<f64>,
    /// Mean error of all requests.
    pub mean_error: f64,
    /// The highest running mean within a window, after any request.
    pub max_running_error: f64,
    /// Requests after which that was above the target.
    pub budget_violations: u64,
    /// Slots played.
    pub slots: usize,
    /// Emitted.
    pub emitted_g: f64,
    /// Emitted by the best flavour alone.
    pub baseline_g: f64,
    /// Emitted by the best plan that is never in debt.
    pub optimum_g: f64,
    /// Whether the budget's account stood between the policy and what was served. False for the original's policies as the
    /// original runs them: theirs are the only lines that can have violations.
    pub guarded: bool,
    /// Why the last decision was taken.
    pub why: Option<String>,
    /// What one more unit of error·request would have saved then, in grams at 1 Wh per unit of cost; null where the
    /// policy knows no price.
    pub shadow_price: Option<f64>,
    /// Each decision that differs from the one before; there when asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Explained>,
}

/// A decision, for people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explained {
    /// When, in UTC.
    pub at: String,
    /// Percent by flavour, best precision first.
    pub weights: Vec<u8>,
    /// In a few words.
    pub why: String,
    /// In grams, as in [`Line::shadow_price`].
    pub shadow_price: Option<f64>,
}

impl Explained {
    fn of(taken: &Taken) -> Self {
        let at = Timestamp::from_second(taken.at);
        Self {
            at: at.map_or_else(|_| taken.at.to_string(), |at| at.to_string()),
            weights: taken.decision.weights.percent().to_vec(),
            why: taken.decision.why.to_string(),
            shadow_price: taken.decision.shadow_price.map(|price| price / PER_GRAM),
        }
    }
}

/// All lines of all runs.
pub fn lines(runs: &[Played]) -> Vec<Line> {
    let mut lines = Vec::new();
    for run in runs {
        let sticks = &run.sticks;
        let over = |saved: f64, of: f64| (of > 0.0).then(|| saved / of);
        for outcome in &run.outcomes {
            let saved = sticks.baseline - outcome.emitted;
            let last = outcome.last.as_ref().map(Explained::of);
            lines.push(Line {
                trace: run.prepared.name.clone(),
                forecast: run.prepared.forecast,
                policy: outcome.policy,
                saved_percent: over(saved, sticks.baseline).unwrap_or(0.0) * 100.0,
                share_of_optimum: over(saved, sticks.fair),
                share_of_free_optimum: over(saved, sticks.free),
                gain_over_constant_mix: over(saved, sticks.constant_mix).map(|x| x - 1.0),
                mean_error: outcome.mean_error,
                max_running_error: outcome.max_running_error,
                budget_violations: outcome.budget_violations,
                slots: run.prepared.trace.values().len(),
                emitted_g: outcome.emitted / PER_GRAM,
                baseline_g: sticks.baseline / PER_GRAM,
                optimum_g: (sticks.baseline - sticks.fair) / PER_GRAM,
                guarded: !ORIGINALS.contains(&outcome.policy),
                shadow_price: last.as_ref().and_then(|last| last.shadow_price),
                why: last.map(|last| last.why),
                decisions: outcome.changes.iter().map(Explained::of).collect(),
            });
        }
    }
    lines
}

/// A list of [`Line`]s.
pub fn json(runs: &[Played]) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&lines(runs))?;
    text.push('\n');
    Ok(text)
}

/// The same as CSV, with a header; what is null is empty.
pub fn csv(runs: &[Played]) -> String {
    let mut text = String::from(
        "trace,forecast,policy,saved_percent,share_of_optimum,share_of_free_optimum,\
         gain_over_constant_mix,mean_error,max_running_error,budget_violations,slots,emitted_g,\
         baseline_g,optimum_g,guarded,why,shadow_price\n",
    );
    let or_empty = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
    for line in lines(runs) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "\"{}\",{},{},{},{},{},{},{},{},{},{},{},{},{},{},\"{}\",{}",
            line.trace.replace('"', "\"\""),
            line.forecast,
            line.policy,
            line.saved_percent,
            or_empty(line.share_of_optimum),
            or_empty(line.share_of_free_optimum),
            or_empty(line.gain_over_constant_mix),
            line.mean_error,
            line.max_running_error,
            line.budget_violations,
            line.slots,
            line.emitted_g,
            line.baseline_g,
            line.optimum_g,
            line.guarded,
            line.why.unwrap_or_default(),
            or_empty(line.shadow_price),
        );
    }
    text
}

/// For people.
pub fn table(runs: &[Played]) -> String {
    let mut text = String::new();
    for run in runs {
        let prepared = &run.prepared;
        let _ = writeln!(
            text,
            "{}: {} slots of {} min, {} requests, forecast: {}, target error {}",
            prepared.name,
            prepared.trace.values().len(),
            prepared.trace.slot_seconds() / 60,
            prepared.demand.iter().sum::<u64>(),
            prepared.forecast,
            prepared.setup().target.fraction(),
        );
        for note in &prepared.notes {
            let _ = writeln!(text, "  note: {note}");
        }
        let _ = writeln!(
            text,
            "\n  {:<30} {:>8} {:>11} {:>11} {:>10} {:>10} {:>11} {:>10}",
            "policy",
            "saved",
            "of optimum",
            "of free",
            "over mix",
            "error",
            "worst error",
            "emitted"
        );
        let lines = lines(std::slice::from_ref(run));
        for line in lines.iter().filter(|line| line.guarded) {
            row(&mut text, line);
        }
        if lines.iter().any(|line| !line.guarded) {
            text.push_str("  as the original runs them, with no budget kept:\n");
        }
        for line in lines.iter().filter(|line| !line.guarded) {
            row(&mut text, line);
        }
        explain(&mut text, &lines);
        text.push('\n');
    }
    text.push_str(
        "saved: against always the best flavour. of optimum: as a share of the best plan with full knowledge, same\n\
         window, never in debt; of free: that may borrow. over mix: more than a constant mix of the same error.\n\
         worst error: the highest running mean of any window, after any request. Emitted: at 1 Wh per unit of cost.\n",
    );
    text
}

fn row(text: &mut String, line: &Line) {
    // What was saved by breaking the budget is no share of what the budget allows.
    let percent = |value: Option<f64>| {
        let value = value.filter(|_| line.budget_violations == 0);
        value.map_or_else(|| "-".to_owned(), |v| format!("{:.1} %", v * 100.0))
    };
    let _ = write!(
        text,
        "  {:<30} {:>8} {:>11} {:>11} {:>10} {:>10.4} {:>11.4} {:>8.0} g",
        line.policy,
        format!("{:.1} %", line.saved_percent),
        percent(line.share_of_optimum),
        percent(line.share_of_free_optimum),
        percent(line.gain_over_constant_mix),
        line.mean_error,
        line.max_running_error,
        line.emitted_g,
    );
    if line.budget_violations > 0 {
        let _ = write!(
            text,
            "  BUDGET BROKEN at {} requests",
            line.budget_violations
        );
    }
    text.push('\n');
}

/// Why, for policies that have reasons: of the last decision, and of each change where it was asked for.
fn explain(text: &mut String, lines: &[Line]) {
    let price = |price: Option<f64>| {
        price.map_or_else(String::new, |p| {
            format!("; one more unit of error would save {p:.3} g")
        })
    };
    for line in lines {
        // A rule has no reasons: its changes are told without.
        let is_rule = line.why.as_deref() == Some(line.policy);
        if let Some(why) = line.why.as_ref().filter(|_| !is_rule) {
            let price = price(line.shadow_price);
            let _ = writeln!(
                text,
                "  why {}, at the last slot: {why}{price}",
                line.policy
            );
        }
        for decision in &line.decisions {
            let Explained {
                at,
                weights,
                why,
                shadow_price,
            } = decision;
            let price = price(*shadow_price);
            let why = if is_rule { "" } else { why };
            let _ = writeln!(text, "    {at} {} {weights:?} {why}{price}", line.policy);
        }
    }
}
