//! What every Node should carry for all watches at once, and only what changes. One apply has all of Weir's keys on a
//! node, since two applies by one manager would remove each other's. [`crate::judge`] decides each watch for itself;
//! [`keys`] settles whose key is whose.
//!
//! A changed `label` needs an order: new labels, then the Deployment, then the old labels go. [`is_shown_everywhere`]
//! says when the Deployment may follow; its old key stays in [`Claim::in_use`] until nothing looks at it any more.

pub mod keys;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Taint;
use weir_api::place::names::{
    BANDWIDTH_PERCENT_ANNOTATION, TAINT_EFFECT, UNFIT, label_of_unfit_key,
};

use self::keys::Keys;
use crate::{judge::State, node::NodeFacts};

pub use self::keys::WatchName;

/// One watch, as far as nodes are concerned. Every watch that exists and is not being deleted has one, one that was
/// refused too: a key without a claim goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Namespace and name.
    pub watch: WatchName,
    /// When it was created, in seconds since 1970; none counts as just now.
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

/// What a watch wants of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The label with this state.
    Show(State),
    /// Nothing: the node is none of its business.
    Nothing,
}

/// What else is carried, and how far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether the operator may taint nodes. If not, its taints go.
    pub allow_taints: bool,
    /// Whether it writes the annotation with a node's load. If not, the annotation goes.
    pub annotate: bool,
}

/// What to write to one Node. Empty: nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeChange {
    /// All that Weir has there, for one forced apply; none if it is right.
    pub apply: Option<Carried>,
    /// Labels that must go, whoever wrote them: what an apply leaves out goes only if Weir wrote it.
    pub remove_labels: BTreeSet<String>,
    /// The whole list of taints, for a patch that tests the resource version; none if it is right.
    pub taints: Option<Vec<Taint>>,
    /// Whether a node becomes fit by it. Those are written first, so that at no time too few are.
    pub frees: bool,
}

/// What Weir has on a Node, apart from taints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

/// What changes on each node, by name; nodes that are right are not there.
///
/// `loads` are the values of the annotation that [`crate::annotation`] gives. Of a node that is missing there it goes.
pub fn changes<'a>(
    nodes: impl IntoIterator<Item = &'a NodeFacts>,
    claims: &[Claim],
    loads: &BTreeMap<String, String>,
    options: Options,
) -> BTreeMap<String, NodeChange> {
    let keys = Keys::of(claims);
    let changed = nodes.into_iter().filter_map(|node| {
        let load = loads.get(&node.name).filter(|_| options.annotate);
        let change = change(node, &keys, load, options);
        (change != NodeChange::default()).then(|| (node.name.clone(), change))
    });
    changed.collect()
}

/// In which order to write: nodes that become fit first.
pub fn in_order(changes: &BTreeMap<String, NodeChange>) -> Vec<(&str, &NodeChange)> {
    let mut changes: Vec<_> =
        (changes.iter().map(|(name, change)| (name.as_str(), change))).collect();
    changes.sort_by_key(|(name, change)| (!change.frees, *name));
    changes
}

/// Whether every node that a watch judges has its label, so that a Deployment which looks at it may be written.
pub fn is_shown_everywhere<'a>(
    nodes: impl IntoIterator<Item = &'a NodeFacts>,
    claim: &Claim,
) -> bool {
    let is_shown = |node: &NodeFacts| {
        let label = node.labels.get(&claim.key);
        label.is_some_and(|value| State::of_label(value).is_some())
    };
    let is_wanted = |node: &NodeFacts| matches!(claim.wishes.get(&node.name), Some(Wish::Show(_)));
    nodes
        .into_iter()
        .all(|node| !is_wanted(node) || is_shown(node))
}

/// Whether nothing of a watch that is being deleted is left, so that its finalizer may go: its key is on no node, or
/// another watch has taken it over. `claims` are those of the watches that stay.
pub fn is_released<'a>(
    nodes: impl IntoIterator<Item = &'a NodeFacts>,
    claims: &[Claim],
    key: &str,
) -> bool {
    let is_taken_over = Keys::of(claims).held().any(|(held, _)| held == key);
    let carries = |node: &NodeFacts| {
        node.labels.contains_key(key) || node.taints.iter().any(|taint| taint.key == key)
    };
    is_taken_over || !nodes.into_iter().any(carries)
}

