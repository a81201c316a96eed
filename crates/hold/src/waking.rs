//! Phase Waking: the target is wanted up, and requests are held until an endpoint is ready.

use weir_api::hold::Phase;

use super::{
    View,
    facts::Pause,
    slice,
    step::{Plan, Step},
    wish,
};

pub(super) fn plan(view: &View<'_>) -> Plan {
    let facts = view.facts;
    if facts.endpoints.is_empty()
        && let Some(upkeep) = slice::upkeep(view, None)
    {
        return upkeep;
    }
    // A paused ScaledObject takes every replica away again, so this comes before the scaling.
    if matches!(facts.pause(), Pause::Ours | Pause::Peers) {
        return Step::UnpauseAutoscaler.because("the target is to be awake");
    }
    let Some(target) = &facts.target else {
        return Plan::rest("there is no target to wake");
    };
    let least = facts.wanted.min_replicas.max(1);
    let short = (target.replicas < 1).then_some(least);
    if let Some(replicas) = short.or_else(|| wish::replicas_short_of_window(view)) {
        return Step::ScaleUp { replicas }.because("the target is to be awake");
    }
    if facts.endpoints.is_empty() {
        return Plan::rest("no endpoint is ready yet");
    }
    slice::removal(view)
        .unwrap_or_else(|| Step::StorePhase(Phase::Serving).because("an endpoint is ready"))
}
