//! `weir`: one binary, many roles. Here is only the way from the command line to the role; what a
//! role does is in its own crate.

mod cli;
mod completions;
mod crds;
mod documents;
mod manifests;
mod operator;
mod output;
mod reports;
mod resolver;
mod simulate;
mod status;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};
use reports::Reports;
use weir_role::exit::Exit;

fn main() -> ExitCode {
    weir_role::tls::install_provider();
    let Cli { log, command } = Cli::parse();
    let reports = match Reports::start(&log, command.role()) {
        Ok(reports) => reports,
        Err(error) => return fail(error.as_ref()),
    };
    let outcome: Result<(), Box<dyn Error>> = match command {
        Command::Crds(args) => crds::run(&args).map_err(Into::into),
        Command::Manifests(args) => manifests::run(args).map_err(Into::into),
        Command::Operator(args) => operator::run(*args).map_err(Into::into),
        Command::Resolver(args) => resolver::run(*args).map_err(Into::into),
        Command::Status(args) => status::run(args).map_err(Into::into),
        Command::Simulate(args) => simulate::run(&args).map_err(Into::into),
        Command::Completions(args) => completions::run(&args).map_err(Into::into),
    };
    match outcome {
        Ok(()) => Exit::Success.into(),
        Err(error) => {
            reports.tell_end(error.as_ref());
            fail(error.as_ref())
        }
    }
}

fn fail(error: &dyn Error) -> ExitCode {
    eprintln!("weir: {}", explain(error));
    Exit::Failure.into()
}

/// The error and what it comes from, a line each.
fn explain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str("\n  because: ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
