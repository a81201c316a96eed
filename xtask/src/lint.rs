//! `cargo xtask lint`: everything that can be checked without running the product.
//!
//! Each step is a function that says how it went; [`deny`], [`dependencies`], [`headers`] and [`scripts`] have
//! files of their own. All steps run even when one fails, so that one run shows all there is to mend.

mod deny;
mod dependencies;
mod files;
mod headers;
mod scripts;

use std::{
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::{
    cli::LintStep,
    progress::human,
    repository,
    table::{self, Align},
};

/// Links to private items are fine: our documentation is for those who work on the code and has them.
const RUSTDOCFLAGS: &str = "-D warnings -A rustdoc::private-intra-doc-links";

/// How a step went.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    /// Passed as far as it could be tried; the reason why not all of it was.
    Skipped(String),
}

pub(crate) fn run(steps: &[LintStep]) -> ExitCode {
    let steps = if steps.is_empty() {
        LintStep::value_variants()
    } else {
        steps
    };
    let mut outcomes = Vec::new();
    for step in steps {
        println!("\n== {}", name(*step));
        let began = Instant::now();
        let outcome = check(*step).unwrap_or_else(|error| {
            println!("error: {error:#}");
            Outcome::Failed
        });
        outcomes.push((*step, outcome, began.elapsed()));
    }
    println!("\n{}", summary(&outcomes));
    let failed = outcomes
        .iter()
        .any(|(_, outcome, _)| *outcome == Outcome::Failed);
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn check(step: LintStep) -> Result<Outcome> {
    match step {
        LintStep::Fmt => judge(repository::cargo().args(["fmt", "--all", "--check"])),
        LintStep::Clippy => judge(repository::cargo().args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--",
            "-D",
            "warnings",
        ])),
        LintStep::Deny => deny::check(),
        LintStep::Docs => judge(repository::cargo().env("RUSTDOCFLAGS", RUSTDOCFLAGS).args([
            "doc",
            "--workspace",
            "--all-features",
            "--no-deps",
            "--document-private-items",
        ])),
        LintStep::Deps => dependencies::check(),
        LintStep::Headers => headers::check(),
        LintStep::Scripts => scripts::check(),
    }
}

/// Runs a command with its output passed on; success is success.
fn judge(command: &mut Command) -> Result<Outcome> {
    let status = command
        .status()
        .with_context(|| format!("cannot run {command:?}"))?;
    Ok(if status.success() {
        Outcome::Passed
    } else {
        Outcome::Failed
    })
}

/// Prints what was found; nothing found is success.
fn report(findings: &[String]) -> Outcome {
    for finding in findings {
        println!("error: {finding}");
    }
    if findings.is_empty() {
        Outcome::Passed
    } else {
        Outcome::Failed
    }
}

fn name(step: LintStep) -> String {
    step.to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default()
}

fn summary(outcomes: &[(LintStep, Outcome, Duration)]) -> String {
    let mut rows = Vec::new();
    for (step, outcome, took) in outcomes {
        let told = match outcome {
            Outcome::Passed => "passed".to_owned(),
            Outcome::Failed => "FAILED".to_owned(),
            Outcome::Skipped(reason) => format!("passed, but SKIPPED {reason}"),
        };
        rows.push(vec![name(*step), human(*took), told]);
    }
    table::render(&[Align::Left, Align::Right, Align::Left], &rows)
}
