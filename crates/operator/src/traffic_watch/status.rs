//! The status of a watch: what is written is computed here, from what was decided and what became of its Deployment.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use weir_api::{
    finding,
    place::{TrafficWatchStatus, names::ConditionType},
};
use weir_place::condition::Said;

use super::mind::{Judged, View};

/// What the status should say. A watch that was refused keeps its figures: they are old, and say when they were taken.
/// `left_over` is told beside it.
pub fn next(
    view: &View,
    placed: Option<Said>,
    left_over: Option<&Said>,
    now: Timestamp,
) -> TrafficWatchStatus {
    let there = view.object.status.clone().unwrap_or_default();
    // Kubernetes keeps whole seconds.
    let now = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
    let generation = view.object.metadata.generation;
    let mut wanted = finding::conditions(&view.findings, generation, &now);
    let said = match &view.judged {
        Some(judged) => {
            let placed = placed.unwrap_or_else(|| judged.enough_fit.clone());
            vec![judged.measured.clone(), placed, judged.begun.clone()]
        }
        None => vec![Said {
            type_: ConditionType::Placed,
            holds: false,
            reason: "NotAccepted",
            message: "nothing is done until what Accepted says is mended".to_owned(),
        }],
    };
    let said = said.into_iter().chain(left_over.cloned());
    wanted.extend(said.map(|said| Condition {
        type_: said.type_.as_str().to_owned(),
        status: if said.holds { "True" } else { "False" }.to_owned(),
        reason: said.reason.to_owned(),
        message: said.message,
        observed_generation: generation,
        last_transition_time: now.clone(),
    }));
    for condition in &mut wanted {
        let before = (there.conditions.iter()).find(|before| before.type_ == condition.type_);
        if let Some(before) = before.filter(|before| before.status == condition.status) {
            condition.last_transition_time = before.last_transition_time.clone();
        }
    }
    // Who else writes conditions of their own keeps them; ours that are not told now stay as they were.
    let is_told = |old: &&Condition| {
        let is_ours_now = wanted.iter().any(|new| new.type_ == old.type_);
        let goes_when_well = [finding::ADJUSTED, ConditionType::Alone.as_str()];
        is_ours_now || goes_when_well.contains(&old.type_.as_str())
    };
    let others: Vec<Condition> = (there.conditions.iter())
        .filter(|old| !is_told(old))
        .cloned()
        .collect();
    wanted.extend(others);
    let figures = view.judged.as_ref();
    TrafficWatchStatus {
        ready: figures.map_or(there.ready, |judged| judged.ready),
        nodes: figures.map_or(there.nodes, |judged| judged.nodes.nodes.clone()),
        summary: figures
            .map(|judged| judged.nodes.summary.clone())
            .or(there.summary),
        conditions: wanted,
        observed_generation: generation,
    }
}

/// How many nodes are in which state, for metrics: fit, unfit, unknown.
pub fn counts(judged: &Judged) -> [i64; 3] {
    let summary = &judged.nodes.summary;
    [summary.fit, summary.unfit, summary.unknown]
}
