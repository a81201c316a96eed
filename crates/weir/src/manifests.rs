//! `weir manifests`: what to install, on standard output. The objects are [`weir_install`]'s.

use clap::{ArgAction, Args, ValueEnum, builder::BoolishValueParser};
use thiserror::Error;
use weir_api::{
    form::cidr::Cidr,
    hold::{defaults::RESOLVER_REPLICAS, names::install::NAMESPACE},
    place::{defaults::NODE_EXPORTER_PORT, names::NODE_EXPORTER},
};
use weir_install::{ExporterService, Options, OptionsError, PlaceOptions, objects};
use weir_operator::settings::exporters::Scheme;

use crate::documents::{self, Format};
use crate::output::OutputError;

/// A release of which it is known that it works.
const NODE_EXPORTER_IMAGE: &str = "quay.io/prometheus/node-exporter:v1.10.2";

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  weir manifests --only hold | kubectl apply --server-side -f -
  weir manifests --only hold --image registry.example/weir:1 --namespace traffic
  weir manifests --only hold --watch-namespace shop --watch-namespace blog    Roles there, no ClusterRole
  weir manifests --only hold --crds=false                                     where somebody else installs them
  weir manifests --only hold,place                                            place as well
  weir manifests --only place --node-exporter-service monitoring/node-exporter
                                                       with exporters that are there already

The watched namespaces must be there before. Place is installed only where it is asked for: it labels nodes, and runs
node_exporter on all of them, in a namespace whose pods may use the hosts' network.")]
#[allow(
    clippy::struct_excessive_bools,
    reason = "choices that have nothing to do with each other"
)]
pub(crate) struct ManifestsArgs {
    /// Only this part; may be given several times, or as a list with commas; without it hold
    #[arg(long, value_name = "PART", ignore_case = true, value_delimiter = ',')]
    only: Vec<Part>,

    /// Where to put everything
    #[arg(long, value_name = "NAMESPACE", default_value = NAMESPACE)]
    namespace: String,

    /// What to run
    #[arg(long, value_name = "IMAGE", default_value = concat!("weir:", env!("CARGO_PKG_VERSION")))]
    image: String,

    /// Watch only this namespace, and have rights only there; may be given several times
    ///
    /// Wake signals are then not checked for their token, which takes a right over the whole cluster: the
    /// NetworkPolicy says who may wake.
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    watch_namespace: Vec<String>,

    /// Where an operator of KubeElasti still runs: ours waits until it has ended, and may read its Lease; may be given several
    /// times, or as a list with commas
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    peer_namespace: Vec<String>,

    /// How many operators; one leads, all of them wake
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=100))]
    operator_replicas: u16,

    /// How many pods of resolvers
    #[arg(long, value_name = "COUNT", default_value_t = RESOLVER_REPLICAS.unsigned_abs() as u16, value_parser = clap::value_parser!(u16).range(1..=1000))]
    resolver_replicas: u16,

    /// Whether each of those pods has two resolvers on the same ports: when one is killed, nobody is refused
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new(), action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true")]
    resolver_siblings: bool,

    /// Let resolvers wake what sleeps by themselves when no operator answers, with the rights that this takes
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new(), action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    resolver_may_scale: bool,

    /// Resolvers serve only clients with an address in this range, such as 10.0.0.0/8 or 2001:db8::/32; may be given several
    /// times, or as a list with commas. See `weir resolver --help`
    #[arg(long, value_name = "CIDR", value_delimiter = ',')]
    allow_from: Vec<Cidr>,

    /// Do not look at the certificates of kubelets, which triggers of the type network ask: for clusters in which kubelets have signed them themselves
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new(), action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    kubelet_insecure_tls: bool,

    /// Where to put the exporters of place; a namespace of their own
    #[arg(long, value_name = "NAMESPACE", default_value = NODE_EXPORTER)]
    node_exporter_namespace: String,

    /// What the exporters of place run
    #[arg(long, value_name = "IMAGE", default_value = NODE_EXPORTER_IMAGE)]
    node_exporter_image: String,

    /// The port of the exporters of place, on each node's own address
    #[arg(long, value_name = "PORT", default_value_t = NODE_EXPORTER_PORT, value_parser = clap::value_parser!(u16).range(1024..))]
    node_exporter_port: u16,

    /// Exporters that are there already, behind this Service: they are asked, and none are installed
    #[arg(long, value_name = "NAMESPACE/NAME[:PORT]")]
    node_exporter_service: Option<String>,

    /// How such exporters are asked; with https they must have certificates of the cluster's own authority, and get the operator's token
    #[arg(
        long,
        value_name = "SCHEME",
        ignore_case = true,
        default_value = "http",
        requires = "node_exporter_service"
    )]
    node_exporter_scheme: Scheme,

    /// Let place taint nodes where a TrafficWatch says so
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new(), action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    allow_taints: bool,

    /// Whether the definitions of the resources are printed as well
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new(), action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true")]
    crds: bool,

    /// How to write them
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "yaml",
        ignore_case = true
    )]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Scales services to zero and holds their requests
    Hold,
    /// Keeps pods off nodes whose network is full
    Place,
}

#[derive(Debug, Error)]
pub(crate) enum ManifestsError {
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

pub(crate) fn run(args: ManifestsArgs) -> Result<(), ManifestsError> {
    let ManifestsArgs {
        only: parts,
        namespace,
        image,
        watch_namespace,
        peer_namespace,
        operator_replicas,
        resolver_replicas,
        resolver_siblings,
        resolver_may_scale,
        allow_from,
        kubelet_insecure_tls,
        node_exporter_namespace,
        node_exporter_image,
        node_exporter_port,
        node_exporter_service,
        node_exporter_scheme,
        allow_taints,
        crds,
        format,
    } = args;
    let exporter_service = node_exporter_service
        .map(|text| ExporterService::parse(&text, node_exporter_scheme == Scheme::Https))
        .transpose()?;
    let place = parts.contains(&Part::Place).then_some(PlaceOptions {
        exporter_namespace: node_exporter_namespace,
        exporter_image: node_exporter_image,
        exporter_port: node_exporter_port,
        allow_taints,
        exporter_service,
    });
    let options = Options {
        namespace,
        image,
        watch_namespaces: watch_namespace,
        peer_namespaces: peer_namespace,
        operator_replicas,
        resolver_replicas,
        resolver_siblings,
        resolver_may_scale,
        allow_from,
        kubelet_insecure_tls,
        crds,
        hold: parts.is_empty() || parts.contains(&Part::Hold),
        place,
    };
    options.check()?;
    Ok(documents::print(&objects(&options), format)?)
}
