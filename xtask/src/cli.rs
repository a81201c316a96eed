//! What can be typed after `cargo xtask`. Parsing does no work; the commands' modules do.

use std::{ffi::OsString, path::PathBuf};

use clap::{
    Args, Parser, Subcommand, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use weir_lab::cluster::add_on::AddOn;

/// Everything a developer of Weir runs.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure, always beside something else in the same run
    Bench(BenchArgs),
    /// A real cluster on this machine: a control plane and nodes in network namespaces; needs root
    ///
    /// Nothing in it can reach anything outside, and nothing outside can reach it but through these commands.
    Cluster {
        /// Which cluster; clusters of different names do not see each other
        #[arg(long, global = true, default_value = weir_lab::cluster::BY_HAND)]
        name: String,
        #[command(subcommand)]
        command: ClusterCommand,
    },
    /// Whole scenarios on a real cluster, with clients that count every request; needs root
    #[command(name = "e2e")]
    EndToEnd {
        #[command(subcommand)]
        scenario: E2eCommand,
    },
    /// Give parsers whatever bytes there are, and see that what they must never do they do not; needs rustup
    ///
    /// Installs the nightly toolchain and cargo-fuzz if they are not there. What is found is kept and told.
    Fuzz {
        /// One target of `fuzz/fuzz_targets` alone; all, one after another, if none is given
        target: Option<String>,
        /// How long each of them is run
        #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
        seconds: u64,
    },
    /// Make an OCI image without Docker: the program, the libraries it needs, certificates, and nothing else
    Image {
        /// Of what
        #[arg(value_enum, default_value_t = ImageOf::Weir)]
        of: ImageOf,
        /// Its name and tag [default: localhost/weir:dev and the like]
        #[arg(long)]
        tag: Option<String>,
        /// The file to write [default: target/weir-image.tar and the like]
        #[arg(long)]
        output: Option<PathBuf>,
        /// Take this program as it is, such as a debug build, instead of building one for release
        #[arg(long, value_name = "FILE")]
        program: Option<PathBuf>,
    },
    /// Send requests at a constant rate and count how each ended; all arguments are passed on to `lab-app load`
    #[command(disable_help_flag = true)]
    Load {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
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
        /// Run the tests that need nodes, in a real cluster with its add-ons, instead of the others; needs root
        #[arg(long)]
        cluster: bool,
        /// A crate (`api`, `weir-api`, `crates/api`) or a part of tests' names; all tests if none is given
        what: Vec<String>,
        /// Arguments for the test programs, such as `-- --nocapture`
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Try to break a promise, many times over; the tests do the same a few times
    Prove {
        /// Which promise
        #[arg(value_enum)]
        promise: Promise,
        /// How many random cases
        #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
        cases: u64,
        /// The number of the first case: other numbers are other cases
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// Write the figures to this file as well
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// The programs the lab runs, built from Go modules: which are there, and build the rest
    Tools {
        #[command(subcommand)]
        command: Option<ToolsCommand>,
    },
}

#[derive(Args)]
pub(crate) struct BenchArgs {
    /// What to measure
    #[arg(value_enum)]
    pub(crate) benchmark: Benchmark,
    /// Fewer settings and rounds, for a first look (carbon, operator-scale, place-scale, resolver)
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measure this part alone, or these: `--only tail,held` (resolver)
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<ResolverPart>,
    /// How many services there are [default: 10,000; 1,000 with --quick] (operator-scale)
    #[arg(long, value_parser = clap::value_parser!(u32).range(100..=15_000))]
    pub(crate) services: Option<u32>,
    /// Measure this program instead of building one for release (operator-scale)
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    /// Write the figures to this file as well
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Benchmark {
    /// How close `optimal` comes to the optimum on every trace, and how long it takes
    Carbon,
    /// What other constants of `optimal` would do, chosen on some traces and judged on others; some minutes
    Constants,
    /// What the load generator can do at most, beside wrk
    Load,
    /// Hold with 10,000 services that sleep: the operator's start, memory, writes and idle time; needs root, about 15 minutes
    OperatorScale,
    /// What `operator-scale` begins in a network of its own
    #[value(hide = true)]
    OperatorScaleInside,
    /// p99 of a service whose node's network somebody else fills, with place and without; draws docs/place-bench.svg; needs root
    Place,
    /// Place with 5,000 nodes and 50 watches: the time of a round, memory, writes; needs root, about 8 minutes
    PlaceScale,
    /// What `place-scale` begins in a network of its own
    #[value(hide = true)]
    PlaceScaleInside,
    /// What the resolver costs beside nginx and Envoy, what holding takes, and whether restarts are noticed
    Resolver,
}

/// What is measured of the resolver, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResolverPart {
    /// Ten bytes forwarded: CPU time and throughput beside nginx and Envoy
    Small,
    /// 1 MiB forwarded, the same
    #[value(name = "1mib")]
    Large,
    /// Ten bytes by HTTP/2, beside Envoy
    H2c,
    /// p99 at half of nginx's maximum, beside nginx
    Tail,
    /// 10,000 requests held: memory, and how fast they are let go
    Held,
    /// From "ready" to the first byte at the target
    Ready,
    /// A quiet service beside a flooded one
    Neighbour,
    /// 100 restarts under load, and one kill
    Restarts,
}

/// What can be proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Promise {
    /// No random simulation breaks the error budget at any request, also with several deciders that crash
    Budget,
}

/// What images are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImageOf {
    /// The product
    Weir,
    /// The lab's server and load generator
    App,
    /// The container that holds a pod's namespaces
    Pause,
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

/// What can be played from end to end.
#[derive(Subcommand)]
pub(crate) enum E2eCommand {
    /// A target goes to zero and back, again and again, while clients go on
    Hold(HoldArgs),
    /// A node's network fills up: Weir's figures beside the interface's counters, pods that keep off and move off
    Place(PlaceArgs),
}

#[derive(Args)]
pub(crate) struct HoldArgs {
    /// How often; 0 leaves the target up: then only a rolling restart is measured, and no operator is needed
    #[arg(long, default_value_t = 10)]
    pub(crate) cycles: u32,
    /// Requests per second, of all clients together
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(4..=10_000))]
    pub(crate) rate: u32,
    /// Write the figures to this file as well
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
    /// As many cycles again with each of these
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) with_faults: Vec<Fault>,
    /// How many cycles with each of them [default: as many as without]
    #[arg(long, requires = "with_faults")]
    pub(crate) fault_cycles: Option<u32>,
    /// Then so many wakes of a target that the kubelet asks every second, and as many of one asked every ten
    #[arg(long, default_value_t = 0)]
    pub(crate) early_wakes: u32,
    /// Which cluster; runs on clusters of different names do not see each other
    #[arg(long, default_value = "weir-e2e")]
    pub(crate) name: String,
    /// Take the programs that `cargo xtask test` builds: quicker to begin with, and times have no goals
    #[arg(long)]
    pub(crate) dev: bool,
    /// Leave the cluster up
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Args)]
pub(crate) struct PlaceArgs {
    /// Write the figures to this file as well
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
    /// Take the programs that `cargo xtask test` builds: quicker to begin with, and times have no goals
    #[arg(long)]
    pub(crate) dev: bool,
    /// Leave the cluster up
    #[arg(long)]
    pub(crate) keep: bool,
}

