//! Which nodes are fit for a watch. The label on the node is the state; what is kept here only makes a new process wait
//! once more.
//!
//! Three steps, each in its file: `memory` turns readings into what a node's own traffic says, with two thresholds and
//! readings in a row; here the dwell time holds changes back; `floor` keeps the least loaded nodes fit where too few
//! would be. [`crate::measure`] gives the figures, [`crate::plan`] writes what comes out.

mod floor;
mod memory;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use weir_api::place::names::{FIT, UNFIT};

use self::memory::Memory;
use crate::{
    measure::{Figure, Unknown},
    moment::Moment,
    node::NodeFacts,
    settings::Settings,
};

/// What a watch remembers of its nodes. A process that becomes leader begins with an empty one: it finds its state on
/// the nodes.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    nodes: BTreeMap<String, Memory>,
}

/// One node as it is now.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// The node.
    pub node: &'a NodeFacts,
    /// How full it is to this watch.
    pub figure: Result<Figure, Unknown>,
}

/// Whether a node takes pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It does.
    Fit,
    /// Pods are kept off it.
    Unfit,
}

/// What is decided about all nodes that the watch judges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// By node.
    pub verdicts: BTreeMap<String, Verdict>,
    /// How many of them could take the watch's pods, room apart.
    pub eligible: usize,
    /// How many are over the limit and fit all the same, since `minFitNodes` wants it. A condition says so.
    pub kept_fit: usize,
}

/// What is decided about one node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// What its label should say.
    pub state: State,
    /// Why.
    pub why: Why,
    /// Since when the label says so, or since it was found to.
    pub since: Moment,
    /// The last figure, unless it is too old; in percent.
    pub load: Option<f64>,
    /// The last figure, however old; for people only.
    pub last_load: Option<f64>,
    /// Whether it could take the watch's pods, room apart.
    pub eligible: bool,
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

impl State {
    /// The value of the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fit => FIT,
            Self::Unfit => UNFIT,
        }
    }

    /// What a label says; none if it says neither.
    pub fn of_label(value: &str) -> Option<Self> {
        match value {
            FIT => Some(Self::Fit),
            UNFIT => Some(Self::Unfit),
            _ => None,
        }
    }
}

impl Why {
    /// The reason in a word, for Events and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Measured => "Measured",
            Self::Found => "Found",
            Self::New => "New",
            Self::Unknown => "Unknown",
            Self::Dwelling => "Dwelling",
            Self::KeptFit => "KeptFit",
        }
    }
}

impl Judge {
    /// Decides about every node, and remembers it as if the labels were written. `ready` is the watch's: before it
    /// nothing runs yet, so nodes that were not measured stay unfit, all of them if need be.
    ///
    /// Changes to unfit are never nearer to the last change than the dwell time, and neither are changes to fit, but for
    /// two: a new node's first figure, and a node that is needed for `minFitNodes`. So a label goes there and back at
    /// most once in that time. The order of `nodes` does not matter.
    pub fn step<'a>(
        &mut self,
        nodes: impl IntoIterator<Item = Seen<'a>>,
        settings: &Settings,
        ready: bool,
        now: Moment,
    ) -> Outcome {
        let judged = nodes.into_iter().filter_map(|seen| {
            let is_judged = seen.node.is_judged(&settings.judged);
            is_judged.then_some((seen.node.name.as_str(), seen))
        });
        let judged: BTreeMap<&str, Seen<'_>> = judged.collect();
        self.nodes
            .retain(|name, _| judged.contains_key(name.as_str()));

        let mut places = Vec::new();
        for (name, seen) in &judged {
            let memory = match self.nodes.remove(*name) {
                Some(memory) if memory.is_of(seen.node) => memory,
                _ => Memory::found(seen.node, &settings.key, now),
            };
            let memory = self.nodes.entry((*name).to_owned()).or_insert(memory);
            memory.hear(&seen.figure, settings, now);
            places.push(floor::Place {
                name,
                eligible: settings.constraints.admit(seen.node).is_ok(),
                shown: memory.shown,
                next: memory.next(settings.min_dwell, now),
                may_change: memory.may_change(settings.min_dwell, now),
                load: memory.load,
                readings: memory.readings,
            });
        }
        let kept = if ready {
            floor::keep(&places, settings)
        } else {
            BTreeSet::new()
        };

        let mut outcome = Outcome::default();
        for place in &places {
            let Some(memory) = self.nodes.get_mut(place.name) else {
                continue;
            };
            let is_kept = kept.contains(place.name);
            memory.show(if is_kept { State::Fit } else { place.next }, now);
            outcome.eligible += usize::from(place.eligible);
            outcome.kept_fit += usize::from(is_kept);
            let why = if is_kept {
                Why::KeptFit
            } else if memory.shown == memory.own {
                memory.why
            } else {
                Why::Dwelling
            };
            outcome.verdicts.insert(
                place.name.to_owned(),
                Verdict {
                    state: memory.shown,
                    why,
                    since: memory.since,
                    load: memory.load,
                    last_load: memory.last_load,
                    eligible: place.eligible,
                },
            );
        }
        outcome
    }
}
