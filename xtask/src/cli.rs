//! What can be typed after `cargo xtask`. Parsing does no work; the commands' modules do.

use clap::{Parser, Subcommand, ValueEnum};

/// Everything a developer of Weir runs.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure, and say which goals are met
    Bench {
        /// What to measure
        #[arg(value_enum)]
        what: Bench,
        /// Fewer settings, for a first look
        #[arg(long)]
        quick: bool,
        /// Write the figures here as well
        #[arg(long, value_name = "FILE")]
        json: Option<std::path::PathBuf>,
    },
    /// A real Kubernetes API server by hand: etcd, kube-apiserver and kube-controller-manager
    ///
    /// It is the same server that the tests use. It listens on 127.0.0.1 alone and needs no root.
    Lab {
        #[command(subcommand)]
        command: LabCommand,
    },
    /// Check everything that does not run the product: format, lints, licences, docs, structure
    ///
    /// All steps are run even when one fails.
    Lint {
        /// Run these steps alone
        #[arg(value_enum)]
        steps: Vec<LintStep>,
    },
    /// Run the tests, on a real Kubernetes API server where they need one
    ///
    /// Builds what the server needs (once), starts it, runs `cargo test` and ends with a summary.
    Test {
        /// A crate (`api`, `weir-api`, `crates/api`) or a part of tests' names; all tests if none is given
        what: Vec<String>,
        /// Arguments for the test programs, such as `-- --nocapture`
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// The programs the lab runs, built from Go modules: which are there, and build the rest
    Tools {
        #[command(subcommand)]
        command: Option<ToolsCommand>,
    },
}

/// One thing that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bench {
    /// How close `optimal` comes to the optimum on every trace, and how long it takes
    Carbon,
}

/// One thing that `lint` checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LintStep {
    /// `cargo fmt --check`
    Fmt,
    /// clippy, with warnings as errors
    Clippy,
    /// Licences, sources, banned crates and, where the network allows, known vulnerabilities
    Deny,
    /// The documentation builds without warnings
    Docs,
    /// Which crate may depend on which: the table in CONTRIBUTING.md
    Deps,
    /// Every source file says at its top what it is for
    Headers,
    /// Shell scripts parse
    Scripts,
}

#[derive(Subcommand)]
pub(crate) enum LabCommand {
    /// Start the API server and leave it running
    Up,
    /// Let go of the server that `up` started: it ends once no test uses it either
    Down,
    /// What runs, since when, and who holds it
    Status,
    /// Run kubectl as cluster-admin; all arguments are passed on
    #[command(disable_help_flag = true)]
    Kubectl {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    /// Print the log of one part
    Logs {
        /// Which part
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(weir_lab::control_plane::PARTS))]
        part: String,
    },
}

#[derive(Subcommand)]
pub(crate) enum ToolsCommand {
    /// Build what is missing
    Build,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn kubectl_gets_every_argument_as_it_was_typed() {
        let typed = [
            "xtask", "lab", "kubectl", "get", "ns", "-o", "name", "--help",
        ];
        let cli = Cli::try_parse_from(typed).unwrap();
        let Command::Lab {
            command: LabCommand::Kubectl { arguments },
        } = cli.command
        else {
            panic!("another command")
        };
        assert_eq!(arguments, ["get", "ns", "-o", "name", "--help"]);
    }

    #[test]
    fn what_follows_two_dashes_is_for_the_test_programs() {
        let cli = Cli::try_parse_from(["xtask", "test", "api", "--", "--nocapture"]).unwrap();
        let Command::Test { what, arguments } = cli.command else {
            panic!("another command")
        };
        assert_eq!(
            (what, arguments),
            (vec!["api".to_owned()], vec!["--nocapture".to_owned()])
        );
    }

    #[test]
    fn unknown_commands_and_parts_are_refused() {
        for typed in [
            &["xtask", "tset"][..],
            &["xtask", "lab", "logs", "kubelet"],
            &["xtask", "lint", "all"],
        ] {
            assert!(Cli::try_parse_from(typed).is_err(), "{typed:?}");
        }
    }
}
