//! `weir crds`: the three CustomResourceDefinitions on standard output, as `kubectl apply -f -`
//! takes them.

use clap::{Args, ValueEnum};
use weir_api::crd::Kind;

use crate::documents::{self, Format};
use crate::output::OutputError;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  weir crds | kubectl apply -f -
  weir crds | kubectl apply --server-side -f -
  weir crds --only ElastiService --only TrafficWatch")]
pub(crate) struct CrdsArgs {
    /// How to write them
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "yaml",
        ignore_case = true
    )]
    format: Format,

    /// Only this resource, by kind, plural or verb (hold, steer, place); may be given several times
    #[arg(long, value_name = "RESOURCE", ignore_case = true)]
    only: Vec<Resource>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Resource {
    #[value(name = "ElastiService", aliases = ["elastiservices", "hold"])]
    ElastiService,
    #[value(name = "TrafficSchedule", aliases = ["trafficschedules", "steer"])]
    TrafficSchedule,
    #[value(name = "TrafficWatch", aliases = ["trafficwatches", "place"])]
    TrafficWatch,
}

pub(crate) fn run(args: &CrdsArgs) -> Result<(), OutputError> {
    let CrdsArgs { format, only } = args;
    let wanted = |kind: &Kind| only.is_empty() || only.iter().any(|one| one.kind() == *kind);
    let crds: Vec<_> = Kind::ALL
        .into_iter()
        .filter(wanted)
        .map(Kind::crd)
        .collect();

    documents::print(&crds, *format)
}

impl Resource {
    fn kind(self) -> Kind {
        match self {
            Self::ElastiService => Kind::ElastiService,
            Self::TrafficSchedule => Kind::TrafficSchedule,
            Self::TrafficWatch => Kind::TrafficWatch,
        }
    }
}
