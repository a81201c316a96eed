//! The index fed by a cluster: three watches, or three for each namespace.
//!
//! [`listing`] puts what one watch says together, [`trouble`] says what to do when one fails. Watches go on for ever:
//! whatever happens is logged once, and tried again with growing pauses.

mod listing;
mod trouble;

use std::{
    collections::BTreeSet,
    fmt::Debug,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::{
    Stream, StreamExt, future,
    stream::{self, BoxStream},
};
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Client, Config, Resource,
    config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError},
    core::DeserializeGuard,
    runtime::{WatchStreamExt, watcher},
};
use listing::{Heard, Listing};
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::sync::mpsc;
use trouble::Trouble;
use weir_api::hold::names::SERVICE_NAME_LABEL;

use crate::{
    index::{
        Index, IndexSettings,
        event::{Event, Update},
    },
    view::{Change, ServiceView},
};

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

/// Why a cluster cannot even be asked.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The file that says how.
    #[error("the kubeconfig {} cannot be used", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: KubeconfigError,
    },
    /// Neither a file nor a pod's own way.
    #[error("no cluster is known; run inside one, or see --kubeconfig and --targets")]
    Infer(#[source] InferConfigError),
    /// Keys or certificates.
    #[error("no client for the cluster can be made")]
    Client(#[source] kube::Error),
}

/// A client of the cluster: by this file, or as kubectl does, or from inside a pod.
pub async fn client(kubeconfig: Option<&Path>) -> Result<Client, ClientError> {
    let config = match kubeconfig {
        Some(path) => {
            let bad = |source| ClientError::Kubeconfig {
                path: path.to_owned(),
                source,
            };
            let file = Kubeconfig::read_from(path).map_err(bad)?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .map_err(bad)?
        }
        None => Config::infer().await.map_err(ClientError::Infer)?,
    };
    Client::try_from(config).map_err(ClientError::Client)
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
    let scopes = if namespaces.is_empty() {
        vec![None]
    } else {
        namespaces.into_iter().map(Some).collect()
    };
    for scope in scopes {
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
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + 'static,
{
    let api: Api<DeserializeGuard<K>> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let events = watcher(api, config).default_backoff();
    updates(events, namespace.map(str::to_owned))
        .map(event)
        .boxed()
}

fn updates<K>(
    events: impl Stream<Item = watcher::Result<watcher::Event<DeserializeGuard<K>>>>,
    namespace: Option<String>,
) -> impl Stream<Item = Update<K>>
where
    K: Resource<DynamicType = ()>,
{
    let mut trouble = Trouble::of::<K>(namespace.as_deref());
    let mut listing = Listing::new(namespace);
    events.filter_map(move |event| {
        let update = match event.map(|event| listing.hear(event)) {
            Ok(Heard::Nothing) => None,
            Ok(Heard::Update(update)) => {
                trouble.is_over();
                Some(update)
            }
            Ok(Heard::Unreadable(id, error)) => {
                trouble.unreadable(&id, &error);
                None
            }
            Err(error) => {
                trouble.is_here(&error);
                None
            }
        };
        future::ready(update)
    })
}

impl Event {
    fn is_list(&self) -> bool {
        match self {
            Self::ElastiService(update) => matches!(update, Update::Restarted { .. }),
            Self::Service(update) => matches!(update, Update::Restarted { .. }),
            Self::EndpointSlice(update) => matches!(update, Update::Restarted { .. }),
        }
    }
}