/// What is broken at a random moment of each cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fault {
    /// The leading operator is killed
    Operator,
    /// One of the resolvers is killed
    Resolver,
    /// The API server does not answer for 20 s
    Api,
    /// A node cannot be reached for 20 s
    Node,
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
        arguments: Vec<OsString>,
    },
    /// Print the log of one part
    Logs {
        /// Which part
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(weir_lab::control_plane::PARTS))]
        part: String,
    },
}

#[derive(Subcommand)]
pub(crate) enum ClusterCommand {
    /// Start the cluster and leave it running
    Up {
        /// How many nodes
        #[arg(long, default_value_t = 3)]
        nodes: u8,
        /// What to start beside Kubernetes; a cluster that is up gets what it does not have yet
        #[arg(long, value_delimiter = ',', value_parser = add_on())]
        with: Vec<AddOn>,
    },
    /// Remove the cluster with everything that it made on this machine, however it ended
    Down,
    /// What runs, and with how much memory
    Status,
    /// Run kubectl as cluster-admin; all arguments are passed on
    #[command(disable_help_flag = true)]
    Kubectl {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Run any program in the control plane's network, with KUBECONFIG set
    Exec {
        /// The program and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<OsString>,
    },
    /// Bring images onto every node
    Load {
        /// Tars of images, as `cargo xtask image` or `docker save` make them
        #[arg(required = true)]
        images: Vec<PathBuf>,
    },
    /// Print the log of one part
    Logs {
        /// Which part, such as kube-apiserver or n1-kubelet
        part: String,
    },
}

#[derive(Subcommand)]
pub(crate) enum ToolsCommand {
    /// Build what is missing
    Build {
        /// Which tools; those that every test needs if none is given
        names: Vec<String>,
    },
}

fn add_on() -> impl TypedValueParser<Value = AddOn> {
    let names = PossibleValuesParser::new(AddOn::ALL.map(AddOn::name));
    names.try_map(|name| AddOn::named(&name).ok_or("there is no such add-on"))
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
        let Command::Test {
            cluster,
            what,
            arguments,
        } = cli.command
        else {
            panic!("another command")
        };
        assert_eq!(
            (cluster, what, arguments),
            (
                false,
                vec!["api".to_owned()],
                vec!["--nocapture".to_owned()]
            )
        );
    }

    #[test]
    fn add_ons_are_a_list_of_known_names() {
        let typed = ["xtask", "cluster", "up", "--with", "dns,keda", "--nodes=2"];
        let Command::Cluster {
            name,
            command: ClusterCommand::Up { nodes, with },
        } = Cli::try_parse_from(typed).unwrap().command
        else {
            panic!("another command")
        };
        assert_eq!((name.as_str(), nodes), ("weir", 2));
        assert_eq!(with, [AddOn::Dns, AddOn::Keda]);
    }

    #[test]
    fn unknown_commands_and_parts_are_refused() {
        for typed in [
            &["xtask", "tset"][..],
            &["xtask", "cluster", "up", "--with", "envoy"],
            &["xtask", "lab", "logs", "kubelet"],
            &["xtask", "lint", "all"],
        ] {
            assert!(Cli::try_parse_from(typed).is_err(), "{typed:?}");
        }
    }
}
