//! What the watches said, put together. A synchronous state machine without I/O: objects in, whether anything that matters
//! has changed out. Of Nodes and Deployments only what decisions rest on is kept; heartbeats and our own statuses do not
//! matter.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Node, discovery::v1::EndpointSlice};
use kube::ResourceExt;
use serde_json::{Value, json};
use weir_api::place::{TrafficWatch, names::TOLD_REPLICAS_ANNOTATION};
use weir_place::node::NodeFacts;
use weir_role::cluster::{ObjectId, Update};

use super::whereabouts::Whereabouts;
use crate::settings::exporters::Where;

/// Something happened to objects of one kind.
#[derive(Clone, Debug)]
pub enum Told {
    /// To a watch; none: the cluster does not know the kind.
    Watch(Option<Update<TrafficWatch>>),
    /// To a node.
    Node(Update<Node>),
    /// To a Deployment, ours or not.
    Deployment(Update<Deployment>),
    /// To endpoints of somebody's exporters.
    Exporters(Update<EndpointSlice>),
}

/// All that is known.
#[derive(Debug)]
pub struct World {
    watches: BTreeMap<ObjectId, Arc<TrafficWatch>>,
    /// Watches that are there and cannot be read, and of which nothing else is known.
    unreadable: BTreeSet<ObjectId>,
    nodes: BTreeMap<String, NodeSight>,
    deployments: BTreeMap<ObjectId, DeploymentSight>,
    exporters: Whereabouts,
    scopes: usize,
    watches_listed: HashSet<Option<String>>,
    deployments_listed: HashSet<Option<String>>,
    nodes_listed: bool,
    is_absent: bool,
}

/// What matters of a Node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSight {
    /// What decisions rest on.
    pub facts: NodeFacts,
    /// Where it is itself.
    pub address: Option<IpAddr>,
    /// The version that this was read from.
    pub version: String,
}

/// What matters of a Deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct DeploymentSight {
    /// Grows whenever somebody changes its spec.
    pub generation: i64,
    /// What our user asked for when `replicas` were last set.
    pub told: Option<String>,
    /// Its owners and the node affinity of its template, where `weir_place` looks for them.
    pub object: Value,
}

impl World {
    /// A world of which nothing is known, but where exporters are to be found. Kinds in namespaces are listed once for each
    /// of so many scopes.
    pub fn new(scopes: usize, exporters: Where) -> Self {
        Self {
            exporters: Whereabouts::new(exporters),
            watches: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            nodes: BTreeMap::new(),
            deployments: BTreeMap::new(),
            scopes,
            watches_listed: HashSet::new(),
            deployments_listed: HashSet::new(),
            nodes_listed: false,
            is_absent: false,
        }
    }

    /// Takes in what a watch said; tells whether there is anything to decide.
    pub fn hear(&mut self, told: Told) -> bool {
        match told {
            Told::Watch(None) => {
                self.is_absent = true;
                self.watches_listed.clear();
                self.unreadable.clear();
                let had_some = !self.watches.is_empty();
                self.watches.clear();
                had_some
            }
            Told::Watch(Some(update)) => self.hear_watches(update),
            Told::Node(update) => self.hear_nodes(update),
            Told::Deployment(update) => self.hear_deployments(update),
            Told::Exporters(update) => self.exporters.hear(update),
        }
    }

    /// Whether all kinds have been listed, or are known not to be there.
    pub fn is_synced(&self) -> bool {
        let watches = self.is_absent || self.watches_listed.len() >= self.scopes;
        watches
            && self.nodes_listed
            && self.deployments_listed.len() >= self.scopes
            && self.exporters.is_known()
    }

    /// Whether the cluster knows TrafficWatches at all. If it does not, nobody says what is an orphan.
    pub fn has_kind(&self) -> bool {
        !self.is_absent
    }

    /// All watches.
    pub fn watches(&self) -> impl Iterator<Item = (&ObjectId, &Arc<TrafficWatch>)> {
        self.watches.iter()
    }

    /// Watches that cannot be read: nobody knows what they claim.
    pub fn unreadable(&self) -> impl Iterator<Item = &ObjectId> {
        self.unreadable.iter()
    }

