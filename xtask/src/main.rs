//! `cargo xtask …`: everything a developer of Weir runs, in one program.
//!
//! [`cli`] says what can be typed; each command has a module of its name. What they share: [`progress`] for
//! things that take a while, [`table`] for what is printed in columns, [`repository`] for where we are, [`program`]
//! for programs that are built for release, [`site`] for clusters that scenarios run on, [`kube`] for what is asked of them,
//! and [`place`] for what is filled in them.

#![allow(clippy::print_stdout, reason = "a program for the command line")]

mod bench;
mod cli;
mod cluster;
mod e2e;
mod fuzz;
mod image;
mod kube;
mod lab;
mod lint;
mod load;
mod place;
mod program;
mod progress;
mod prove;
mod repository;
mod site;
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
        cli::Command::Cluster { name, command } => cluster::run(&name, command),
        cli::Command::Bench(args) => bench::run(&args),
        cli::Command::EndToEnd { scenario } => e2e::run(scenario),
        cli::Command::Fuzz { target, seconds } => fuzz::run(target.as_deref(), seconds),
        cli::Command::Image {
            of,
            tag,
            output,
            program,
        } => image::run(of, tag, output, program),
        cli::Command::Load { arguments } => load::run(&arguments),
        cli::Command::Lab { command } => lab::run(command),
        cli::Command::Lint { steps } => Ok(lint::run(&steps)),
        cli::Command::Prove {
            promise,
            cases,
            first,
            json,
        } => prove::run(promise, cases, first, json.as_deref()),
        cli::Command::Test {
            cluster: false,
            what,
            arguments,
        } => test::run(&what, &arguments),
        cli::Command::Test {
            cluster: true,
            what,
            arguments,
        } => test::cluster::run(&what, &arguments),
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
