//! One look at everything: decide, then write in an order in which at no time too few nodes are fit, no Deployment looks at
//! a label that is not there, and no watch leaves before its keys have. What cannot be written is decided again soon.
//! Events and metrics are in `telling`.

mod telling;

use std::collections::BTreeMap;

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use jiff::Timestamp;
use weir_api::place::{TrafficWatchStatus, names::BANDWIDTH_PERCENT_ANNOTATION};
use weir_place::{
    condition::Said,
    moment::Moment,
    plan::{self, NodeChange, keys::Keys},
    status::is_worth_writing,
};
use weir_role::cluster::{ObjectId, Update};

use self::telling::tell;
use super::{
    context::Context,
    deployments::{self, Around, Keeping},
    hands::WriteError,
    mind::{Decision, Judged, Mind, View, has_finalizer},
    moves, status,
    thinking::think,
    world::{Told, World, lightened},
};

/// Writes at a time.
const WRITES: usize = 16;

/// What came of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Nothing failed; else it is to be tried again.
    pub all_well: bool,
    /// What was written lets something else begin.
    pub is_news: bool,
}

/// Looks once.
pub async fn look(context: &Context, world: &mut World, mind: &mut Mind) -> Looked {
    let now = context.now();
    let decision = think(|| mind.decide(world, context.options, now));
    let (mut all_well, is_news) = add_finalizers(context, world, &decision).await;
    // Nobody says whose a key is where the kind is not installed.
    if world.has_kind() {
        all_well &= write_nodes(context, world, mind, &decision).await;
    }
    all_well &= release(context, world, &decision).await;
    let placed = keep_deployments(context, world, mind, &decision).await;
    all_well &= placed.values().all(Result::is_ok);
    all_well &= move_pods(context, world, mind, &decision, &placed).await;
    if !decision.views.is_empty() {
        mind.left_over.look(&context.client, now).await;
    }
    all_well &= write_statuses(context, world, mind, &decision, placed).await;
    tell(context, &decision);
    Looked { all_well, is_news }
}

/// Whether all went well, and whether any was added: its watch may be judged then.
async fn add_finalizers(context: &Context, world: &mut World, decision: &Decision) -> (bool, bool) {
    let bare = (decision.views.iter()).filter(|view| !has_finalizer(&view.object));
    let mut writes = Vec::new();
    for view in bare {
        writes.push(context.hands.set_finalizer(&view.object, true).boxed());
    }
    let outcomes = together(writes).await;
    let (mut all_well, mut is_news) = (true, false);
    for outcome in outcomes {
        match outcome {
            Ok(object) => {
                is_news |= world.hear(Told::Watch(Some(Update::Set(Box::new(object)))));
            }
            Err(error) => all_well &= is_no_trouble(context, &error),
        }
    }
    (all_well, is_news)
}

/// Nodes that become fit come first, and if one of them could not be written the others wait.
async fn write_nodes(
    context: &Context,
    world: &mut World,
    mind: &mut Mind,
    decision: &Decision,
) -> bool {
    let changes = think(|| {
        plan::changes(
            world.nodes().map(|node| &node.facts),
            &decision.claims,
            &decision.annotations,
            context.options,
        )
    });
    let (first, then): (Vec<_>, Vec<_>) =
        (plan::in_order(&changes).into_iter()).partition(|(_, change)| change.frees);
    let all_well = write_some(context, world, mind, first).await;
    all_well && write_some(context, world, mind, then).await
}

async fn write_some(
    context: &Context,
    world: &mut World,
    mind: &mut Mind,
    changes: Vec<(&str, &NodeChange)>,
) -> bool {
    let nodes = &*world;
    let mut writes = Vec::new();
    for (name, change) in changes {
        let Some(node) = nodes.node(name) else {
            continue;
        };
        let there = node.facts.annotations.get(BANDWIDTH_PERCENT_ANNOTATION);
        let is_annotated = is_annotation_new(there, change);
        let write = async move {
            let outcome = context.hands.change_node(node, change).await;
            let outcome = outcome.map(|node| node.map(lightened));
            (name, is_annotated, outcome)
        };
        writes.push(write.boxed());
    }
    let outcomes = together(writes).await;
    let mut all_well = true;
    for (name, is_annotated, outcome) in outcomes {
        match outcome {
            Ok(Some(node)) => {
                if is_annotated {
                    mind.annotated.insert(name.to_owned(), context.now());
                }
                world.hear(Told::Node(Update::Set(Box::new(node))));
            }
            Ok(None) => {}
            Err(error) => all_well &= is_no_trouble(context, &error),
        }
    }
    all_well
}

fn is_annotation_new(there: Option<&String>, change: &NodeChange) -> bool {
    let wanted = (change.apply.as_ref())
        .and_then(|carried| carried.annotations.get(BANDWIDTH_PERCENT_ANNOTATION));
    wanted.is_some() && wanted != there
}