fn change(
    node: &NodeFacts,
    keys: &Keys<'_>,
    load: Option<&String>,
    options: Options,
) -> NodeChange {
    if is_right(node, keys, load, options) {
        return NodeChange::default();
    }
    let there = carried(node);
    let wanted = Carried {
        labels: labels(node, keys),
        annotations: load
            .map(|load| (BANDWIDTH_PERCENT_ANNOTATION.to_owned(), load.clone()))
            .into_iter()
            .collect(),
    };
    let taints = taints(node, keys, &wanted.labels, options);
    let gone = |key: &&String| !wanted.labels.contains_key(*key);
    let becomes_fit = |(key, value): (&String, &String)| {
        let is = State::of_label(value);
        let was = there
            .labels
            .get(key)
            .and_then(|value| State::of_label(value));
        is == Some(State::Fit) && was == Some(State::Unfit)
    };
    NodeChange {
        remove_labels: there.labels.keys().filter(gone).cloned().collect(),
        taints: (taints != node.taints).then_some(taints),
        frees: wanted.labels.iter().any(becomes_fit),
        apply: (wanted != there).then_some(wanted),
    }
}

/// Whether a node carries what it should already, as nearly all do nearly always. Found without making anything: there
/// may be a label for each of 50 watches on each of 5,000 nodes.
fn is_right(node: &NodeFacts, keys: &Keys<'_>, load: Option<&String>, options: Options) -> bool {
    let is_ours = |key: &str| label_of_unfit_key(key).is_some();
    let mut carried = 0;
    let mut is_tainted = false;
    for (key, claim) in keys.held() {
        let there = node.labels.get(key);
        let is_as_wanted = match claim.wishes.get(&node.name) {
            Some(Wish::Show(state)) => there.is_some_and(|value| value == state.as_str()),
            Some(Wish::Nothing) => there.is_none(),
            None => true,
        };
        if !is_as_wanted {
            return false;
        }
        carried += usize::from(there.is_some());
        is_tainted |= options.allow_taints && claim.taint;
    }
    let labels = node.labels.keys().filter(|key| is_ours(key)).count();
    let taints = node.taints.iter().any(|taint| is_ours(&taint.key));
    labels == carried
        && node.annotations.get(BANDWIDTH_PERCENT_ANNOTATION) == load
        // Taints have an order and an effect: whoever has any is looked at closely.
        && !taints
        && !is_tainted
}

/// What a node carries of ours.
fn carried(node: &NodeFacts) -> Carried {
    let ours = |(key, _): &(&String, &String)| label_of_unfit_key(key).is_some();
    let own = |(key, value): (&String, &String)| (key.clone(), value.clone());
    let annotation = node.annotations.get_key_value(BANDWIDTH_PERCENT_ANNOTATION);
    Carried {
        labels: node.labels.iter().filter(ours).map(own).collect(),
        annotations: annotation.map(own).into_iter().collect(),
    }
}

fn labels(node: &NodeFacts, keys: &Keys<'_>) -> BTreeMap<String, String> {
    let label = |(key, claim): (&str, &Claim)| {
        let value = match claim.wishes.get(&node.name) {
            Some(Wish::Show(state)) => Some(state.as_str().to_owned()),
            Some(Wish::Nothing) => None,
            None => node.labels.get(key).cloned(),
        };
        value.map(|value| (key.to_owned(), value))
    };
    keys.held().filter_map(label).collect()
}

/// The taints as they should be: those of others as they are, ours where they are wanted and nowhere else.
fn taints(
    node: &NodeFacts,
    keys: &Keys<'_>,
    labels: &BTreeMap<String, String>,
    options: Options,
) -> Vec<Taint> {
    let is_wanted = |key: &str, claim: &Claim| {
        options.allow_taints && claim.taint && labels.get(key).is_some_and(|value| value == UNFIT)
    };
    let mut wanted: BTreeSet<&str> = (keys.held())
        .filter(|(key, claim)| is_wanted(key, claim))
        .map(|(key, _)| key)
        .collect();
    let mut taints = node.taints.clone();
    taints.retain(|taint| {
        let is_right = taint.effect == TAINT_EFFECT && taint.value.as_deref() == Some(UNFIT);
        label_of_unfit_key(&taint.key).is_none() || (is_right && wanted.remove(taint.key.as_str()))
    });
    taints.extend(wanted.into_iter().map(|key| Taint {
        key: key.to_owned(),
        value: Some(UNFIT.to_owned()),
        effect: TAINT_EFFECT.to_owned(),
        time_added: None,
    }));
    taints
}
