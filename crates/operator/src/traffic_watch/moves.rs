//! Moves pods of a watch's own Deployment off nodes that stay full, by the eviction API alone. `weir_place` says which; here
//! is read what it decides by, and only when a node has been unfit for long enough: nobody watches all pods of a cluster
//! for something that happens every few minutes. What is read is bounded: of the nodes that could take a pod only the least
//! loaded are looked at.

use std::{collections::BTreeMap, time::Duration};

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};
use weir_api::place::RebalanceMode;
use weir_place::{
    deployment::{self, Ownership},
    judge::{Outcome, State},
    moment::Moment,
    node::NodeFacts,
    rebalance::{self, Move, Scene, pods},
    scheduling::Resources,
};

use super::{
    context::Context,
    hands::WriteError,
    mind::{Judged, View},
    world::{DeploymentSight, World},
};
use crate::events::NoteKind;

/// From one look at pods to the next, if none was moved; sooner where the watch's `cooldown` is shorter, within reason.
const PAUSE: Duration = Duration::from_secs(15);
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
/// Nodes that could take a pod and are looked at, the least loaded first.
const ROOMS: usize = 20;
/// Questions for their pods at a time.
const QUESTIONS: usize = 4;

/// What this process remembers of a watch's moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moving {
    /// When the last pod was moved; a process begins with its own start, as nobody knows what was before.
    last: Option<Moment>,
    /// When pods are looked at again.
    next: Moment,
}

/// Moves what is to be moved now.
pub async fn move_pods(
    context: &Context,
    world: &World,
    view: &View,
    judged: &Judged,
    moving: &mut Moving,
) -> Result<(), WriteError> {
    let limits = &judged.settings.rebalance;
    let now = context.now();
    let last = *moving.last.get_or_insert(now);
    let Some(outcome) = judged.outcome.as_ref().filter(|_| judged.ready) else {
        return Ok(());
    };
    let stays_unfit = outcome
        .verdicts
        .values()
        .any(|verdict| verdict.state == State::Unfit && now.since(verdict.since) >= limits.after);
    if !stays_unfit || now < moving.next || now.since(last) < limits.cooldown {
        return Ok(());
    }
    moving.next = now.plus(limits.cooldown.clamp(SHORTEST_PAUSE, PAUSE));
    for step in plan(context, world, view, judged, outcome, last).await? {
        moving.last = Some(now);
        if limits.mode == RebalanceMode::DryRun {
            context.metrics.place.evicted("dry_run");
            let text = sentence(&step, "would be moved");
            context.tell(
                &view.object,
                NoteKind::Normal,
                "PodWouldMove",
                "Evict",
                text,
            );
            continue;
        }
        evict(context, view, &step).await?;
    }
    Ok(())
}

/// Which pods to move.
async fn plan(
    context: &Context,
    world: &World,
    view: &View,
    judged: &Judged,
    outcome: &Outcome,
    last_move: Moment,
) -> Result<Vec<Move>, WriteError> {
    let live = match context.hands.read_deployment(&view.id).await {
        Err(WriteError::Gone(_)) => return Ok(Vec::new()),
        live => live?,
    };
    if !keeps_off(&live, view, judged) {
        return Ok(Vec::new());
    }
    let spec = live.spec.unwrap_or_default();
    let namespace = &view.id.namespace;
    let all: Vec<Pod> = (context.hands)
        .list_selected(namespace, &spec.selector)
        .await?;
    let sets: Vec<ReplicaSet> = (context.hands)
        .list_selected(namespace, &spec.selector)
        .await?;
    let uid = live.metadata.uid.unwrap_or_default();
    let own = pods::own(&all, &sets, &uid);
    let is_on_unfit = |node: &String| {
        let verdict = outcome.verdicts.get(node);
        verdict.is_some_and(|verdict| verdict.state == State::Unfit)
    };
    if !own
        .iter()
        .any(|pod| pod.node.as_ref().is_some_and(is_on_unfit))
    {
        return Ok(Vec::new());
    }
    let rooms = rooms(world, outcome);
    let taken = taken(context, &rooms).await?;
    let scene = Scene {
        nodes: &rooms,
        taken: &taken,
        outcome,
        pods: &own,
        replicas: usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or_default(),
        last_move,
    };
    Ok(rebalance::moves(&scene, &judged.settings, context.now()))
}

/// Whether the Deployment is ours and looks at the label: else a pod that is moved could come back.
fn keeps_off(live: &Deployment, view: &View, judged: &Judged) -> bool {
    let sight = DeploymentSight::of(live);
    deployment::ownership(&sight.object, &view.object) == Ownership::Ours
        && deployment::keys_in_use(&sight.object, &view.object).contains(&judged.settings.key)
}

/// The least loaded nodes that are fit.
fn rooms(world: &World, outcome: &Outcome) -> Vec<NodeFacts> {
    let mut fit: Vec<(f64, &str)> = (outcome.verdicts.iter())
        .filter(|(_, verdict)| verdict.state == State::Fit)
        .map(|(name, verdict)| (verdict.load.unwrap_or(f64::INFINITY), name.as_str()))
        .collect();
    fit.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(other.1)));
    fit.truncate(ROOMS);
    let facts = fit.into_iter().filter_map(|(_, name)| world.node(name));
    facts.map(|node| node.facts.clone()).collect()
}

async fn taken(
    context: &Context,
    rooms: &[NodeFacts],
) -> Result<BTreeMap<String, Resources>, WriteError> {
    let mut questions: Vec<BoxFuture<'_, _>> = Vec::new();
    for node in rooms {
        questions.push(context.hands.list_on_node(&node.name).boxed());
    }
    let answers: Vec<Result<Vec<Pod>, WriteError>> = stream::iter(questions)
        .buffer_unordered(QUESTIONS)
        .collect()
        .await;
    let mut all = Vec::new();
    for answer in answers {
        all.extend(answer?);
    }
    let names = rooms.iter().map(|node| node.name.as_str());
    Ok(pods::taken(&all, names))
}

async fn evict(context: &Context, view: &View, step: &Move) -> Result<(), WriteError> {
    let place = &context.metrics.place;
    let outcome = context.hands.evict(&view.id.namespace, &step.pod).await;
    let (kind, reason, text) = match outcome {
        Ok(()) => {
            place.evicted("evicted");
            (NoteKind::Normal, "PodMoved", sentence(step, "is moved"))
        }
        Err(WriteError::Gone(_)) => return Ok(()),
        // Most often a PodDisruptionBudget, which is there for that.
        Err(WriteError::Refused { message, .. }) => {
            place.evicted("refused");
            let text = format!("{} is not moved off {}: {message}", step.pod, step.from);
            (NoteKind::Warning, "EvictionRefused", text)
        }
        Err(error) => {
            place.evicted("failed");
            return Err(error);
        }
    };
    context.tell(&view.object, kind, reason, "Evict", text);
    Ok(())
}

fn sentence(step: &Move, what: &str) -> String {
    let Move {
        pod,
        from,
        could_go_to,
    } = step;
    format!("{pod} {what} off {from}, which stays full; {could_go_to} could take it")
}
