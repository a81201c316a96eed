//! `cargo xtask …`: everything a developer of Weir runs, in one program.
//!
//! [`cli`] says what can be typed; each command has a module of its name. What they share: [`progress`] for
//! things that take a while and [`table`] for what is printed in columns.

#![allow(clippy::print_stdout, reason = "a program for the command line")]

mod cli;
mod lab;
mod progress;
mod table;
mod tools;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let outcome = match cli::Cli::parse().command {
        cli::Command::Lab { command } => lab::run(command),
        cli::Command::Tools { command } => tools::run(command.as_ref()),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
