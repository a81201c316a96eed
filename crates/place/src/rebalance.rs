//! Which running pods to move off nodes that stay unfit, as a function of what is: within the limits of `rebalance`, and
//! only where they fit elsewhere. Moving them is up to the caller, by the eviction API alone, which honours
//! PodDisruptionBudgets; in `dryRun` it only says so.
//!
//! Fits means: selector, required node affinity, taints, requests of cpu and memory, and room for one more pod. See
//! [`crate::scheduling`] for what is not looked at.

pub mod pods;
#[cfg(test)]
mod tests;

use std::{cmp::Ordering, collections::BTreeMap};

use weir_api::place::RebalanceMode;

use crate::{
    judge::{Outcome, State, Verdict, Why},
    moment::Moment,
    node::NodeFacts,
    scheduling::{Constraints, Resources},
    settings::Settings,
};

/// A pod of the watch's own Deployment, as [`pods::own`] finds them.
#[derive(Clone, Debug, PartialEq)]
pub struct PodFacts {
    /// Its name.
    pub name: String,
    /// The node it was given to; none yet.
    pub node: Option<String>,
    /// When it was created, in seconds since 1970.
    pub created: i64,
    /// Whether it serves.
    pub ready: bool,
    /// Whether it is on its way out.
    pub ending: bool,
    /// Where it may run.
    pub constraints: Constraints,
    /// What it asks for.
    pub requests: Resources,
}

/// What there is to decide by.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// All nodes.
    pub nodes: &'a [NodeFacts],
    /// What all pods on a node ask for in sum, as [`pods::taken`] says; a node that is missing is taken for full.
    pub taken: &'a BTreeMap<String, Resources>,
    /// What was decided about the nodes.
    pub outcome: &'a Outcome,
    /// The pods of the Deployment.
    pub pods: &'a [PodFacts],
    /// How many there should be.
    pub replicas: usize,
    /// When the last pod was moved; the caller begins with its own start, as nobody knows what was before.
    pub last_move: Moment,
}

/// A pod that should move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The pod.
    pub pod: String,
    /// Off this node.
    pub from: String,
    /// A node that could take it; the scheduler may choose another.
    pub could_go_to: String,
}

/// The pods to move now.
///
/// Whatever is missing or on its way out in the Deployment counts as on the move, whoever moved it: so nothing is moved
/// in the middle of a rollout, or while a pod that was moved waits for a place.
pub fn moves(scene: &Scene<'_>, settings: &Settings, now: Moment) -> Vec<Move> {
    let limits = &settings.rebalance;
    let is_off = limits.mode == RebalanceMode::Never;
    if is_off || now.since(scene.last_move) < limits.cooldown {
        return Vec::new();
    }
    let serving = scene.pods.iter().filter(|pod| pod.ready && !pod.ending);
    let missing = scene.replicas.saturating_sub(serving.count());
    let ending = scene.pods.iter().filter(|pod| pod.ending).count();
    let mut left = limits.max_total.saturating_sub(missing.max(ending));

    let mut room = rooms(scene);
    let mut moves = Vec::new();
    for from in sources(scene, settings, now) {
        let on_it = || {
            let is_here = |pod: &&PodFacts| pod.node.as_deref() == Some(from);
            scene.pods.iter().filter(is_here)
        };
        let ending = on_it().filter(|pod| pod.ending).count();
        let mut here = limits.max_per_node.saturating_sub(ending).min(left);
        let mut candidates: Vec<&PodFacts> =
            on_it().filter(|pod| pod.ready && !pod.ending).collect();
        // The youngest has the least to lose.
        candidates.sort_by(|one, other| {
            let by_age = other.created.cmp(&one.created);
            by_age.then_with(|| one.name.cmp(&other.name))
        });
        for pod in candidates {
            if here == 0 {
                break;
            }
            if let Some(to) = take_room(&mut room, pod) {
                here -= 1;
                left -= 1;
                moves.push(Move {
                    pod: pod.name.clone(),
                    from: from.to_owned(),
                    could_go_to: to.to_owned(),
                });
            }
        }
    }
    moves
}

/// Nodes that have been unfit for long enough by their own figures, the most loaded first. One without figures is not
/// emptied: nobody knows that it is full.
fn sources<'a>(scene: &Scene<'a>, settings: &Settings, now: Moment) -> Vec<&'a str> {
    let stays_unfit = |verdict: &Verdict| {
        verdict.state == State::Unfit
            && verdict.load.is_some_and(|load| load > settings.max_percent)
            && now.since(verdict.since) >= settings.rebalance.after
    };
    let verdicts = scene.outcome.verdicts.iter();
    let mut sources: Vec<(&str, f64)> = verdicts
        .filter(|(_, verdict)| stays_unfit(verdict))
        .map(|(name, verdict)| (name.as_str(), verdict.load.unwrap_or_default()))
        .collect();
    sources.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(other.0)));
    sources.into_iter().map(|(name, _)| name).collect()
}

/// A node that pods could go to.
struct Room<'a> {
    node: &'a NodeFacts,
    load: Option<f64>,
    free: Resources,
}

/// The nodes that are fit by themselves, the least loaded first. Those that are only kept fit are full as well: to move
/// a pod there helps nobody.
fn rooms<'a>(scene: &Scene<'a>) -> Vec<Room<'a>> {
    let mut rooms: Vec<Room<'a>> = (scene.nodes.iter())
        .filter_map(|node| {
            let verdict = scene.outcome.verdicts.get(&node.name)?;
            let is_fit = verdict.state == State::Fit
                && matches!(verdict.why, Why::Measured | Why::Found | Why::Unknown);
            let taken = scene.taken.get(&node.name)?;
            is_fit.then(|| Room {
                node,
                load: verdict.load,
                free: node.allocatable.minus(*taken),
            })
        })
        .collect();
    let by_load = |one: &Room<'_>, other: &Room<'_>| match (one.load, other.load) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        (one, other) => other.is_some().cmp(&one.is_some()),
    };
    rooms.sort_by(|one, other| -> Ordering {
        by_load(one, other).then_with(|| one.node.name.cmp(&other.node.name))
    });
    rooms
}

/// Takes room for this pod on the first node that has it.
fn take_room<'a>(rooms: &mut [Room<'a>], pod: &PodFacts) -> Option<&'a str> {
    let has_room = |room: &&mut Room<'_>| {
        pod.constraints.admit(room.node).is_ok() && pod.requests.fit_into(room.free)
    };
    let room = rooms.iter_mut().find(has_room)?;
    room.free = room.free.minus(pod.requests);
    Some(&room.node.name)
}
