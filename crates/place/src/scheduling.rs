//! Where pods may run, as Kubernetes' scheduler sees it, as far as we look: node selector, required node affinity,
//! taints, and requests of cpu, memory and room for one more pod. [`crate::judge`] asks which nodes are eligible,
//! [`crate::rebalance`] whether a pod fits elsewhere. Not looked at: pod affinity, topology spread, volumes, ports and
//! other resources.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::{
    node::{NodeFacts, has_labels},
    quantity,
};

/// What a pod demands of the node that it runs on, apart from room.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Constraints {
    /// Labels that the node must have.
    pub node_selector: BTreeMap<String, String>,
    /// The required node affinity; its terms are or-ed.
    pub affinity: Option<NodeSelector>,
    /// What it puts up with.
    pub tolerations: Vec<Toleration>,
}

/// Amounts in billionths, so that sums are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Of a core.
    pub cpu: u128,
    /// Of a byte.
    pub memory: u128,
    /// Of a pod.
    pub pods: u128,
}

/// Why a node cannot take a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its kubelet is not well.
    NotReady,
    /// It was cordoned.
    Unschedulable,
    /// It lacks a label of the pod's `nodeSelector`.
    Selector,
    /// No term of the pod's required node affinity matches it.
    Affinity,
    /// It has a taint that the pod does not tolerate.
    Taint,
}

impl Constraints {
    /// What this pod, or this template's pods, demand.
    pub fn of(spec: &PodSpec) -> Self {
        let affinity = spec.affinity.as_ref();
        let affinity = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
        Self {
            node_selector: spec.node_selector.clone().unwrap_or_default(),
            affinity: affinity.and_then(|affinity| {
                affinity
                    .required_during_scheduling_ignored_during_execution
                    .clone()
            }),
            tolerations: spec.tolerations.clone().unwrap_or_default(),
        }
    }

    /// Whether the node could take such a pod, room apart.
    pub fn admit(&self, node: &NodeFacts) -> Result<(), Refusal> {
        if !node.ready {
            return Err(Refusal::NotReady);
        }
        if node.unschedulable {
            return Err(Refusal::Unschedulable);
        }
        if !has_labels(&node.labels, &self.node_selector) {
            return Err(Refusal::Selector);
        }
        if !self
            .affinity
            .as_ref()
            .is_none_or(|affinity| matches(affinity, node))
        {
            return Err(Refusal::Affinity);
        }
        let tolerated = |taint: &Taint| self.tolerations.iter().any(|one| tolerates(one, taint));
        let keeps_off =
            |taint: &&Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
        if !node.taints.iter().filter(keeps_off).all(tolerated) {
            return Err(Refusal::Taint);
        }
        Ok(())
    }
}

impl Resources {
    /// What a pod asks for: its containers in sum, or the greatest of its init containers if that is more, and its
    /// overhead. What it asks for as a whole goes before what its containers do.
    pub fn asked_by(spec: &PodSpec) -> Self {
        let one = |name: &str| asked(spec, name);
        Self {
            cpu: one("cpu"),
            memory: one("memory"),
            pods: quantity::nanos("1").unwrap_or_default(),
        }
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_add(other.cpu),
            memory: self.memory.saturating_add(other.memory),
            pods: self.pods.saturating_add(other.pods),
        }
    }

    /// What is left; nothing where more is taken than there is.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(other.cpu),
            memory: self.memory.saturating_sub(other.memory),
            pods: self.pods.saturating_sub(other.pods),
        }
    }

    /// Whether all of it is there. What nobody asks for need not be there.
    pub const fn fit_into(self, room: Self) -> bool {
        self.cpu <= room.cpu && self.memory <= room.memory && self.pods <= room.pods
    }
}

/// Whether a required node affinity matches: any of its terms.
pub fn matches(affinity: &NodeSelector, node: &NodeFacts) -> bool {
    (affinity.node_selector_terms.iter()).any(|term| term_matches(term, node))
}

/// All requirements of a term must hold; a term without any matches nothing.
fn term_matches(term: &NodeSelectorTerm, node: &NodeFacts) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let by_label = |one: &NodeSelectorRequirement| {
        requirement_holds(one, node.labels.get(&one.key).map(String::as_str))
    };
    // The name is the only field that Kubernetes knows here.
    let by_field = |one: &NodeSelectorRequirement| {
        one.key == "metadata.name" && requirement_holds(one, Some(&node.name))
    };
    expressions.iter().all(by_label) && fields.iter().all(by_field)
}

fn requirement_holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let listed = value.is_some_and(|value| values.iter().any(|one| one == value));
    let number = value.and_then(|value| value.parse::<i64>().ok());
    let bound = values.first().and_then(|bound| bound.parse::<i64>().ok());
    match requirement.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => number
            .zip(bound)
            .is_some_and(|(number, bound)| number > bound),
        "Lt" => number
            .zip(bound)
            .is_some_and(|(number, bound)| number < bound),
        // An operator of a later Kubernetes: better to think that the node does not match.
        _ => false,
    }
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    let value = toleration.value.as_deref().unwrap_or_default();
    if !effect.is_empty() && effect != taint.effect {
        return false;
    }
    match toleration.operator.as_deref().unwrap_or_default() {
        "Exists" => key.is_empty() || key == taint.key,
        "" | "Equal" => key == taint.key && value == taint.value.as_deref().unwrap_or_default(),
        _ => false,
    }
}

fn asked(spec: &PodSpec, name: &str) -> u128 {
    let overhead = amount(spec.overhead.as_ref(), name).unwrap_or_default();
    let whole = spec.resources.as_ref();
    let whole = whole.and_then(|whole| amount(whole.requests.as_ref(), name));
    whole
        .unwrap_or_else(|| asked_by_containers(spec, name))
        .saturating_add(overhead)
}

fn asked_by_containers(spec: &PodSpec, name: &str) -> u128 {
    let of = |container: &Container| {
        let resources = container.resources.as_ref();
        let asked = resources.and_then(|resources| amount(resources.requests.as_ref(), name));
        asked.unwrap_or_default()
    };
    // Sidecars start before the init containers behind them, and stay.
    let mut sidecars: u128 = 0;
    let mut at_start: u128 = 0;
    for container in spec.init_containers.iter().flatten() {
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars = sidecars.saturating_add(of(container));
            at_start = at_start.max(sidecars);
        } else {
            at_start = at_start.max(sidecars.saturating_add(of(container)));
        }
    }
    let running = (spec.containers.iter()).fold(sidecars, |sum, one| sum.saturating_add(of(one)));
    running.max(at_start)
}

fn amount(list: Option<&BTreeMap<String, Quantity>>, name: &str) -> Option<u128> {
    let quantity = list.and_then(|list| list.get(name))?;
    // What cannot be read is taken for more than any node has.
    Some(quantity::nanos(&quantity.0).unwrap_or(u128::MAX))
}
