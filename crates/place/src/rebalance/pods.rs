//! Pods as `rebalance` sees them: which are the watch's own, what they ask for, and how much of each node all pods take.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{apps::v1::ReplicaSet, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};

use super::PodFacts;
use crate::scheduling::{Constraints, Resources};

/// The pods that this Deployment's own ReplicaSets made, and no others: labels alone may match pods of somebody else.
/// Those that have ended are none.
pub fn own<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    replica_sets: &[ReplicaSet],
    deployment_uid: &str,
) -> Vec<PodFacts> {
    let uids: Vec<&str> = (replica_sets.iter())
        .filter(|set| is_of(&set.metadata, |owner| owner.uid == deployment_uid))
        .filter_map(|set| set.metadata.uid.as_deref())
        .collect();
    let is_own = |pod: &&Pod| is_of(&pod.metadata, |owner| uids.contains(&owner.uid.as_str()));
    (pods
        .into_iter()
        .filter(is_own)
        .filter(|pod| !has_ended(pod)))
    .map(facts)
    .collect()
}

/// What all pods on each node ask for. Pass every pod of the cluster; `nodes` names those without any.
pub fn taken<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    nodes: impl IntoIterator<Item = &'a str>,
) -> BTreeMap<String, Resources> {
    let none = |node: &str| (node.to_owned(), Resources::default());
    let mut taken: BTreeMap<String, Resources> = nodes.into_iter().map(none).collect();
    for pod in pods.into_iter().filter(|pod| !has_ended(pod)) {
        let Some(spec) = &pod.spec else { continue };
        if let Some(sum) = spec.node_name.as_ref().and_then(|node| taken.get_mut(node)) {
            *sum = sum.plus(Resources::asked_by(spec));
        }
    }
    taken
}

fn facts(pod: &Pod) -> PodFacts {
    let spec = pod.spec.clone().unwrap_or_default();
    let conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
    PodFacts {
        name: pod.metadata.name.clone().unwrap_or_default(),
        created: (pod.metadata.creation_timestamp.as_ref())
            .map_or(0, |created| created.0.as_second()),
        ready: ready.any(|condition| condition.status == "True"),
        ending: pod.metadata.deletion_timestamp.is_some(),
        constraints: Constraints::of(&spec),
        requests: Resources::asked_by(&spec),
        node: spec.node_name,
    }
}

fn is_of(metadata: &ObjectMeta, is_owner: impl Fn(&OwnerReference) -> bool) -> bool {
    let owners = metadata.owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    controllers.any(is_owner)
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, owner: &str, more: &Value) -> Pod {
        let mut pod = json!({
            "metadata": {
                "name": name,
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": true,
                }],
            },
            "spec": {
                "nodeName": "a",
                "containers": [{ "name": "c", "resources": { "requests": { "cpu": "200m", "memory": "1Ki" } } }],
            },
            "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        if let (Some(pod), Some(more)) = (pod.as_object_mut(), more.as_object()) {
            pod.extend(more.clone());
        }
        serde_json::from_value(pod).unwrap()
    }

    fn replica_set(uid: &str, owner: &str) -> ReplicaSet {
        let set = json!({ "metadata": {
            "uid": uid,
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": owner, "controller": true,
            }],
        } });
        serde_json::from_value(set).unwrap()
    }

    #[test]
    fn only_pods_of_the_deployments_own_replica_sets_are_its_own() {
        let sets = [replica_set("ours", "web"), replica_set("theirs", "other")];
        let ended = json!({ "status": { "phase": "Failed" } });
        let pods = [
            pod("p1", "ours", &json!({})),
            pod("p2", "theirs", &json!({})),
            pod("p3", "nobody", &json!({})),
            pod("p4", "ours", &ended),
        ];
        let own = own(&pods, &sets, "web");
        assert_eq!(own.len(), 1);
        let found = &own[0];
        assert_eq!(
            (found.name.as_str(), found.node.as_deref()),
            ("p1", Some("a"))
        );
        assert!(found.ready && !found.ending && found.created > 0);
    }

    #[test]
    fn every_pod_that_runs_takes_room() {
        let pods = [
            pod("p1", "ours", &json!({})),
            pod("p2", "theirs", &json!({})),
            pod("p3", "ours", &json!({ "status": { "phase": "Succeeded" } })),
        ];
        let taken = taken(&pods, ["a", "b"]);
        assert_eq!(taken["a"].cpu, 400_000_000);
        assert_eq!(taken["a"].memory, 2048 * 1_000_000_000);
        assert_eq!(taken["a"].pods, 2_000_000_000);
        assert_eq!(taken["b"], Resources::default());
    }
}
