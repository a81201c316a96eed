//! `cargo xtask e2e`: whole scenarios on a real cluster, with clients that count every request.
//!
//! Each scenario brings up a cluster of its own, installs what `weir manifests` prints, and ends with figures in the
//! format that all measurements share.

mod hold;
mod place;

use std::process::ExitCode;

use anyhow::Result;

use crate::{
    bench,
    cli::{E2eCommand, HoldArgs, PlaceArgs},
};

pub(crate) fn run(scenario: E2eCommand) -> Result<ExitCode> {
    match scenario {
        E2eCommand::Hold(arguments) => hold(arguments),
        E2eCommand::Place(arguments) => place(arguments),
    }
}

fn hold(arguments: HoldArgs) -> Result<ExitCode> {
    let HoldArgs {
        cycles,
        rate,
        json,
        with_faults,
        fault_cycles,
        early_wakes,
        name,
        dev,
        keep,
    } = arguments;
    let options = hold::Options {
        cycles,
        rate,
        faults: with_faults,
        fault_cycles: fault_cycles.unwrap_or(cycles),
        early_wakes,
        cluster: name,
        is_dev: dev,
        keep,
    };
    let mut figures = Vec::new();
    let outcome = hold::run(&options, &mut figures);
    let code = bench::finish("hold", &figures, json.as_deref())?;
    outcome.map(|()| code)
}

fn place(arguments: PlaceArgs) -> Result<ExitCode> {
    let PlaceArgs { json, dev, keep } = arguments;
    let figures = place::run(&place::Options { is_dev: dev, keep })?;
    bench::finish("place", &figures, json.as_deref())
}
