//! The watches behind `world`: one for each kind however many TrafficWatches there are; of kinds in namespaces one for each
//! namespace, where only some are watched.

use std::fmt::Display;

use futures_util::{
    Stream, StreamExt, future,
    stream::{self, BoxStream},
};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    core::DeserializeGuard,
    runtime::{WatchStreamExt, watcher},
};
use weir_api::hold::names::SERVICE_NAME_LABEL;
use weir_role::cluster::{self, ObjectId, Update};

use super::world::{Told, lightened};
use crate::settings::exporters::Where;

/// All that the watches say, for ever. Without namespaces all of them are watched; `nodes` selects nodes by their labels;
/// of Services only that of exporters is looked at.
pub fn watch(
    client: &Client,
    namespaces: &[String],
    nodes: Option<&str>,
    exporters: &Where,
) -> BoxStream<'static, Told> {
    let scopes: Vec<Option<&str>> = match namespaces {
        [] => vec![None],
        some => some.iter().map(|name| Some(name.as_str())).collect(),
    };
    let all = watcher::Config::default;
    let of_nodes = match nodes {
        Some(selector) => all().labels(selector),
        None => all(),
    };
    let nodes = watch_nodes(client, of_nodes).map(Told::Node).boxed();
    let streams = scopes.into_iter().flat_map(|scope| {
        [
            cluster::watch_optional(client, scope, all())
                .map(Told::Watch)
                .boxed(),
            cluster::watch(client, scope, all())
                .map(Told::Deployment)
                .boxed(),
        ]
    });
    let slices = match exporters {
        Where::Nodes(_) => None,
        Where::Service(service) => {
            let config = all().labels(&format!("{SERVICE_NAME_LABEL}={}", service.name));
            let slices = cluster::watch(client, Some(&service.namespace), config);
            Some(slices.map(Told::Exporters).boxed())
        }
    };
    stream::select_all(streams.chain([nodes]).chain(slices)).boxed()
}

/// Nodes are in no namespace, so they have a watch of their own.
fn watch_nodes(
    client: &Client,
    config: watcher::Config,
) -> impl Stream<Item = Update<Node>> + Send + use<> {
    let api: Api<DeserializeGuard<Node>> = Api::all(client.clone());
    let mut is_failing = false;
    let mut listed: Vec<Node> = Vec::new();
    let mut unreadable: Vec<ObjectId> = Vec::new();
    let events = watcher(api, config).default_backoff();
    events.filter_map(move |event| {
        let update = match event {
            Err(error) => {
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::warn!(
                        %error,
                        "nodes cannot be watched; see whether this ServiceAccount may get, list and watch them"
                    );
                }
                None
            }
            Ok(event) => {
                if std::mem::take(&mut is_failing) {
                    tracing::info!("nodes can be watched again");
                }
                match event {
                    watcher::Event::Init => {
                        listed.clear();
                        unreadable.clear();
                        None
                    }
                    watcher::Event::InitApply(node) => {
                        let id = ObjectId::of(&node);
                        match node.0 {
                            Ok(node) => listed.push(lightened(node)),
                            Err(error) => {
                                say_unreadable(&id, &error.error);
                                unreadable.push(id);
                            }
                        }
                        None
                    }
                    watcher::Event::InitDone => Some(Update::Restarted {
                        namespace: None,
                        objects: std::mem::take(&mut listed),
                        unreadable: std::mem::take(&mut unreadable),
                    }),
                    watcher::Event::Apply(node) => {
                        let id = ObjectId::of(&node);
                        match node.0 {
                            Ok(node) => Some(Update::Set(Box::new(node))),
                            Err(error) => {
                                say_unreadable(&id, &error.error);
                                None
                            }
                        }
                    }
                    watcher::Event::Delete(node) => Some(Update::Gone(ObjectId::of(&node))),
                }
            }
        };
        future::ready(update)
    })
}

fn say_unreadable(id: &ObjectId, error: &dyn Display) {
    tracing::warn!(node = %id.name, %error, "a Node cannot be read; what was known of it stays");
}
