//! A node as the decisions see it, and the rules about nodes that hold for every watch: who is a worker, who is judged.
//! Where a pod may run is in [`crate::scheduling`].

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Taint};
use weir_api::place::names::{CONTROL_PLANE_TAINT, CONTROL_PLANE_TAINT_EFFECT};

use crate::{moment::Moment, quantity, scheduling::Resources};

/// Label by which every kubelet says what it runs on.
const OS_LABEL: &str = "kubernetes.io/os";
const LINUX: &str = "linux";

/// What matters of a Node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFacts {
    /// Its name.
    pub name: String,
    /// A node of the same name with another one is another node.
    pub uid: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its taints, in their order.
    pub taints: Vec<Taint>,
    /// Whether its kubelet says that it is well.
    pub ready: bool,
    /// Whether it was cordoned.
    pub unschedulable: bool,
    /// Whether it runs Linux.
    pub linux: bool,
    /// What its pods may ask for in sum.
    pub allocatable: Resources,
}

/// When a node was first asked for figures, and how that went: for `ready`, and for the age of what is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When first.
    pub since: Moment,
    /// Whether any answer failed to come since the last one that came.
    pub failing: bool,
}

impl NodeFacts {
    /// What matters of this Node. One that does not say what it runs on runs Linux, as all did when nobody said.
    pub fn of(node: &Node) -> Self {
        let spec = node.spec.clone().unwrap_or_default();
        let status = node.status.clone().unwrap_or_default();
        let labels = node.metadata.labels.clone().unwrap_or_default();
        let os = status.node_info.map(|info| info.operating_system);
        let os = labels.get(OS_LABEL).cloned().or(os);
        let allocatable = status.allocatable.unwrap_or_default();
        let amount = |name: &str| {
            let amount = allocatable.get(name).map(|amount| amount.0.as_str());
            amount.and_then(quantity::nanos).unwrap_or_default()
        };
        Self {
            name: node.metadata.name.clone().unwrap_or_default(),
            uid: node.metadata.uid.clone().unwrap_or_default(),
            annotations: node.metadata.annotations.clone().unwrap_or_default(),
            taints: spec.taints.unwrap_or_default(),
            ready: (status.conditions.iter().flatten())
                .any(|condition| condition.type_ == "Ready" && condition.status == "True"),
            unschedulable: spec.unschedulable.unwrap_or_default(),
            linux: os.is_none_or(|os| os.is_empty() || os == LINUX),
            allocatable: Resources {
                cpu: amount("cpu"),
                memory: amount("memory"),
                pods: amount("pods"),
            },
            labels,
        }
    }

    /// Whether pods of users are meant to run here at all: Linux, and no taint of the control plane. Says nothing about
    /// readiness, so a node that is down for a moment keeps its label.
    pub fn is_for_work(&self) -> bool {
        let keeps_off = |taint: &Taint| {
            taint.key == CONTROL_PLANE_TAINT && taint.effect == CONTROL_PLANE_TAINT_EFFECT
        };
        self.linux && !self.taints.iter().any(keeps_off)
    }

    /// A worker as the contract has it: ready, Linux, without a control-plane NoSchedule taint.
    pub fn is_worker(&self) -> bool {
        self.ready && self.is_for_work()
    }

    /// Whether a watch with this selector judges the node, and so keeps its label there.
    pub fn is_judged(&self, selector: &BTreeMap<String, String>) -> bool {
        self.is_for_work() && has_labels(&self.labels, selector)
    }
}

/// Whether all of these labels are there.
pub fn has_labels(labels: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> bool {
    let has = |(key, value): (&String, &String)| labels.get(key) == Some(value);
    wanted.iter().all(has)
}
