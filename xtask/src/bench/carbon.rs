//! `cargo xtask bench carbon`: a program of the crate that it measures, built as a release. It prints its own
//! table and writes its own figures, in the format that all benchmarks share.

use std::{
    path::{Path, absolute},
    process::ExitCode,
};

use anyhow::{Context, Result};

use crate::repository;

pub(crate) fn run(is_quick: bool, json: Option<&Path>) -> Result<ExitCode> {
    let mut command = repository::cargo();
    command.args(["run", "--release", "--package", "weir-engine"]);
    command.args(["--example", "bench_carbon", "--"]);
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
