//! `cargo xtask …`: everything a developer of Weir runs, in one program.
//!
//! [`cli`] says what can be typed; each command has a module of its name. What they share: [`progress`] for
//! things that take a while, [`table`] for what is printed in columns, [`repository`] for where we are.

#![allow(clippy::print_stdout, reason = "a program for the command line")]

mod cli;
mod lab;
mod lint;
mod progress;
mod repository;
mod table;
mod test;
mod tools;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let outcome = match cli::Cli::parse().command {
        cli::Command::Lab { command } => lab::run(command),
        cli::Command::Lint { steps } => Ok(lint::run(&steps)),
        cli::Command::Test { what, arguments } => test::run(&what, &arguments),
        cli::Command::Tools { command } => tools::run(command.as_ref()),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
