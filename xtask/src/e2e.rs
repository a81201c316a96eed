//! `cargo xtask e2e`: whole scenarios on a real cluster, with clients that count every request.
//!
//! Each scenario brings up a cluster of its own, installs what `weir manifests` prints, and ends with figures in the
//! format that all measurements share.

mod hold;

use std::process::ExitCode;

use anyhow::Result;

use crate::{
    bench,
    cli::{E2eCommand, HoldArgs},
};

pub(crate) fn run(scenario: E2eCommand) -> Result<ExitCode> {
    let E2eCommand::Hold(arguments) = scenario;
    let HoldArgs {
        cycles,
        rate,
        json,
        with_faults,
        fault_cycles,
        early_wakes,
        dev,
        keep,
    } = arguments;
    let figures = hold::run(&hold::Options {
        cycles,
        rate,
        faults: with_faults,
        fault_cycles: fault_cycles.unwrap_or(cycles),
        early_wakes,
        is_dev: dev,
        keep,
    })?;
    bench::finish("hold", &figures, json.as_deref())
}
