//! `weir manifests`: what to install, on standard output. The objects are [`weir_install`]'s.

use clap::{ArgAction, Args, ValueEnum, builder::BoolishValueParser};
use thiserror::Error;
use weir_api::hold::{defaults::RESOLVER_REPLICAS, names::install::NAMESPACE};
use weir_install::{Options, OptionsError, hold};

use crate::documents::{self, Format};
use crate::output::OutputError;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  weir manifests --only hold | kubectl apply --server-side -f -
  weir manifests --only hold --image registry.example/weir:1 --namespace traffic
  weir manifests --only hold --watch-namespace shop --watch-namespace blog    Roles there, no ClusterRole
  weir manifests --only hold --crds=false                                     where somebody else installs them

The watched namespaces must be there before.")]
pub(crate) struct ManifestsArgs {
    /// Only this part; may be given several times
    #[arg(long, value_name = "PART", ignore_case = true)]
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

    /// How many operators; one leads, all of them wake
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=100))]
    operator_replicas: u16,

    /// How many pods of resolvers
    #[arg(long, value_name = "COUNT", default_value_t = RESOLVER_REPLICAS.unsigned_abs() as u16, value_parser = clap::value_parser!(u16).range(1..=1000))]
    resolver_replicas: u16,

    /// Whether each of those pods has two resolvers on the same ports: when one is killed, nobody is refused
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new(), action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true")]
    resolver_siblings: bool,

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
        operator_replicas,
        resolver_replicas,
        resolver_siblings,
        crds,
        format,
    } = args;
    let options = Options {
        namespace,
        image,
        watch_namespaces: watch_namespace,
        operator_replicas,
        resolver_replicas,
        resolver_siblings,
        crds,
    };
    options.check()?;
    let is_wanted = |part: Part| parts.is_empty() || parts.contains(&part);
    let mut objects = Vec::new();
    if is_wanted(Part::Hold) {
        objects.extend(hold::objects(&options));
    }
    Ok(documents::print(&objects, format)?)
}
