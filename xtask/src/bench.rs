//! `cargo xtask bench`: measurements, each a program of the crate that it measures, built as a release.
//!
//! All print a table and, with `--json FILE`, write their figures in one format.

use std::{
    path::{Path, absolute},
    process::ExitCode,
};

use anyhow::{Context, Result};

use crate::{cli::Bench, repository};

pub(crate) fn run(bench: Bench, is_quick: bool, json: Option<&Path>) -> Result<ExitCode> {
    let (package, example) = match bench {
        Bench::Carbon => ("weir-engine", "bench_carbon"),
    };
    let mut command = repository::cargo();
    command.args([
        "run",
        "--release",
        "--package",
        package,
        "--example",
        example,
        "--",
    ]);
    if is_quick {
        command.arg("--quick");
    }
    if let Some(file) = json {
        // The program runs in the root of the workspace, the file was named from here.
        command.arg("--json").arg(absolute(file)?);
    }
    let status = command.status().context("cannot run cargo")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
