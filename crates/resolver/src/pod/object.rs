//! A Pod, as far as it tells of readiness: all else is left out while it is read, and the rest becomes a [`PodView`] at once,
//! so that a list of all pods takes little memory.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{ContainerPort, Pod as WholePod, PodIP, PodReadinessGate, Probe},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::Resource;
use serde::{Deserialize, de::IgnoredAny};

use super::PodView;

/// A Pod.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Written")]
pub struct Pod {
    /// Without what others have noted there.
    pub metadata: ObjectMeta,
    /// What it says of its readiness.
    pub view: Option<Arc<PodView>>,
}

/// What is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Written {
    pub(super) metadata: ObjectMeta,
    pub(super) spec: Spec,
    pub(super) status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    pub(super) containers: Vec<Container>,
    pub(super) init_containers: Vec<Container>,
    pub(super) readiness_gates: Vec<PodReadinessGate>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) ports: Vec<ContainerPort>,
    pub(super) readiness_probe: Option<Probe>,
    pub(super) startup_probe: Option<Probe>,
    pub(super) restart_policy: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    pub(super) phase: Option<String>,
    #[serde(rename = "podIP")]
    pub(super) pod_ip: Option<String>,
    #[serde(rename = "podIPs")]
    pub(super) pod_ips: Vec<PodIP>,
    pub(super) container_statuses: Vec<ContainerStatus>,
    pub(super) init_container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ContainerStatus {
    pub(super) name: String,
    #[serde(rename = "containerID")]
    pub(super) container_id: Option<String>,
    pub(super) ready: bool,
    pub(super) started: Option<bool>,
    pub(super) state: State,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct State {
    pub(super) running: Option<IgnoredAny>,
}

impl Pod {
    /// By which Services select it.
    pub fn labels(&self) -> Option<&BTreeMap<String, String>> {
        self.metadata.labels.as_ref()
    }
}

impl Resource for Pod {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(dynamic: &()) -> Cow<'_, str> {
        WholePod::kind(dynamic)
    }

    fn group(dynamic: &()) -> Cow<'_, str> {
        WholePod::group(dynamic)
    }

    fn version(dynamic: &()) -> Cow<'_, str> {
        WholePod::version(dynamic)
    }

    fn plural(dynamic: &()) -> Cow<'_, str> {
        WholePod::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl From<Written> for Pod {
    fn from(written: Written) -> Self {
        let view = PodView::of(&written).map(Arc::new);
        let metadata = ObjectMeta {
            annotations: None,
            finalizers: None,
            managed_fields: None,
            owner_references: None,
            ..written.metadata
        };
        Self { metadata, view }
    }
}
