//! The way to a cluster: a client, and watches that go on for ever.
//!
//! [`listing`] puts what one watch says together, [`trouble`] says what to do when one fails. Whatever happens is logged
//! once, and tried again with growing pauses.

mod listing;
mod trouble;

use std::{
    fmt::Debug,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::{Stream, StreamExt, future};
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Client, Config, Resource, ResourceExt,
    config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError},
    core::DeserializeGuard,
    runtime::{WatchStreamExt, watcher},
};
use listing::{Heard, Listing, Telling};
use serde::de::DeserializeOwned;
use thiserror::Error;
use trouble::Trouble;

/// What happened.
#[derive(Clone, Debug)]
pub enum Update<K> {
    /// It is new or changed.
    Set(Box<K>),
    /// It was deleted.
    Gone(ObjectId),
    /// These are all there are: what was deleted while nobody watched is not among them.
    Restarted {
        /// All there are in this namespace; none: in the cluster.
        namespace: Option<String>,
        /// The objects.
        objects: Vec<K>,
        /// Objects that are there and not among these, since they cannot be read, or have been told singly before: what was
        /// known of them stays.
        unreadable: Vec<ObjectId>,
    },
}

/// An object of a kind that is known from where this stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl ObjectId {
    /// The object of this name in this namespace.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Which object this is.
    pub fn of<K: ResourceExt>(object: &K) -> Self {
        let meta = object.meta();
        Self::new(
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default(),
        )
    }
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

/// What can be watched: kinds in namespaces whose form is known.
pub trait Watched:
    Resource<Scope = NamespaceResourceScope, DynamicType = ()>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + 'static
{
}

impl<K> Watched for K where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + 'static
{
}

/// Watches one kind for ever, in one namespace or in all.
pub fn watch<K: Watched>(
    client: &Client,
    namespace: Option<&str>,
    config: watcher::Config,
) -> impl Stream<Item = Update<K>> + Send + use<K> {
    required(client, namespace, config, Telling::Together)
}

/// The same for kinds of which a cluster may have thousands: each object of a list is told when it comes, so that no more
/// than a page of them is held, and at the end which of them there are.
pub fn watch_singly<K: Watched>(
    client: &Client,
    namespace: Option<&str>,
    config: watcher::Config,
) -> impl Stream<Item = Update<K>> + Send + use<K> {
    required(client, namespace, config, Telling::Singly)
}

/// [`watch`] for a kind that a cluster may not have: `None` says so. It is looked for again and again.
pub fn watch_optional<K: Watched>(
    client: &Client,
    namespace: Option<&str>,
    config: watcher::Config,
) -> impl Stream<Item = Option<Update<K>>> + Send + use<K> {
    let listing = Listing::new(namespace.map(str::to_owned), Telling::Together);
    all(events(client, namespace, config), listing, true)
}

/// [`watch_singly`] for a kind that a cluster may not have.
pub fn watch_optional_singly<K: Watched>(
    client: &Client,
    namespace: Option<&str>,
    config: watcher::Config,
) -> impl Stream<Item = Option<Update<K>>> + Send + use<K> {
    let listing = Listing::new(namespace.map(str::to_owned), Telling::Singly);
    all(events(client, namespace, config), listing, true)
}

fn required<K: Watched>(
    client: &Client,
    namespace: Option<&str>,
    config: watcher::Config,
    telling: Telling,
) -> impl Stream<Item = Update<K>> + Send + use<K> {
    let listing = Listing::new(namespace.map(str::to_owned), telling);
    all(events(client, namespace, config), listing, false).filter_map(future::ready)
}

fn events<K: Watched>(
    client: &Client,
    namespace: Option<&str>,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<watcher::Event<DeserializeGuard<K>>>> + Send + use<K> {
    watcher(api::<K>(client, namespace), config).default_backoff()
}

fn api<K: Watched>(client: &Client, namespace: Option<&str>) -> Api<DeserializeGuard<K>> {
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// Updates, and `None` when the kind is found not to be there.
fn all<K>(
    events: impl Stream<Item = watcher::Result<watcher::Event<DeserializeGuard<K>>>>,
    mut listing: Listing<K>,
    is_optional: bool,
) -> impl Stream<Item = Option<Update<K>>>
where
    K: Resource<DynamicType = ()>,
{
    let mut trouble = Trouble::of::<K>(listing.namespace(), is_optional);
    events.filter_map(move |event| {
        let update = match event.map(|event| listing.hear(event)) {
            Ok(Heard::Nothing) => None,
            Ok(Heard::Update(update)) => {
                trouble.is_over();
                Some(Some(update))
            }
            Ok(Heard::Unreadable(id, error)) => {
                trouble.unreadable(&id, &error);
                None
            }
            Err(error) => {
                let is_new = trouble.is_here(&error);
                (is_optional && is_new && trouble::is_absent(&error)).then_some(None)
            }
        };
        future::ready(update)
    })
}
