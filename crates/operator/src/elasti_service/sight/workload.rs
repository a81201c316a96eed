//! A workload that can be scaled: Deployment, StatefulSet, Rollout, or any other with `/scale`.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    autoscaling::v1::Scale,
    core::v1::PodTemplateSpec,
};
use kube::{
    CustomResource, Resource, ResourceExt,
    api::{ApiResource, DynamicObject},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_api::hold::{ScaleTargetRef, names::FENCE_PREFIX};

use weir_hold::facts::Version;

/// The kinds of targets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `apps/v1`.
    Deployment,
    /// `apps/v1`.
    StatefulSet,
    /// Argo's, `argoproj.io/v1alpha1`.
    Rollout,
    /// Any other with `/scale`. It is not watched, but asked for at each look; its pods are seen in the Service's slices.
    Other(Arc<OtherKind>),
}

/// A kind that is not known beforehand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OtherKind {
    /// Such as `apps/v1`.
    pub api_version: String,
    /// Such as `ReplicaSet`.
    pub kind: String,
}

impl OtherKind {
    /// The group, which may be empty, and the version.
    pub fn group_and_version(&self) -> (&str, &str) {
        self.api_version
            .split_once('/')
            .unwrap_or(("", &self.api_version))
    }
}

/// What of a workload matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// Its version.
    pub version: Option<Version>,
    /// `metadata.generation`.
    pub generation: i64,
    /// `spec.replicas`.
    pub replicas: i32,
    /// Ready pods, as its own status counts them.
    pub ready: i32,
    /// Our fences on it, by their key.
    pub fences: BTreeMap<String, String>,
    /// The labels of its pods.
    pub pod_labels: BTreeMap<String, String>,
    /// Whether a container of its pods waits before it ends.
    pub pre_stop: bool,
    /// Whether its pods are on the network of their nodes.
    pub host_network: bool,
}

/// What of a Rollout is read; the rest is Argo's affair.
#[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize)]
#[kube(
    group = "argoproj.io",
    version = "v1alpha1",
    kind = "Rollout",
    namespaced,
    status = "RolloutStatus",
    schema = "disabled"
)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSpec {
    /// Replicas; one where it is left out.
    pub replicas: Option<i32>,
    /// Its pods; left out where they are another workload's.
    pub template: Option<PodTemplateSpec>,
}

/// What of a Rollout's status is read.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// Ready pods.
    pub ready_replicas: Option<i32>,
}

impl Kind {
    /// The kind that a reference names.
    pub fn of(reference: &ScaleTargetRef) -> Self {
        match reference.canonical() {
            ("apps/v1", "Deployment") => Self::Deployment,
            ("apps/v1", "StatefulSet") => Self::StatefulSet,
            ("argoproj.io/v1alpha1", "Rollout") => Self::Rollout,
            (api_version, kind) => Self::other(api_version, kind),
        }
    }

    /// How the API server is asked for it, where that is known beforehand; see `kinds` for others.
    pub fn resource(&self) -> Option<ApiResource> {
        fn of<K: Resource<DynamicType = ()>>() -> ApiResource {
            ApiResource::erase::<K>(&())
        }
        match self {
            Self::Deployment => Some(of::<Deployment>()),
            Self::StatefulSet => Some(of::<StatefulSet>()),
            Self::Rollout => Some(of::<Rollout>()),
            Self::Other(_) => None,
        }
    }

    fn other(api_version: &str, kind: &str) -> Self {
        Self::Other(Arc::new(OtherKind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        }))
    }
}

impl Workload {
    /// What matters of a Deployment.
    pub fn of_deployment(object: &Deployment) -> Self {
        let spec = object.spec.as_ref();
        let status = object.status.as_ref();
        Self::new(
            object,
            spec.and_then(|spec| spec.replicas),
            status.and_then(|status| status.ready_replicas),
            spec.map(|spec| &spec.template),
        )
    }

    /// What matters of a StatefulSet.
    pub fn of_stateful_set(object: &StatefulSet) -> Self {
        let spec = object.spec.as_ref();
        let status = object.status.as_ref();
        Self::new(
            object,
            spec.and_then(|spec| spec.replicas),
            status.and_then(|status| status.ready_replicas),
            spec.map(|spec| &spec.template),
        )
    }

    /// What matters of a Rollout.
    pub fn of_rollout(object: &Rollout) -> Self {
        let status = object.status.as_ref();
        Self::new(
            object,
            object.spec.replicas,
            status.and_then(|status| status.ready_replicas),
            object.spec.template.as_ref(),
        )
    }

    /// What matters of anything else, by its `/scale`. The version is that of the scale, which is read first: were the
    /// object changed in between, a write on it fails.
    pub fn of_scale(object: &DynamicObject, scale: &Scale) -> Self {
        let replicas = scale.spec.as_ref().and_then(|spec| spec.replicas);
        Self {
            version: scale.metadata.resource_version.clone().map(Version),
            // One whose own status says nothing of it is known by its endpoints.
            ready: 0,
            // Nothing is known of its pods, so nothing is said of them.
            pre_stop: true,
            // Where most kinds have it.
            host_network: object.data.pointer("/spec/template/spec/hostNetwork")
                == Some(&Value::Bool(true)),
            ..Self::new(object, Some(replicas.unwrap_or(0)), None, None)
        }
    }

    fn new(
        object: &impl ResourceExt,
        replicas: Option<i32>,
        ready: Option<i32>,
        template: Option<&PodTemplateSpec>,
    ) -> Self {
        let labels = template.and_then(|template| template.metadata.as_ref()?.labels.clone());
        let pod = template.and_then(|template| template.spec.as_ref());
        let pre_stop = pod.is_some_and(|spec| {
            spec.containers.iter().any(|container| {
                let lifecycle = container.lifecycle.as_ref();
                lifecycle.is_some_and(|lifecycle| lifecycle.pre_stop.is_some())
            })
        });
        Self {
            version: object.resource_version().map(Version),
            generation: object.meta().generation.unwrap_or_default(),
            // The API server sets it; a Rollout without it has one.
            replicas: replicas.unwrap_or(1),
            ready: ready.unwrap_or(0),
            fences: fences(object),
            pod_labels: labels.unwrap_or_default(),
            pre_stop,
            host_network: pod.is_some_and(|spec| spec.host_network == Some(true)),
        }
    }
}

/// Our fences on an object.
pub(super) fn fences(object: &impl ResourceExt) -> BTreeMap<String, String> {
    let annotations = object.annotations().iter();
    annotations
        .filter(|(key, _)| key.starts_with(FENCE_PREFIX))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
