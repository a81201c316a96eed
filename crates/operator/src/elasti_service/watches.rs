//! The watches behind `world`: one for each kind, or one for each kind and namespace, however many ElastiServices there
//! are. Lists are told object by object: `world` keeps little of each, and ten thousand Deployments as they come would be
//! more than all else that the operator holds.

use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use kube::{Client, runtime::watcher};
use weir_api::hold::names::SERVICE_NAME_LABEL;
use weir_role::cluster;

use super::world::Told;

/// Objects of a list in one answer. All kinds are listed at the same time, and an answer is held whole, as text and as
/// objects: with the usual 500 that was as much as is kept of some thousand services.
const PAGE: u32 = 100;

/// All that the watches say, for ever. Without namespaces all of them are watched.
pub fn watch(client: &Client, namespaces: &[String]) -> BoxStream<'static, Told> {
    let scopes: Vec<Option<&str>> = match namespaces {
        [] => vec![None],
        some => some.iter().map(|name| Some(name.as_str())).collect(),
    };
    let streams = scopes.into_iter().flat_map(|scope| {
        let all = || watcher::Config::default().page_size(PAGE);
        let of_services = all().labels(SERVICE_NAME_LABEL);
        [
            cluster::watch_singly(client, scope, all())
                .map(Told::ElastiService)
                .boxed(),
            cluster::watch_singly(client, scope, all())
                .map(Told::Service)
                .boxed(),
            cluster::watch_singly(client, scope, of_services)
                .map(Told::Slice)
                .boxed(),
            cluster::watch_singly(client, scope, all())
                .map(Told::Deployment)
                .boxed(),
            cluster::watch_singly(client, scope, all())
                .map(Told::StatefulSet)
                .boxed(),
            cluster::watch_singly(client, scope, all())
                .map(Told::Hpa)
                .boxed(),
            cluster::watch_optional_singly(client, scope, all())
                .map(Told::Rollout)
                .boxed(),
            cluster::watch_optional_singly(client, scope, all())
                .map(Told::ScaledObject)
                .boxed(),
        ]
    });
    stream::select_all(streams).boxed()
}
