//! Whose keys on nodes are, as far as watches and their Deployments tell: `weir_place` makes changes of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kube::ResourceExt;
use weir_api::place::{
    TrafficWatch,
    names::{FINALIZER, label_of_unfit_key},
};
use weir_place::{
    deployment::{self, Ownership},
    node::NodeFacts,
    plan::{Claim, WatchName},
};
use weir_role::cluster::ObjectId;

use super::super::world::World;

/// Nobody knows which keys a watch claims that cannot be read; so none that is on a node is taken for an orphan.
pub(super) fn protect_unread(world: &World, nodes: &[&NodeFacts], claims: &mut Vec<Claim>) {
    let Some(unread) = world.unreadable().next() else {
        return;
    };
    let labels = nodes.iter().flat_map(|node| node.labels.keys());
    let taints = (nodes.iter()).flat_map(|node| node.taints.iter().map(|taint| &taint.key));
    let keys: BTreeSet<&String> = labels
        .chain(taints)
        .filter(|key| label_of_unfit_key(key).is_some())
        .collect();
    let is_claimed =
        |key: &String| (claims.iter()).any(|claim| claim.key == *key || claim.in_use.contains(key));
    let unclaimed: Vec<String> = (keys.into_iter())
        .filter(|key| !is_claimed(key))
        .cloned()
        .collect();
    claims.extend(unclaimed.into_iter().map(|key| Claim {
        watch: name_of(unread),
        created: None,
        key,
        in_use: BTreeSet::new(),
        wishes: BTreeMap::new(),
        taint: false,
    }));
}

/// Keys that the watch's own Deployment looks at as it stands.
pub(super) fn in_use(world: &World, id: &ObjectId, object: &TrafficWatch) -> BTreeSet<String> {
    let live = world.deployment(id).map(|sight| &sight.object);
    let ours = live.filter(|live| deployment::ownership(live, object) == Ownership::Ours);
    ours.map(|live| deployment::keys_in_use(live, object))
        .unwrap_or_default()
}

pub(super) fn oldest_first(world: &World) -> Vec<(&ObjectId, &Arc<TrafficWatch>)> {
    let mut watches: Vec<_> = world.watches().collect();
    watches.sort_by_key(|(id, object)| (created(object).unwrap_or(i64::MAX), *id));
    watches
}

pub(super) fn created(object: &TrafficWatch) -> Option<i64> {
    let time = object.metadata.creation_timestamp.as_ref()?;
    Some(time.0.as_second())
}

/// Whether our finalizer is on it; before that nothing of it may be on nodes.
pub fn has_finalizer(object: &TrafficWatch) -> bool {
    object.finalizers().iter().any(|it| it == FINALIZER)
}

/// As `weir_place` names a watch.
pub(super) fn name_of(id: &ObjectId) -> WatchName {
    WatchName {
        namespace: id.namespace.to_string(),
        name: id.name.to_string(),
    }
}
