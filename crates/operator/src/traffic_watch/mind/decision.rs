//! What comes out of a look at everything, as values: what nodes and watches should be told. [`super::Mind`] fills it in,
//! and the rest of the controller carries it out.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use weir_api::{finding::Finding, place::TrafficWatch};
use weir_place::{
    condition::Said,
    judge::{Outcome, State, Why},
    plan::Claim,
    settings::Settings,
    status,
};
use weir_role::cluster::ObjectId;

/// What is to be.
#[derive(Debug, Default)]
pub struct Decision {
    /// Watches to look after.
    pub views: Vec<View>,
    /// Watches that are being deleted and wait for us.
    pub leaving: Vec<Leaving>,
    /// What they claim on nodes.
    pub claims: Vec<Claim>,
    /// What the annotation of each node should say.
    pub annotations: BTreeMap<String, String>,
    /// Load by node and interface, as a share of one.
    pub utilization: BTreeMap<(String, String), f64>,
}

/// One watch as it is.
#[derive(Debug)]
pub struct View {
    /// Which.
    pub id: ObjectId,
    /// As it was read.
    pub object: Arc<TrafficWatch>,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
    /// What was decided; none if it was refused, or has no finalizer yet.
    pub judged: Option<Judged>,
}

/// What was decided for one watch.
#[derive(Debug)]
pub struct Judged {
    /// What it asks for.
    pub settings: Arc<Settings>,
    /// Whether it may begin.
    pub ready: bool,
    /// What its status says of nodes.
    pub nodes: status::Nodes,
    /// Whether all nodes give figures.
    pub measured: Said,
    /// Whether enough of them are fit.
    pub enough_fit: Said,
    /// Whether it has begun.
    pub begun: Said,
    /// About every node, for those whose pods are to be moved.
    pub outcome: Option<Outcome>,
    /// Nodes that became fit or unfit.
    pub turned: Vec<Turned>,
}

/// A node that became fit or unfit.
#[derive(Clone, Debug, PartialEq)]
pub struct Turned {
    /// Its name.
    pub node: String,
    /// What it is now.
    pub state: State,
    /// Why.
    pub why: Why,
    /// Its load in percent.
    pub load: Option<f64>,
}

/// A watch that is being deleted.
#[derive(Debug)]
pub struct Leaving {
    /// Which.
    pub id: ObjectId,
    /// As it was read.
    pub object: Arc<TrafficWatch>,
    /// Keys that must be off all nodes before it may go.
    pub keys: BTreeSet<String>,
}
