//! The watches on a real API server: objects made and removed there, and what is told of it here.

mod early;
mod scale;

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{
    api::{core::v1::Service, discovery::v1::EndpointSlice},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};
use weir_api::{crd::Kind, hold::ElastiService};
use weir_lab::Namespace;
use weir_resolver::{
    index::IndexSettings,
    view::{Change, ServiceId, ServiceView},
    watch::{self, News, WatchSettings},
};

/// Pauses between attempts grow to half a minute; usual is a tenth of a second.
const PATIENCE: Duration = Duration::from_mins(2);

/// What a resolver would know.
struct Listener {
    news: mpsc::Receiver<News>,
    known: BTreeMap<ServiceId, ServiceView>,
    synced: bool,
}

impl Listener {
    fn start(client: Client, namespaces: &[&str]) -> Self {
        let (tell, news) = mpsc::channel(16);
        let settings = WatchSettings {
            namespaces: namespaces.iter().map(|&name| name.to_owned()).collect(),
            index: IndexSettings {
                per_service_ports: true,
                reserved_ports: Vec::new(),
                early_readiness: true,
            },
        };
        tokio::spawn(watch::run(client, settings, tell));
        Self {
            news,
            known: BTreeMap::new(),
            synced: false,
        }
    }

    /// Listens until it is so; each look is after an event, never after a pause.
    async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let listen = async {
            while !is_so(self) {
                match self.news.recv().await.expect("the watch goes on") {
                    News::Synced => self.synced = true,
                    News::Changes(changes) => changes.into_iter().for_each(|one| self.take(one)),
                }
            }
        };
        let heard = timeout(PATIENCE, listen).await;
        assert!(heard.is_ok(), "not in time: {what}");
    }

    fn take(&mut self, change: Change) {
        match change {
            Change::Set(view) => {
                self.known.insert(view.id.clone(), view.as_ref().clone());
            }
            Change::Gone(id) => assert!(self.known.remove(&id).is_some(), "{id} was not known"),
        }
    }
}

async fn install(client: &Client) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crd = Kind::ElastiService.crd();
    let force = PatchParams::apply("weir-test").force();
    crds.patch(&crd.name_any(), &force, &Patch::Apply(&crd))
        .await
        .expect("the definition is accepted");
    // Established is written before objects are served: a list is the proof.
    weir_lab::eventually(PATIENCE, "ElastiServices are served", || async {
        let all: Api<ElastiService> = Api::all(client.clone());
        all.list(&ListParams::default()).await.map(drop)
    })
    .await;
}

async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    let object: K = serde_json::from_value(object).expect("an object");
    let created = api.create(&PostParams::default(), &object).await;
    created.expect("the API server takes it")
}

fn elasti() -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "service": "web",
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        },
    })
}

/// Without a selector, so that no controller writes slices of its own.
fn service() -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"ports": [{"name": "http", "port": 80}]}})
}

fn slice(name: &str, managed_by: &str, addresses: &[&str]) -> Value {
    let endpoints: Vec<Value> = addresses
        .iter()
        .map(|address| json!({"addresses": [address], "conditions": {"ready": true}}))
        .collect();
    json!({
        "metadata": {"name": name, "labels": {
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": managed_by,
        }},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "http", "port": 8080}],
    })
}

#[tokio::test]
async fn a_service_is_known_from_its_first_object_to_its_last() {
    let k8s = weir_lab::api_server().await;
    let namespace = k8s.namespace("watch").await;
    let elsewhere = k8s.namespace("watch-not").await;
    let client = namespace.client();
    install(&client).await;
    let id = ServiceId::new(namespace.name(), "web");
    let mut listener = Listener::start(client, &[namespace.name()]);
    listener.until("synced", |now| now.synced).await;
    assert!(listener.known.is_empty());

    // Another namespace is not watched.
    create(&elsewhere.api::<Service>(), service()).await;
    create(&elsewhere.api::<ElastiService>(), elasti()).await;
    create(&namespace.api::<Service>(), service()).await;
    let claims: Api<ElastiService> = namespace.api();
    create(&claims, elasti()).await;
    listener
        .until("held", |now| now.known.contains_key(&id))
        .await;
    let view = &listener.known[&id];
    assert_eq!(
        (&*view.target, view.ports[0].number),
        ("Deployment-web", 80)
    );
    assert_eq!(view.ports[0].resolver_port, None);

    let status = json!({"status": {"ports": [{"name": "http", "resolverPort": 10240}]}});
    let patched = claims
        .patch_status("web", &PatchParams::default(), &Patch::Merge(&status))
        .await;
    patched.expect("a status");
    let port = |now: &Listener| now.known[&id].ports[0].resolver_port;
    listener
        .until("a port", |now| port(now) == Some(10240))
        .await;

    let slices: Api<EndpointSlice> = namespace.api();
    create(&slices, slice("ours", "weir", &["192.0.2.100"])).await;
    create(
        &slices,
        slice("pods-1", "somebody", &["192.0.2.2", "192.0.2.1"]),
    )
    .await;
    let endpoints = |now: &Listener| -> Vec<String> {
        let endpoints = now.known[&id].ports[0].endpoints.iter();
        endpoints.map(ToString::to_string).collect()
    };
    let both = ["192.0.2.1:8080", "192.0.2.2:8080"];
    listener
        .until("endpoints", |now| endpoints(now) == both)
        .await;
    assert!(!listener.known[&id].switched);
    let delete = DeleteParams::default();
    slices.delete("ours", &delete).await.expect("deleted");
    listener
        .until("switched", |now| now.known[&id].switched)
        .await;
    slices.delete("pods-1", &delete).await.expect("deleted");
    listener
        .until("asleep", |now| endpoints(now).is_empty())
        .await;

    claims.delete("web", &delete).await.expect("deleted");
    listener.until("gone", |now| now.known.is_empty()).await;
    who_comes_later_is_told_everything_at_once(&namespace).await;
}

async fn who_comes_later_is_told_everything_at_once(namespace: &Namespace) {
    let slices: Api<EndpointSlice> = namespace.api();
    create(&slices, slice("pods-2", "somebody", &["192.0.2.3"])).await;
    create(&namespace.api::<ElastiService>(), elasti()).await;
    let mut listener = Listener::start(namespace.client(), &[namespace.name()]);
    let first = timeout(PATIENCE, listener.news.recv()).await.expect("news");
    let Some(News::Changes(changes)) = first else {
        panic!("{first:?}")
    };
    let [Change::Set(view)] = changes.as_slice() else {
        panic!("{changes:?}")
    };
    assert_eq!(
        view.ports[0].endpoints.len(),
        1,
        "never without its endpoints"
    );
    let second = timeout(PATIENCE, listener.news.recv()).await.expect("news");
    assert_eq!(second, Some(News::Synced));
}

#[tokio::test]
async fn a_definition_that_comes_later_is_waited_for() {
    let k8s = weir_lab::fresh_api_server().await;
    let namespace = k8s.namespace("late").await;
    // Everything, in all namespaces: this server is the test's own.
    let mut listener = Listener::start(namespace.client(), &[]);
    create(&namespace.api::<Service>(), service()).await;
    install(&namespace.client()).await;
    create(&namespace.api::<ElastiService>(), elasti()).await;
    let id = ServiceId::new(namespace.name(), "web");
    let held = |now: &Listener| now.synced && now.known.contains_key(&id);
    listener.until("held", held).await;
}
