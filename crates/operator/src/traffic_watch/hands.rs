//! Carries out what was decided: one write to the API server each. Nothing here decides anything.

use std::{fmt::Debug, sync::Arc, time::Duration};

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::Deployment,
        core::v1::{Node, Pod},
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ManagedFieldsEntry},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{EvictParams, ListParams, Patch, PatchParams, PostParams},
    core::Selector,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use thiserror::Error;
use tokio::time::timeout;
use weir_api::place::{
    TrafficWatch, TrafficWatchStatus,
    names::{FIELD_MANAGER, FINALIZER, REPLICAS_FIELD_MANAGER},
};
use weir_place::{
    node::NodeFacts,
    plan::{Carried, NodeChange},
};
use weir_role::cluster::ObjectId;

use super::world::NodeSight;
use crate::metrics::OperatorMetrics;

/// The API server has so long to take one write.
const WRITE: Duration = Duration::from_secs(10);
/// And so long to let a pod go.
const EVICTION: Duration = Duration::from_secs(3);

/// What is told of writes in errors and counts.
const NODE: &str = "node";
const DEPLOYMENT: &str = "deployment";
const SCALE: &str = "scale";
const STATUS: &str = "status";
const FINALIZERS: &str = "finalizer";
const POD: &str = "pod";
const SELECTOR: &str = "selector";

/// Writes to the API server. Cheap to clone.
#[derive(Clone)]
pub struct Hands {
    client: Client,
    metrics: Arc<OperatorMetrics>,
}

/// Why something was not written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// It has changed since it was read. Nothing is lost: it is decided again.
    #[error("the {0} has changed meanwhile; it is looked at again")]
    Changed(&'static str),
    /// It is not there any more.
    #[error("the {0} is gone")]
    Gone(&'static str),
    /// The API server does not take it as it is.
    #[error("the {what} was refused: {message}")]
    Refused {
        /// What.
        what: &'static str,
        /// What the API server says.
        message: String,
    },
    /// Anything else.
    #[error("the {what} cannot be written at the moment")]
    Failed {
        /// What.
        what: &'static str,
        /// What the API server says.
        source: Box<kube::Error>,
    },
    /// No answer.
    #[error("the {0} cannot be written at the moment: the API server does not answer")]
    Timeout(&'static str),
}

impl WriteError {
    /// A label for metrics, out of a fixed set.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Changed(_) => "conflict",
            Self::Gone(_) => "not_found",
            Self::Refused { .. } => "refused",
            Self::Failed { .. } => "failed",
            Self::Timeout(_) => "timeout",
        }
    }

    fn of(what: &'static str, error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.code == 409 => Self::Changed(what),
            kube::Error::Api(status) if status.code == 404 => Self::Gone(what),
            // Nothing can be made any more where everything goes.
            kube::Error::Api(status) if status.message.contains("being terminated") => {
                Self::Gone(what)
            }
            kube::Error::Api(status) if matches!(status.code, 400 | 403 | 422) => Self::Refused {
                what,
                message: status.message.clone(),
            },
            error => Self::Failed {
                what,
                source: Box::new(error),
            },
        }
    }
}

impl Hands {
    /// Hands that write with this client.
    pub fn new(client: Client, metrics: Arc<OperatorMetrics>) -> Self {
        Self { client, metrics }
    }

    /// Writes all that changes on a node; gives it as it is then, if anything was written.
    pub async fn change_node(
        &self,
        node: &NodeSight,
        change: &NodeChange,
    ) -> Result<Option<Node>, WriteError> {
        let mut now = None;
        if let Some(carried) = &change.apply {
            now = Some(self.apply_node(&node.facts, carried).await?);
            self.metrics.place.label_written();
        }
        let still_there = |key: &&String| {
            (now.as_ref()).is_none_or(|node: &Node| node.labels().contains_key(*key))
        };
        let left: Vec<&String> = change.remove_labels.iter().filter(still_there).collect();
        if !left.is_empty() {
            now = Some(self.remove_labels(&node.facts, &left).await?);
            self.metrics.place.label_written();
        }
        if let Some(taints) = &change.taints {
            let version = match &now {
                // Somebody else changed them meanwhile: they are decided on again.
                Some(now) if NodeFacts::of(now).taints != node.facts.taints => {
                    return Err(WriteError::Changed(NODE));
                }
                Some(now) => now.resource_version().unwrap_or_default(),
                None => node.version.clone(),
            };
            let patch = json!([
                { "op": "test", "path": "/metadata/resourceVersion", "value": version },
                { "op": "add", "path": "/spec/taints", "value": taints },
            ]);
            now = Some(self.patch_node(&node.facts, patch).await?);
        }
        Ok(now)
    }

