//! `cargo xtask …`: everything a developer of Weir runs, in one program.
//!
//! [`cli`] says what can be typed; each command has a module of its name. What they share: [`progress`] for
//! things that take a while, [`table`] for what is printed in columns, [`repository`] for where we are.

#![allow(clippy::print_stdout, reason = "a program for the command line")]

mod bench;
mod cli;
mod lab;
mod lint;
mod progress;
mod repository;
mod table;
mod test;
mod tools;

use std::{
    panic,
    process::{self, ExitCode},
};

use clap::Parser;

fn main() -> ExitCode {
    end_quietly_when_nobody_reads();
    let outcome = match cli::Cli::parse().command {
        cli::Command::Bench { what, quick, json } => bench::run(what, quick, json.as_deref()),
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

/// `cargo xtask … | head` closes our output early: that is the reader's choice, not an error of ours.
fn end_quietly_when_nobody_reads() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |information| {
        let message = information.payload_as_str().unwrap_or_default();
        if message.starts_with("failed printing to stdout: Broken pipe") {
            process::exit(0);
        }
        tell(information);
    }));
}
