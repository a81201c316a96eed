//! What can be typed after `cargo xtask`. Parsing does no work; the commands' modules do.

use clap::{Parser, Subcommand};

/// Everything a developer of Weir runs.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// A real Kubernetes API server by hand: etcd, kube-apiserver and kube-controller-manager
    ///
    /// It is the same server that the tests use. It listens on 127.0.0.1 alone and needs no root.
    Lab {
        #[command(subcommand)]
        command: LabCommand,
    },
    /// The programs the lab runs, built from Go modules: which are there, and build the rest
    Tools {
        #[command(subcommand)]
        command: Option<ToolsCommand>,
    },
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
    fn unknown_commands_and_parts_are_refused() {
        for typed in [&["xtask", "tset"][..], &["xtask", "lab", "logs", "kubelet"]] {
            assert!(Cli::try_parse_from(typed).is_err(), "{typed:?}");
        }
    }
}
