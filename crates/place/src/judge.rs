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
        let is_judged = |seen: &Seen<'_>| seen.node.is_judged(&settings.judged);
        let mut judged: Vec<Seen<'_>> = nodes.into_iter().filter(is_judged).collect();
        judged.sort_by(|one, other| one.node.name.cmp(&other.node.name));
        judged.dedup_by(|other, one| one.node.name == other.node.name);
        self.follow(&judged, settings, now);

        // Both are in the order of their names, and have the same ones: so nothing need be looked up.
        let mut places = Vec::with_capacity(judged.len());
        for (memory, seen) in self.nodes.values_mut().zip(&judged) {
            memory.hear(&seen.figure, settings, now);
            places.push(floor::Place {
                name: seen.node.name.as_str(),
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
        let verdicts = self.nodes.values_mut().zip(&places).map(|(memory, place)| {
            let is_kept = !kept.is_empty() && kept.contains(place.name);
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
            let verdict = Verdict {
                state: memory.shown,
                why,
                since: memory.since,
                load: memory.load,
                last_load: memory.last_load,
                eligible: place.eligible,
            };
            (place.name.to_owned(), verdict)
        });
        outcome.verdicts = verdicts.collect();
        outcome
    }

    /// Remembers these nodes and no others; `judged` is in the order of their names.
    fn follow(&mut self, judged: &[Seen<'_>], settings: &Settings, now: Moment) {
        let is_same = self.nodes.len() == judged.len()
            && (self.nodes.iter().zip(judged))
                .all(|((name, memory), seen)| *name == seen.node.name && memory.is_of(seen.node));
        if is_same {
            return;
        }
        let mut before = std::mem::take(&mut self.nodes);
        for seen in judged {
            let name = &seen.node.name;
            let known = before.remove(name);
            let known = known.filter(|memory| memory.is_of(seen.node));
            let memory = known.unwrap_or_else(|| Memory::found(seen.node, &settings.key, now));
            self.nodes.insert(name.clone(), memory);
        }
    }
}
