//! What every Node should carry for all watches at once, and only what changes. One apply has all of Weir's keys on a
//! node, since two applies by one manager would remove each other's. [`crate::judge`] decides each watch for itself;
//! here it is settled whose key is whose.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Taint;

use crate::judge::State;

/// One watch, as far as nodes are concerned.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Namespace and name.
    pub watch: WatchName,
    /// When it was created, in seconds since 1970; none sorts last.
    pub created: Option<i64>,
    /// The key that its spec asks for.
    pub key: String,
    /// Keys that its Deployment as it stands still looks at: those of an older `label`, too.
    pub in_use: BTreeSet<String>,
    /// What each node should show. A node that is missing here keeps what it has.
    pub wishes: BTreeMap<String, Wish>,
    /// Whether unfit nodes get the taint as well.
    pub taint: bool,
}

/// A watch's namespace and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What a watch wants of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The label with this state.
    Show(State),
    /// Nothing: the node is none of its business.
    Nothing,
}

/// What to write to one Node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeChange {
    /// All of Weir's labels there, for one forced apply; none if they are right.
    pub labels: Option<BTreeMap<String, String>>,
    /// Keys of labels that must go, whoever wrote them: what the apply leaves out goes only if Weir wrote it.
    pub remove: BTreeSet<String>,
    /// The whole list of taints, for a patch that tests the resource version; none if it is right.
    pub taints: Option<Vec<Taint>>,
}
