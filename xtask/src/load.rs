//! `cargo xtask load`: the load generator, built for release and run with what was typed.
//!
//! It is a role of the program `lab-app`, so that this program need not be built with all that it takes. [`report`] is what it writes.

pub(crate) mod report;

use std::{
    ffi::OsString,
    process::{Command, ExitCode},
};

use anyhow::{Context, Result};

use crate::program::LAB_APP;

pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let program = LAB_APP.build()?;
    let status = Command::new(&program).arg("load").args(arguments).status();
    let status = status.with_context(|| format!("cannot run {}", program.display()))?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
