//! A workload that can be scaled: Deployment, StatefulSet, Rollout, or any other with `/scale`.

use std::collections::BTreeMap;

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    autoscaling::v1::Scale,
    core::v1::PodTemplateSpec,
};
use kube::{CustomResource, ResourceExt, api::DynamicObject};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use weir_hold::facts::Version;
use weir_wake::fences;

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
