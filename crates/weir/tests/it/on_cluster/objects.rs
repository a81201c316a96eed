//! Objects of a namespace as JSON: some of their kinds are no types here, and tests look at single fields.

use std::{pin::pin, time::Duration};

use futures_util::StreamExt;
use kube::{
    Api, Client, ResourceExt,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
        WatchEvent, WatchParams,
    },
};
use serde_json::Value;
use tokio::time::{sleep, timeout};

/// Between two attempts to follow an object.
const GLANCE: Duration = Duration::from_millis(100);

/// What tests read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Deployment,
    ElastiService,
    EndpointSlice,
    HorizontalPodAutoscaler,
    Lease,
    Pod,
    ReplicaSet,
    Rollout,
    ScaledObject,
    Secret,
    Service,
    StatefulSet,
    TrafficWatch,
}

/// The objects of one namespace.
#[derive(Clone)]
pub(super) struct Objects {
    client: Client,
    namespace: String,
}

impl Kind {
    fn parts(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::Deployment => ("apps", "v1", "Deployment", "deployments"),
            Self::ElastiService => (
                "elasti.truefoundry.com",
                "v1alpha1",
                "ElastiService",
                "elastiservices",
            ),
            Self::EndpointSlice => ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
            Self::HorizontalPodAutoscaler => (
                "autoscaling",
                "v2",
                "HorizontalPodAutoscaler",
                "horizontalpodautoscalers",
            ),
            Self::Lease => ("coordination.k8s.io", "v1", "Lease", "leases"),
            Self::Pod => ("", "v1", "Pod", "pods"),
            Self::ReplicaSet => ("apps", "v1", "ReplicaSet", "replicasets"),
            Self::Rollout => ("argoproj.io", "v1alpha1", "Rollout", "rollouts"),
            Self::ScaledObject => ("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects"),
            Self::Secret => ("", "v1", "Secret", "secrets"),
            Self::Service => ("", "v1", "Service", "services"),
            Self::StatefulSet => ("apps", "v1", "StatefulSet", "statefulsets"),
            Self::TrafficWatch => (
                "traffic.example.com",
                "v1alpha1",
                "TrafficWatch",
                "trafficwatches",
            ),
        }
    }

    /// Its name in a manifest.
    pub(super) fn name(self) -> &'static str {
        self.parts().2
    }

    /// Its group and version in a manifest.
    pub(super) fn api_version(self) -> String {
        match self.parts() {
            ("", version, ..) => version.to_owned(),
            (group, version, ..) => format!("{group}/{version}"),
        }
    }

    fn resource(self) -> ApiResource {
        let (group, version, kind, plural) = self.parts();
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
    }
}

impl Objects {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
        }
    }

    fn api(&self, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &kind.resource())
    }

    /// Makes it or changes it to this, as `kubectl apply --server-side` does.
    pub(super) async fn apply(&self, kind: Kind, name: &str, object: &Value) {
        let mut whole = object.clone();
        whole["apiVersion"] = kind.api_version().into();
        whole["kind"] = kind.name().into();
        whole["metadata"]["name"] = name.into();
        let apply = PatchParams::apply("weir-test").force();
        let api = self.api(kind);
        if let Err(error) = api.patch(name, &apply, &Patch::Apply(&whole)).await {
            panic!("{} {name} is refused: {error}\n{whole:#}", kind.name());
        }
    }

    /// A merge patch.
    pub(super) async fn patch(&self, kind: Kind, name: &str, change: &Value) {
        let parameters = PatchParams::default();
        let api = self.api(kind);
        if let Err(error) = api.patch(name, &parameters, &Patch::Merge(change)).await {
            panic!("{} {name} cannot be changed: {error}", kind.name());
        }
    }

    /// Waits until one of its versions is so, and misses none: looks from time to time would, where it is so for moments.
    /// Otherwise, its last status.
    pub(super) async fn becomes(
        &self,
        kind: Kind,
        name: &str,
        patience: Duration,
        is_so: impl Fn(&Value) -> bool,
    ) -> Result<(), String> {
        let mut last = format!("there is no {} {name}", kind.name());
        let follow = async {
            loop {
                let Some(now) = self.find(kind, name).await else {
                    sleep(GLANCE).await;
                    continue;
                };
                if is_so(&now) {
                    return;
                }
                last = now["status"].to_string();
                let version = now["metadata"]["resourceVersion"].as_str();
                let only = WatchParams::default().fields(&format!("metadata.name={name}"));
                let api = self.api(kind);
                let Ok(events) = api.watch(&only, version.expect("a version")).await else {
                    sleep(GLANCE).await;
                    continue;
                };
                let mut events = pin!(events);
                // Its end is no word of the object: then it is looked at anew.
                while let Some(Ok(WatchEvent::Added(next) | WatchEvent::Modified(next))) =
                    events.next().await
                {
                    let next = serde_json::to_value(next).expect("JSON");
                    if is_so(&next) {
                        return;
                    }
                    last = next["status"].to_string();
                }
            }
        };
        let became = timeout(patience, follow).await;
        became.map_err(|_| format!("not after {patience:?}; last seen: {last}"))
    }

    /// As it is now, if it is there.
    pub(super) async fn find(&self, kind: Kind, name: &str) -> Option<Value> {
        let found = self.api(kind).get_opt(name).await;
        let found = found.unwrap_or_else(|error| panic!("{} {name}: {error}", kind.name()));
        found.map(|object| serde_json::to_value(object).expect("JSON"))
    }

    /// As it is now; it must be there.
    pub(super) async fn get(&self, kind: Kind, name: &str) -> Value {
        let found = self.find(kind, name).await;
        found.unwrap_or_else(|| panic!("there is no {} {name}", kind.name()))
    }

    /// All that carry these labels.
    pub(super) async fn list(&self, kind: Kind, labels: &str) -> Vec<Value> {
        let list = self
            .api(kind)
            .list(&ListParams::default().labels(labels))
            .await;
        let list = list.unwrap_or_else(|error| panic!("{} cannot be listed: {error}", kind.name()));
        let objects = list.items.into_iter();
        objects
            .map(|object| serde_json::to_value(object).expect("JSON"))
            .collect()
    }

    /// Asks for its end, and does not wait for it.
    pub(super) async fn delete(&self, kind: Kind, name: &str) {
        let deleted = self.api(kind).delete(name, &DeleteParams::default()).await;
        let deleted = deleted.unwrap_or_else(|error| panic!("{} {name}: {error}", kind.name()));
        // Either it goes now, or it is told that it is to go.
        let going = deleted.either(|object| object.name_any(), |_| name.to_owned());
        assert_eq!(going, name);
    }

    /// Asks for the end of the namespace, and does not wait for it.
    pub(super) async fn delete_all(&self) {
        let gvk = GroupVersionKind::gvk("", "v1", "Namespace");
        let resource = ApiResource::from_gvk_with_plural(&gvk, "namespaces");
        let namespaces: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let delete = DeleteParams::default();
        let deleted = namespaces.delete(&self.namespace, &delete).await;
        deleted.expect("the namespace goes");
    }
}