    /// One apply with all that Weir has there. The uid keeps it from making a node that has just left.
    async fn apply_node(&self, node: &NodeFacts, carried: &Carried) -> Result<Node, WriteError> {
        let mut metadata = json!({ "name": node.name, "uid": node.uid });
        if let Some(metadata) = metadata.as_object_mut() {
            let mut put = |field: &str, value: Value| metadata.insert(field.to_owned(), value);
            if !carried.labels.is_empty() {
                put("labels", json!(carried.labels));
            }
            if !carried.annotations.is_empty() {
                put("annotations", json!(carried.annotations));
            }
        }
        let object = json!({ "apiVersion": "v1", "kind": "Node", "metadata": metadata });
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let api: Api<Node> = Api::all(self.client.clone());
        let patch = Patch::Apply(&object);
        self.wrote(NODE, api.patch(&node.name, &params, &patch))
            .await
    }

    /// What others wrote does not go with an apply.
    async fn remove_labels(&self, node: &NodeFacts, keys: &[&String]) -> Result<Node, WriteError> {
        let keys: Map<String, Value> = (keys.iter())
            .map(|key| ((*key).clone(), Value::Null))
            .collect();
        let patch = json!({ "metadata": { "uid": node.uid, "labels": keys } });
        let api: Api<Node> = Api::all(self.client.clone());
        let (params, patch) = (patching(FIELD_MANAGER), Patch::Merge(&patch));
        self.wrote(NODE, api.patch(&node.name, &params, &patch))
            .await
    }

    async fn patch_node(&self, node: &NodeFacts, patch: Value) -> Result<Node, WriteError> {
        let api: Api<Node> = Api::all(self.client.clone());
        let (params, patch) = (patching(FIELD_MANAGER), json_patch(NODE, patch)?);
        let written = api.patch(&node.name, &params, &patch);
        tested(self.wrote(NODE, written).await)
    }

    /// Applies a Deployment, or only asks whether it could be.
    pub async fn apply_deployment(
        &self,
        id: &ObjectId,
        object: &Value,
        is_dry_run: bool,
    ) -> Result<Deployment, WriteError> {
        let mut params = PatchParams::apply(FIELD_MANAGER).force();
        params.dry_run = is_dry_run;
        let api = self.deployments(id);
        let patch = Patch::Apply(object);
        let written = api.patch(&id.name, &params, &patch);
        if is_dry_run {
            return answered(DEPLOYMENT, written).await;
        }
        self.wrote(DEPLOYMENT, written).await
    }

    /// Sets `replicas`, in a name of its own: what an apply then leaves out stays.
    pub async fn scale(&self, id: &ObjectId, replicas: i32) -> Result<(), WriteError> {
        let patch = json!({ "spec": { "replicas": replicas } });
        let api = self.deployments(id);
        let params = patching(REPLICAS_FIELD_MANAGER);
        let patch = Patch::Merge(&patch);
        let written = api.patch_scale(&id.name, &params, &patch);
        self.wrote(SCALE, written).await.map(drop)
    }

    /// A Deployment with who wrote what.
    pub async fn read_deployment(&self, id: &ObjectId) -> Result<Deployment, WriteError> {
        answered(DEPLOYMENT, self.deployments(id).get(&id.name)).await
    }

