//! Which nodes are fit for a watch. The label on the node is the state; what is kept here only makes a new process wait
//! once more. [`crate::measure`] gives the figures, [`crate::plan`] writes what comes out.

use std::collections::BTreeMap;

use crate::moment::Moment;

/// What a watch remembers of its nodes.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    nodes: BTreeMap<String, Memory>,
}

/// What is remembered of one node.
#[derive(Clone, Debug, PartialEq)]
struct Memory {
    uid: String,
    /// What its own readings say.
    own: State,
    /// What its label says.
    shown: State,
    /// When the label last changed, or was found.
    since: Moment,
}

/// Whether a node takes pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It does.
    Fit,
    /// Pods are kept off it.
    Unfit,
}

/// What is decided about one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What its label should say.
    pub state: State,
    /// Why.
    pub why: Why,
    /// Since when the label says so, or was found to.
    pub since: Moment,
}

/// Why a node is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// Its readings say so.
    Measured,
    /// Its label said so when it was found, and readings have not said otherwise yet.
    Found,
    /// It is new and was not measured yet.
    New,
    /// It has no figures, and `onUnknown` says so.
    Unknown,
    /// It is too soon to change it.
    Dwelling,
    /// It is over the limit, but `minFitNodes` wants it: it is among the least loaded.
    KeptFit,
}
