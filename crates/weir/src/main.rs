//! `weir`: one binary, many roles. Here is only the way from the command line to the role; what a
//! role does is in its own crate.

mod cli;
mod completions;
mod crds;
mod documents;
mod manifests;
mod operator;
mod output;
mod resolver;
mod simulate;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};
use weir_role::exit::Exit;

fn main() -> ExitCode {
    weir_role::tls::install_provider();
    let Cli { log, command } = Cli::parse();
    if let Err(error) = log.init() {
        return fail(&error);
    }
    let outcome: Result<(), Box<dyn Error>> = match command {
        Command::Crds(args) => crds::run(&args).map_err(Into::into),
        Command::Manifests(args) => manifests::run(args).map_err(Into::into),
        Command::Operator(args) => operator::run(*args).map_err(Into::into),
        Command::Resolver(args) => resolver::run(*args).map_err(Into::into),
        Command::Simulate(args) => simulate::run(&args).map_err(Into::into),
        Command::Completions(args) => completions::run(&args).map_err(Into::into),
    };
    match outcome {
        Ok(()) => Exit::Success.into(),
        Err(error) => fail(error.as_ref()),
    }
}

fn fail(error: &dyn Error) -> ExitCode {
    eprintln!("weir: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprintln!("  because: {cause}");
        source = cause.source();
    }
    Exit::Failure.into()
}
