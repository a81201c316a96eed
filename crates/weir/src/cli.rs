//! What can be typed: the commands, their flags and their help. Parsing does no work; each command
//! is carried out by the module of its name.

use clap::{Parser, Subcommand};
use weir_operator::settings::OperatorArgs;
use weir_resolver::settings::ResolverArgs;
use weir_role::log::LogArgs;

use crate::completions::CompletionsArgs;
use crate::crds::CrdsArgs;
use crate::manifests::ManifestsArgs;
use crate::simulate::SimulateArgs;
use crate::status::StatusArgs;

/// Traffic on Kubernetes that costs nothing when idle, as little carbon as an error budget allows,
/// and no saturated network card
#[derive(Parser, Debug)]
#[command(
    name = "weir",
    version = concat!(env!("CARGO_PKG_VERSION"), " (", env!("WEIR_COMMIT"), ")"),
    after_help = EXAMPLES,
    arg_required_else_help = true,
    propagate_version = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) log: LogArgs,

    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  weir crds | kubectl apply -f -        install the three resources
  weir crds --only hold --format json   one of them, as JSON
  weir manifests --only hold            what to install, for kubectl apply
  weir status                           nodes, how full they are, and why
  weir simulate                         what steering would have saved, on a real day and week
  weir completions bash                 completions for a shell

Exit codes: 0 success, 1 failure, 2 wrong usage.";

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Print the definitions of the three resources, to be applied to a cluster
    Crds(CrdsArgs),

    /// Print what to install: the parts of Weir with all that they need
    Manifests(ManifestsArgs),

    /// The controllers: put targets to sleep and wake them
    Operator(Box<OperatorArgs>),

    /// Hold's data plane: keeps requests for sleeping services until they are awake
    Resolver(Box<ResolverArgs>),

    /// What place and hold say of their objects: nodes, how full they are and why, what sleeps
    Status(StatusArgs),

    /// What would I have saved? Policies against a real trace of carbon intensity
    Simulate(Box<SimulateArgs>),

    /// Print completions for a shell
    Completions(CompletionsArgs),
}

impl Command {
    /// The name of a role, if it is one: a process that goes on until it is told to end.
    pub(crate) fn role(&self) -> Option<&'static str> {
        match self {
            Self::Operator(_) => Some("operator"),
            Self::Resolver(_) => Some("resolver"),
            Self::Crds(_)
            | Self::Manifests(_)
            | Self::Simulate(_)
            | Self::Status(_)
            | Self::Completions(_) => None,
        }
    }
}