/// Lets go of watches that are being deleted, once their keys are off all nodes.
async fn release(context: &Context, world: &mut World, decision: &Decision) -> bool {
    let mut all_well = true;
    for leaving in &decision.leaving {
        let is_released = leaving.keys.iter().all(|key| {
            let facts = world.nodes().map(|node| &node.facts);
            plan::is_released(facts, &decision.claims, key)
        });
        if !is_released {
            all_well = false;
            continue;
        }
        match context.hands.set_finalizer(&leaving.object, false).await {
            // The watch says when it is gone. Others may have finalizers of their own on it.
            Ok(object) if object.metadata.finalizers.iter().flatten().next().is_some() => {
                world.hear(Told::Watch(Some(Update::Set(Box::new(object)))));
            }
            Ok(_) => {
                world.hear(Told::Watch(Some(Update::Gone(leaving.id.clone()))));
            }
            Err(error) => all_well &= is_no_trouble(context, &error),
        }
        context.metrics.place.forget(&leaving.id);
    }
    all_well
}

type Placed = BTreeMap<ObjectId, Result<Option<Said>, WriteError>>;

async fn keep_deployments(
    context: &Context,
    world: &World,
    mind: &mut Mind,
    decision: &Decision,
) -> Placed {
    let keys = Keys::of(&decision.claims);
    let mut works = Vec::new();
    for (view, claim) in decision.views.iter().zip(&decision.claims) {
        let Some(judged) = &view.judged else {
            continue;
        };
        let facts = world.nodes().map(|node| &node.facts);
        let around = Around {
            sight: world.deployment(&view.id),
            lost_to: keys.lost_to(claim),
            is_shown: plan::is_shown_everywhere(facts, claim),
        };
        let keeping = mind.thought(&view.id).map(|it| it.keeping.clone());
        let keeping = keeping.unwrap_or_default();
        works.push(keep_one(context, view, judged, around, keeping).boxed());
    }
    let outcomes = together(works).await;
    let mut placed = Placed::new();
    for (id, keeping, outcome) in outcomes {
        if let Some(thought) = mind.thought(&id) {
            thought.keeping = keeping;
        }
        if let Err(error) = &outcome {
            is_no_trouble(context, error);
        }
        placed.insert(id, outcome);
    }
    placed
}

async fn keep_one(
    context: &Context,
    view: &View,
    judged: &Judged,
    around: Around<'_>,
    mut keeping: Keeping,
) -> (ObjectId, Keeping, Result<Option<Said>, WriteError>) {
    let outcome = deployments::keep(context, view, judged, around, &mut keeping).await;
    (view.id.clone(), keeping, outcome)
}

/// Only where the Deployment is as it should be: else a pod that is moved could come back.
async fn move_pods(
    context: &Context,
    world: &World,
    mind: &mut Mind,
    decision: &Decision,
    placed: &Placed,
) -> bool {
    let mut all_well = true;
    for view in &decision.views {
        let is_placed = matches!(placed.get(&view.id), Some(Ok(None)));
        let (Some(judged), Some(thought)) = (&view.judged, mind.thought(&view.id)) else {
            continue;
        };
        if is_placed {
            let moved = moves::move_pods(context, world, view, judged, &mut thought.moving).await;
            if let Err(error) = moved {
                all_well &= is_no_trouble(context, &error);
            }
        }
    }
    all_well
}

async fn write_statuses(
    context: &Context,
    world: &mut World,
    mind: &mut Mind,
    decision: &Decision,
    placed: Placed,
) -> bool {
    let moment = context.now();
    let mut writes = Vec::new();
    for (view, status) in think(|| worth_writing(mind, decision, placed, moment)) {
        let write = async move {
            let outcome = context.hands.store(&view.object, status).await;
            (&view.id, outcome)
        };
        writes.push(write.boxed());
    }
    let outcomes = together(writes).await;
    let mut all_well = true;
    for (id, outcome) in outcomes {
        match outcome {
            Ok(object) => {
                if let Some(thought) = mind.thought(id) {
                    thought.written = Some(moment);
                }
                world.hear(Told::Watch(Some(Update::Set(Box::new(object)))));
            }
            Err(error) => all_well &= is_no_trouble(context, &error),
        }
    }
    all_well
}

/// The statuses that are to be written.
fn worth_writing<'a>(
    mind: &mut Mind,
    decision: &'a Decision,
    mut placed: Placed,
    moment: Moment,
) -> Vec<(&'a View, TrafficWatchStatus)> {
    let now = Timestamp::now();
    let mut all = Vec::new();
    for view in decision
        .views
        .iter()
        .filter(|view| has_finalizer(&view.object))
    {
        // What could not be written says nothing yet.
        let said = match placed.remove(&view.id) {
            Some(Err(_)) => continue,
            Some(Ok(said)) => said,
            None => None,
        };
        let there = view.object.status.clone().unwrap_or_default();
        let wanted = status::next(view, said, mind.left_over.said(), now);
        let written = mind.thought(&view.id).and_then(|thought| thought.written);
        let age = written.map(|at| moment.since(at));
        if is_worth_writing(&there, &wanted, age) {
            all.push((view, wanted));
        }
    }
    all
}

/// Some of them at a time.
async fn together<T>(writes: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    stream::iter(writes)
        .buffer_unordered(WRITES)
        .collect()
        .await
}

/// Logs and counts what went wrong. What merely changed meanwhile comes again with its watch.
fn is_no_trouble(context: &Context, error: &WriteError) -> bool {
    match error {
        WriteError::Gone(_) => true,
        WriteError::Changed(_) => {
            tracing::debug!(%error, "is looked at again");
            false
        }
        _ => {
            context.metrics.reconcile_failed(error.reason());
            let error: &dyn std::error::Error = error;
            tracing::warn!(error, "something could not be written; it is tried again");
            false
        }
    }
}
