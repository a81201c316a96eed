//! `cargo xtask bench carbon` and `constants`: a program of the crate that it measures, built as a release. It prints its own
//! tables and writes its own figures, in the format that all benchmarks share.

use std::{
    path::{Path, absolute},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result};

use crate::repository;

/// How good `optimal` is, and how fast.
pub(crate) fn run(is_quick: bool, json: Option<&Path>) -> Result<ExitCode> {
    let mut command = program();
    if is_quick {
        command.arg("--quick");
    }
    if let Some(file) = json {
        // The program runs in the root of the workspace, the file was named from here.
        command.arg("--json").arg(absolute(file)?);
    }
    finish(command)
}

/// Whether its constants would be chosen again. There are no figures, only tables.
pub(crate) fn constants() -> Result<ExitCode> {
    let mut command = program();
    command.arg("--choose");
    finish(command)
}

fn program() -> Command {
    let mut command = repository::cargo();
    command.args(["run", "--release", "--package", "weir-engine"]);
    command.args(["--example", "bench_carbon", "--"]);
    command
}

fn finish(mut command: Command) -> Result<ExitCode> {
    let status = command.status().context("cannot run cargo")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
