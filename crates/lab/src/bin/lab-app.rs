//! The one program in the lab's own images: server, load generator, traffic generator and pause container, see [`weir_lab::app`].

use std::process::ExitCode;

use clap::Parser;
use weir_lab::app::command;

fn main() -> ExitCode {
    command::run(command::Cli::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}
