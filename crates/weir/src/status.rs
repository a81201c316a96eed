//! `weir status`: what place and hold say of their objects, for people and for programs.
//!
//! Everything comes from the API server: what the operator decided stands in statuses and on nodes. So nothing but the right
//! to read them is needed, and it is told also when no operator runs. [`place`] and [`hold`] make rows of objects,
//! [`table`] sets them.

mod hold;
mod place;
mod table;

use std::{fmt::Debug, io, path::PathBuf};

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use k8s_openapi::{NamespaceResourceScope, api::core::v1::Node};
use kube::{Api, Client, Resource, api::ListParams};
use serde::de::DeserializeOwned;
use serde_json::json;
use thiserror::Error;
use tokio::time::timeout;
use weir_api::{hold::ElastiService, place::TrafficWatch};
use weir_role::cluster::{self, ClientError};

use crate::output::{self, OutputError};

/// The API server has so long for all that is asked.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  weir status                       all TrafficWatches with their nodes, and all ElastiServices
  weir status place -n shop         those of one namespace, of place alone
  weir status place -o json         for programs

LOAD is that of the node's busiest interface that counts, WHY what decided:
  Measured   its readings           Found     its label, as it was found; not measured yet
  New        not measured yet       Unknown   it gives no figures, and onUnknown says so
  Dwelling   too soon to change     KeptFit   over the limit, but minFitNodes wants it")]
pub(crate) struct StatusArgs {
    /// Of this part alone
    #[arg(value_name = "PART", ignore_case = true)]
    part: Option<Part>,

    /// In this namespace alone
    #[arg(long, short, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// How to write it
    #[arg(
        long,
        short,
        value_name = "FORMAT",
        default_value = "table",
        ignore_case = true
    )]
    output: Format,

    /// How to reach the cluster; without it as kubectl does, or from inside a pod
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// ElastiServices
    Hold,
    /// TrafficWatches and their nodes
    Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

#[derive(Debug, Error)]
pub(crate) enum StatusError {
    #[error("the runtime cannot be started")]
    Runtime(#[source] io::Error),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("the cluster does not answer; see whether `kubectl get nodes` does")]
    Timeout,
    #[error("{what} cannot be read; see whether `kubectl get {what}` does")]
    Read {
        what: &'static str,
        source: Box<kube::Error>,
    },
    #[error(
        "the cluster knows no {what}: install them with `weir crds --only {part} | kubectl apply -f -`"
    )]
    NotInstalled {
        what: &'static str,
        part: &'static str,
    },
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// What there is; none: the cluster does not know the kind, and nobody asked for it alone.
struct Found {
    watches: Option<Vec<TrafficWatch>>,
    nodes: Vec<Node>,
    services: Option<Vec<ElastiService>>,
}

pub(crate) fn run(args: StatusArgs) -> Result<(), StatusError> {
    let StatusArgs {
        part,
        namespace,
        output: format,
        kubeconfig,
    } = args;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StatusError::Runtime)?;
    let found = runtime.block_on(async {
        let client = cluster::client(kubeconfig.as_deref()).await?;
        let found = timeout(PATIENCE, find(&client, part, namespace.as_deref())).await;
        found.unwrap_or(Err(StatusError::Timeout))
    })?;
    let now = Timestamp::now();
    let watches: Option<Vec<place::Watch>> = found.watches.as_ref().map(|watches| {
        let watch = |object: &TrafficWatch| place::Watch::of(object, &found.nodes, now);
        watches.iter().map(watch).collect()
    });
    let services: Option<Vec<hold::Held>> = found.services.as_ref().map(|services| {
        let service = |object: &ElastiService| hold::Held::of(object, now);
        services.iter().map(service).collect()
    });
    let text = match format {
        Format::Json => {
            let all = json!({ "trafficWatches": watches, "elastiServices": services });
            format!("{all:#}\n")
        }
        Format::Table => {
            let place = watches.as_deref().map(place::render);
            let hold = services.as_deref().map(hold::render);
            place.into_iter().chain(hold).collect::<Vec<_>>().join("\n")
        }
    };
    Ok(output::print(text.as_bytes())?)
}

async fn find(
    client: &Client,
    part: Option<Part>,
    namespace: Option<&str>,
) -> Result<Found, StatusError> {
    let watches = if part == Some(Part::Hold) {
        None
    } else {
        let listed = list(client, namespace, "trafficwatches").await?;
        missing(listed, part == Some(Part::Place), "TrafficWatches", "place")?
    };
    let services = if part == Some(Part::Place) {
        None
    } else {
        let listed = list(client, namespace, "elastiservices").await?;
        missing(listed, part == Some(Part::Hold), "ElastiServices", "hold")?
    };
    if part.is_none() && watches.is_none() && services.is_none() {
        return Err(StatusError::NotInstalled {
            what: "resources of Weir",
            part: "hold,place",
        });
    }
    let has_watches = watches.as_ref().is_some_and(|watches| !watches.is_empty());
    let nodes = if has_watches {
        let nodes: Api<Node> = Api::all(client.clone());
        let listed = nodes.list(&ListParams::default()).await;
        listed.map_err(|error| unreadable("nodes", error))?.items
    } else {
        Vec::new()
    };
    Ok(Found {
        watches,
        nodes,
        services,
    })
}

/// All objects of a kind; none: the cluster does not know it.
async fn list<K>(
    client: &Client,
    namespace: Option<&str>,
    what: &'static str,
) -> Result<Option<Vec<K>>, StatusError>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Debug,
{
    let api: Api<K> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    match api.list(&ListParams::default()).await {
        Ok(list) => Ok(Some(list.items)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(unreadable(what, error)),
    }
}

fn missing<T>(
    listed: Option<T>,
    is_wanted: bool,
    what: &'static str,
    part: &'static str,
) -> Result<Option<T>, StatusError> {
    match listed {
        None if is_wanted => Err(StatusError::NotInstalled { what, part }),
        listed => Ok(listed),
    }
}

fn unreadable(what: &'static str, error: kube::Error) -> StatusError {
    StatusError::Read {
        what,
        source: Box::new(error),
    }
}
