//! What is decided for one watch, from its nodes' figures: verdicts, and what its status and conditions say of them.

use std::{collections::BTreeMap, sync::Arc};

use weir_api::place::{RebalanceMode, TrafficWatch};
use weir_place::{
    condition,
    history::History,
    judge::{Outcome, Seen, Why},
    measure::not_counted,
    moment::Moment,
    node::NodeFacts,
    plan::Wish,
    ready::{self, Waiting},
    settings::Settings,
    status,
};

use super::{
    super::schedule::SharedSchedule,
    Thought,
    decision::{Judged, Turned},
    measuring::Measurements,
};

pub(super) fn judge(
    thought: &mut Thought,
    object: &TrafficWatch,
    settings: &Arc<Settings>,
    nodes: &[&NodeFacts],
    measurements: &Measurements,
    (history, schedule): (&History, &SharedSchedule),
    now: Moment,
) -> Judged {
    let measured = || {
        nodes.iter().filter_map(|&node| {
            let measurement = measurements.get(&node.name)?;
            Some((node, measurement))
        })
    };
    let waiting = measured().map(|(node, measurement)| Waiting {
        node,
        figure: &measurement.figure,
        asked: schedule.asked(&node.name),
    });
    let there = object.status.clone().unwrap_or_default();
    // It never goes back, so nobody need be asked again.
    let waited_for = if there.ready {
        None
    } else {
        ready::waited_for(waiting, settings, now)
    };
    let ready = there.ready || waited_for.as_ref().is_some_and(Vec::is_empty);
    let seen = measured().map(|(node, measurement)| Seen {
        node,
        figure: measurement.figure.clone(),
    });
    let outcome = thought.judge.step(seen, settings, ready, now);
    let turned = turned(&thought.outcome, &outcome);
    thought.outcome = outcome;
    let outcome = &thought.outcome;
    Judged {
        settings: Arc::clone(settings),
        ready,
        nodes: status::nodes(outcome, measurements, &there.nodes, |name| {
            let uid = nodes.binary_search_by(|node| node.name.as_str().cmp(name));
            let uid = uid.ok().and_then(|at| nodes.get(at)).map(|node| &node.uid);
            let history = uid.and_then(|uid| history.of(name, uid));
            history.map_or_else(Vec::new, |history| not_counted(history, settings))
        }),
        measured: condition::measured(outcome, measurements),
        enough_fit: condition::enough_fit(outcome, settings),
        begun: condition::ready(ready, waited_for.as_deref()),
        outcome: (settings.rebalance.mode != RebalanceMode::Never).then(|| outcome.clone()),
        turned,
    }
}

/// Nodes whose state changed; what a new node first becomes is no change.
fn turned(before: &Outcome, after: &Outcome) -> Vec<Turned> {
    let turned = after.verdicts.iter().filter_map(|(node, verdict)| {
        let before = before.verdicts.get(node)?;
        let is_change = before.state != verdict.state && before.why != Why::New;
        is_change.then(|| Turned {
            node: node.clone(),
            state: verdict.state,
            why: verdict.why,
            load: verdict.load,
        })
    });
    turned.collect()
}

pub(super) fn wishes_of(outcome: &Outcome, nodes: &[&NodeFacts]) -> BTreeMap<String, Wish> {
    let wish = |node: &&NodeFacts| {
        let verdict = outcome.verdicts.get(&node.name);
        let wish = verdict.map_or(Wish::Nothing, |verdict| Wish::Show(verdict.state));
        (node.name.clone(), wish)
    };
    nodes.iter().map(wish).collect()
}