    /// All nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeSight> {
        self.nodes.values()
    }

    /// One node.
    pub fn node(&self, name: &str) -> Option<&NodeSight> {
        self.nodes.get(name)
    }

    /// Where a node's exporter is, if anybody knows.
    pub fn exporter_of(&self, node: &str) -> Option<SocketAddr> {
        self.exporters.of(node, self.nodes.get(node)?.address)
    }

    /// The Deployment of a watch's name, whoever it belongs to.
    pub fn deployment(&self, id: &ObjectId) -> Option<&DeploymentSight> {
        self.deployments.get(id)
    }

    fn hear_watches(&mut self, update: Update<TrafficWatch>) -> bool {
        self.is_absent = false;
        match update {
            Update::Set(watch) => self.put_watch(*watch),
            Update::Gone(id) => {
                let was_odd = self.unreadable.remove(&id);
                self.watches.remove(&id).is_some() || was_odd
            }
            Update::Restarted {
                namespace,
                objects,
                unreadable,
            } => {
                let is_within = within(namespace.as_deref());
                let before = self.watches.len();
                let there: HashSet<ObjectId> = objects
                    .iter()
                    .map(ObjectId::of)
                    .chain(unreadable.clone())
                    .collect();
                self.watches
                    .retain(|id, _| !is_within(id) || there.contains(id));
                self.unreadable.retain(|id| !is_within(id));
                let known = &self.watches;
                let odd = unreadable.into_iter().filter(|id| !known.contains_key(id));
                self.unreadable.extend(odd);
                let is_first = self.watches_listed.insert(namespace.clone());
                let mut changed = is_first || self.watches.len() != before;
                for watch in objects {
                    changed |= self.put_watch(watch);
                }
                changed
            }
        }
    }

    fn put_watch(&mut self, watch: TrafficWatch) -> bool {
        let id = ObjectId::of(&watch);
        self.unreadable.remove(&id);
        // All but the status and what the API server counts.
        let matters = |watch: &TrafficWatch| {
            let metadata = &watch.metadata;
            (
                metadata.uid.clone(),
                metadata.generation,
                metadata.deletion_timestamp.is_some(),
                watch.finalizers().to_vec(),
            )
        };
        let wanted = matters(&watch);
        let before = self.watches.insert(id, Arc::new(watch));
        before.is_none_or(|before| matters(&before) != wanted)
    }

    fn hear_nodes(&mut self, update: Update<Node>) -> bool {
        match update {
            Update::Set(node) => self.put_node(&node),
            Update::Gone(id) => self.nodes.remove(&*id.name).is_some(),
            Update::Restarted {
                objects,
                unreadable,
                ..
            } => {
                let is_first = !std::mem::replace(&mut self.nodes_listed, true);
                let names = objects.iter().map(ResourceExt::name_any);
                let odd = unreadable.iter().map(|id| id.name.to_string());
                let there: HashSet<String> = names.chain(odd).collect();
                let before = self.nodes.len();
                self.nodes.retain(|name, _| there.contains(name));
                let mut changed = is_first || self.nodes.len() != before;
                for node in &objects {
                    changed |= self.put_node(node);
                }
                changed
            }
        }
    }

    fn put_node(&mut self, node: &Node) -> bool {
        let sight = NodeSight {
            facts: NodeFacts::of(node),
            address: internal_ip(node),
            version: node.resource_version().unwrap_or_default(),
        };
        let is_new =
            |before: &NodeSight| before.facts != sight.facts || before.address != sight.address;
        let changed = self.nodes.get(&sight.facts.name).is_none_or(is_new);
        self.nodes.insert(sight.facts.name.clone(), sight);
        changed
    }

    fn hear_deployments(&mut self, update: Update<Deployment>) -> bool {
        match update {
            Update::Set(deployment) => self.put_deployment(&deployment),
            Update::Gone(id) => {
                let was_there = self.deployments.remove(&id).is_some();
                was_there && self.watches.contains_key(&id)
            }
            Update::Restarted {
                namespace,
                objects,
                unreadable,
            } => {
                let is_within = within(namespace.as_deref());
                let there: HashSet<ObjectId> =
                    objects.iter().map(ObjectId::of).chain(unreadable).collect();
                let before = self.deployments.len();
                self.deployments
                    .retain(|id, _| !is_within(id) || there.contains(id));
                let is_first = self.deployments_listed.insert(namespace.clone());
                let mut changed = is_first || self.deployments.len() != before;
                for deployment in &objects {
                    changed |= self.put_deployment(deployment);
                }
                changed
            }
        }
    }

    /// Only those of a watch's name matter; the others are kept, as a watch may come.
    fn put_deployment(&mut self, deployment: &Deployment) -> bool {
        let id = ObjectId::of(deployment);
        let sight = DeploymentSight::of(deployment);
        let is_new = self.deployments.get(&id) != Some(&sight);
        let matters = self.watches.contains_key(&id);
        self.deployments.insert(id, sight);
        is_new && matters
    }
}

impl DeploymentSight {
    /// What matters of this one.
    pub fn of(deployment: &Deployment) -> Self {
        let spec = deployment.spec.as_ref();
        let pods = spec.and_then(|spec| spec.template.spec.as_ref());
        let affinity = pods.and_then(|pods| pods.affinity.as_ref());
        let affinity = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
        Self {
            generation: deployment.metadata.generation.unwrap_or_default(),
            told: (deployment.annotations().get(TOLD_REPLICAS_ANNOTATION)).cloned(),
            object: json!({
                "metadata": { "ownerReferences": deployment.owner_references() },
                "spec": { "template": { "spec": { "affinity": { "nodeAffinity": affinity } } } },
            }),
        }
    }
}

fn within(namespace: Option<&str>) -> impl Fn(&ObjectId) -> bool {
    move |id| namespace.is_none_or(|namespace| *id.namespace == *namespace)
}

/// A Node without what nobody here looks at, which is most of it: thousands of them may be held at a time, when they are
/// listed and when all have been written.
pub fn lightened(mut node: Node) -> Node {
    node.metadata.managed_fields = None;
    if let Some(status) = &mut node.status {
        status.images = None;
        status.volumes_attached = None;
        status.volumes_in_use = None;
    }
    node
}

/// The first address that the node itself listens on inside the cluster.
fn internal_ip(node: &Node) -> Option<IpAddr> {
    let addresses = node.status.as_ref()?.addresses.as_ref()?;
    let mut internal = addresses.iter().filter(|it| it.type_ == "InternalIP");
    internal.find_map(|it| it.address.parse().ok())
}