    /// Says anew who wrote what, on the version that was read.
    pub async fn set_managed_fields(
        &self,
        deployment: &Deployment,
        fields: &[ManagedFieldsEntry],
    ) -> Result<(), WriteError> {
        let id = ObjectId::of(deployment);
        let patch = json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": deployment.resource_version() },
            { "op": "replace", "path": "/metadata/managedFields", "value": fields },
        ]);
        let api = self.deployments(&id);
        let (params, patch) = (patching(FIELD_MANAGER), json_patch(DEPLOYMENT, patch)?);
        let written = api.patch(&id.name, &params, &patch);
        tested(self.wrote(DEPLOYMENT, written).await).map(drop)
    }

    /// All objects of a kind in a namespace that a selector finds.
    pub async fn list_selected<K>(
        &self,
        namespace: &str,
        selector: &LabelSelector,
    ) -> Result<Vec<K>, WriteError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let selector = Selector::try_from(selector.clone());
        let selector = selector.map_err(|error| WriteError::Refused {
            what: SELECTOR,
            message: error.to_string(),
        })?;
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        let params = ListParams::default().labels_from(&selector);
        let listed = answered(SELECTOR, api.list(&params)).await?;
        Ok(listed.items)
    }

    /// All pods on a node.
    pub async fn list_on_node(&self, node: &str) -> Result<Vec<Pod>, WriteError> {
        let api: Api<Pod> = Api::all(self.client.clone());
        let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
        Ok(answered(POD, api.list(&params)).await?.items)
    }

    /// Asks a pod to leave its node; budgets for disruptions have their say. The client asks again and again while they
    /// say no, so that no answer in time means the same.
    pub async fn evict(&self, namespace: &str, pod: &str) -> Result<(), WriteError> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let params = EvictParams::default();
        self.metrics.wrote(POD);
        let put_off = || WriteError::Refused {
            what: POD,
            message:
                "a PodDisruptionBudget does not let it go at the moment, or the API server is slow"
                    .to_owned(),
        };
        match timeout(EVICTION, api.evict(pod, &params)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(kube::Error::Api(status))) if status.code == 429 => Err(put_off()),
            Ok(Err(error)) => Err(WriteError::of(POD, error)),
            Err(_) => Err(put_off()),
        }
    }

    /// Writes a status, on the version that was read.
    pub async fn store(
        &self,
        object: &TrafficWatch,
        status: TrafficWatchStatus,
    ) -> Result<TrafficWatch, WriteError> {
        let mut new = object.clone();
        new.status = Some(status);
        let id = ObjectId::of(object);
        let api: Api<TrafficWatch> = Api::namespaced(self.client.clone(), &id.namespace);
        let params = PostParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        let written = api.replace_status(&id.name, &params, &new);
        self.wrote(STATUS, written).await
    }

    /// Adds our finalizer, or takes it away, on the version that was read.
    pub async fn set_finalizer(
        &self,
        object: &TrafficWatch,
        is_on: bool,
    ) -> Result<TrafficWatch, WriteError> {
        let mut finalizers = object.finalizers().to_vec();
        finalizers.retain(|finalizer| finalizer != FINALIZER);
        if is_on {
            finalizers.push(FINALIZER.to_owned());
        }
        let patch = json!({ "metadata": {
            "resourceVersion": object.resource_version(),
            "finalizers": finalizers,
        }});
        let id = ObjectId::of(object);
        let api: Api<TrafficWatch> = Api::namespaced(self.client.clone(), &id.namespace);
        let (params, patch) = (patching(FIELD_MANAGER), Patch::Merge(&patch));
        let written = api.patch(&id.name, &params, &patch);
        self.wrote(FINALIZERS, written).await
    }

    fn deployments(&self, id: &ObjectId) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), &id.namespace)
    }

    /// What came of a write, counted.
    async fn wrote<T>(
        &self,
        what: &'static str,
        writing: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, WriteError> {
        self.metrics.wrote(what);
        answered(what, writing).await
    }
}

async fn answered<T>(
    what: &'static str,
    asking: impl Future<Output = kube::Result<T>>,
) -> Result<T, WriteError> {
    match timeout(WRITE, asking).await {
        Ok(outcome) => outcome.map_err(|error| WriteError::of(what, error)),
        Err(_) => Err(WriteError::Timeout(what)),
    }
}

/// The API server says of a test that fails that the patch is invalid.
fn tested<T>(outcome: Result<T, WriteError>) -> Result<T, WriteError> {
    match outcome {
        Err(WriteError::Refused { what, message }) if message.contains("test") => {
            tracing::debug!(what, message, "a patch was for another version");
            Err(WriteError::Changed(what))
        }
        outcome => outcome,
    }
}

fn patching(manager: &str) -> PatchParams {
    PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    }
}

fn json_patch(what: &'static str, patch: Value) -> Result<Patch<()>, WriteError> {
    let patch = serde_json::from_value(patch);
    patch.map(Patch::Json).map_err(|error| WriteError::Failed {
        what,
        source: Box::new(kube::Error::SerdeError(error)),
    })
}
