//! `cargo xtask prove`: a test that the usual run plays a few times, played many times, as a release. It tells its own progress.

use std::{
    path::{Path, absolute},
    process::ExitCode,
};

use anyhow::{Context, Result};

use crate::{
    bench::{self, Figure},
    cli::Promise,
    repository,
};

/// The test in `crates/carbon/tests/it/prove.rs`.
const BUDGET: &str = "prove::no_random_simulation_breaks_the_budget";

pub(crate) fn run(
    promise: Promise,
    cases: u64,
    first: u64,
    json: Option<&Path>,
) -> Result<ExitCode> {
    let (name, package, test) = match promise {
        Promise::Budget => ("budget", "weir-carbon", BUDGET),
    };
    let mut command = repository::cargo();
    command.args(["test", "--release", "--package", package, "--test", "it"]);
    command.args(["--", "--exact", "--nocapture", test]);
    command.env("WEIR_PROVE_CASES", cases.to_string());
    command.env("WEIR_PROVE_FIRST", first.to_string());
    let status = command.status().context("cannot run cargo")?;
    if !status.success() {
        // A figure that was not measured is absent: the case that failed is told above.
        return Ok(ExitCode::FAILURE);
    }
    if let Some(file) = json {
        #[expect(clippy::cast_precision_loss, reason = "a count far below 2^52")]
        let simulations = Figure::new("carbon.prove.simulations", cases as f64, "count");
        let violations = Figure::new("carbon.prove.violations", 0.0, "requests").at_most(0.0);
        bench::write(&absolute(file)?, name, &[simulations, violations])?;
    }
    Ok(ExitCode::SUCCESS)
}
