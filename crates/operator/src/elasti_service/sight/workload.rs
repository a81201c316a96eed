//! A workload that can be scaled: Deployment, StatefulSet or Rollout.

use std::collections::BTreeMap;

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::PodTemplateSpec,
};
use kube::{CustomResource, Resource, ResourceExt, api::ApiResource};
use serde::{Deserialize, Serialize};
use weir_api::hold::{ScaleTargetRef, names::FENCE_PREFIX};

use weir_hold::facts::Version;

/// The kinds that are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `apps/v1`.
    Deployment,
    /// `apps/v1`.
    StatefulSet,
    /// Argo's, `argoproj.io/v1alpha1`.
    Rollout,
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
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Deployment, Self::StatefulSet, Self::Rollout];

    /// The kind that a reference names, if it is one of these.
    pub fn of(reference: &ScaleTargetRef) -> Option<Self> {
        match reference.canonical() {
            ("apps/v1", "Deployment") => Some(Self::Deployment),
            ("apps/v1", "StatefulSet") => Some(Self::StatefulSet),
            ("argoproj.io/v1alpha1", "Rollout") => Some(Self::Rollout),
            _ => None,
        }
    }

    /// A workload as `status.target` has it, such as `Deployment/web`.
    pub fn parse(text: &str) -> Option<(Self, &str)> {
        let (kind, name) = text.split_once('/')?;
        let kind = Self::ALL.into_iter().find(|known| known.as_str() == kind)?;
        Some((kind, name)).filter(|(_, name)| !name.is_empty())
    }

    /// As Kubernetes spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::Rollout => "Rollout",
        }
    }

    /// How the API server is asked for it.
    pub fn resource(self) -> ApiResource {
        fn of<K: Resource<DynamicType = ()>>() -> ApiResource {
            ApiResource::erase::<K>(&())
        }
        match self {
            Self::Deployment => of::<Deployment>(),
            Self::StatefulSet => of::<StatefulSet>(),
            Self::Rollout => of::<Rollout>(),
        }
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

    fn new(
        object: &impl ResourceExt,
        replicas: Option<i32>,
        ready: Option<i32>,
        template: Option<&PodTemplateSpec>,
    ) -> Self {
        let labels = template.and_then(|template| template.metadata.as_ref()?.labels.clone());
        let containers = template.and_then(|template| template.spec.as_ref());
        let pre_stop = containers.is_some_and(|spec| {
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
