//! The index fed by a cluster: three watches, or three for each namespace; and one more for pods, where pods that start
//! are asked before the kubelet says that they are ready.
//!
//! Watches go on for ever: whatever happens is logged once, and tried again with growing pauses.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use kube::{Client, runtime::watcher};
use tokio::sync::mpsc;
use weir_api::hold::names::SERVICE_NAME_LABEL;
use weir_role::cluster::{self, Update, Watched};

use crate::{
    index::{Index, IndexSettings, event::Event},
    view::{Change, ServiceView},
};

/// A pod that has ended never becomes ready.
const PODS_THAT_LIVE: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// What is watched, and how it is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchSettings {
    /// Only these namespaces; empty: all.
    pub namespaces: Vec<String>,
    /// How objects become views.
    pub index: IndexSettings,
}

/// What the watches say.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// Services have changed.
    Changes(Vec<Change>),
    /// All that there was at the beginning has been told; said once.
    Synced,
}

/// Watches until nobody listens any more.
///
/// Nothing is told before everything is known: a service whose endpoints were not listed yet would look asleep, and
/// be woken.
pub async fn run(client: Client, settings: WatchSettings, tell: mpsc::Sender<News>) {
    let WatchSettings {
        namespaces,
        index: index_settings,
    } = settings;
    let mut streams = Vec::new();
    let scopes: Vec<Option<String>> = if namespaces.is_empty() {
        vec![None]
    } else {
        namespaces.into_iter().map(Some).collect()
    };
    for scope in &scopes {
        let all = watcher::Config::default();
        let of_services = watcher::Config::default().labels(SERVICE_NAME_LABEL);
        let add = [
            heard(&client, scope.as_deref(), all.clone(), Event::ElastiService),
            heard(&client, scope.as_deref(), all, Event::Service),
            heard(&client, scope.as_deref(), of_services, Event::EndpointSlice),
        ];
        streams.extend(add);
    }
    let mut unsynced: BTreeSet<usize> = (0..streams.len()).collect();
    let numbered = streams
        .into_iter()
        .enumerate()
        .map(|(number, stream)| stream.map(move |event| (number, event)).boxed());
    let mut events = stream::select_all(numbered);
    let asks_early = index_settings.early_readiness;
    let mut index = Index::new(index_settings);
    loop {
        let (number, event) = tokio::select! {
            event = events.next() => match event {
                Some(event) => event,
                None => return,
            },
            () = tell.closed() => return,
        };
        let listed = event.is_list();
        let changes = index.apply(event);
        for problem in index.take_problems() {
            let (namespace, name) = (&problem.object.namespace, &problem.object.name);
            tracing::warn!(%namespace, %name, "{}", problem.message);
        }
        if unsynced.is_empty() {
            if !changes.is_empty() && tell.send(News::Changes(changes)).await.is_err() {
                return;
            }
        } else if listed && unsynced.remove(&number) && unsynced.is_empty() {
            let everything = News::Changes(all_of(&index));
            if tell.send(everything).await.is_err() || tell.send(News::Synced).await.is_err() {
                return;
            }
            // Only now is it known which pods are of interest. Nobody waits for their list.
            for scope in scopes.iter().filter(|_| asks_early) {
                let config = watcher::Config::default().fields(PODS_THAT_LIVE);
                let pods = heard(&client, scope.as_deref(), config, Event::Pod);
                events.push(pods.map(move |event| (usize::MAX, event)).boxed());
            }
        }
    }
}

/// In the order of their names, so that two starts tell the same.
fn all_of(index: &Index) -> Vec<Change> {
    let mut views: Vec<&Arc<ServiceView>> = index.views().collect();
    views.sort_by(|a, b| a.id.cmp(&b.id));
    views
        .into_iter()
        .map(|view| Change::Set(Arc::clone(view)))
        .collect()
}

/// What one watch says, as events of the index.
fn heard<K>(
    client: &Client,
    namespace: Option<&str>,
    config: watcher::Config,
    event: fn(Update<K>) -> Event,
) -> BoxStream<'static, Event>
where
    K: Watched,
{
    cluster::watch(client, namespace, config).map(event).boxed()
}

impl Event {
    fn is_list(&self) -> bool {
        match self {
            Self::ElastiService(update) => matches!(update, Update::Restarted { .. }),
            Self::Service(update) => matches!(update, Update::Restarted { .. }),
            Self::EndpointSlice(update) => matches!(update, Update::Restarted { .. }),
            Self::Pod(update) => matches!(update, Update::Restarted { .. }),
        }
    }
}
