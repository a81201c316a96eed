//! An ElastiService that is being deleted: wake the target, serve what is held, leave nothing.

use weir_api::hold::Phase;

use super::{
    View, draining,
    facts::{Deletion, Pause},
    settings::after,
    slice,
    step::{Plan, Step},
    waking,
};

const BECAUSE: &str = "the ElastiService is being deleted";

pub(super) fn plan(view: &View<'_>, how: Deletion) -> Plan {
    let facts = view.facts;
    if let Some(stored) = facts.stored
        && stored.phase == Phase::Draining
        && facts.is_scaled_up()
    {
        return draining::undo(view, stored.since, Phase::Serving, BECAUSE);
    }
    let nothing_to_serve = facts.target.is_none() || how == Deletion::Leave;
    if nothing_to_serve {
        return tidy(view);
    }
    match facts.stored.map(|stored| stored.phase) {
        Some(Phase::Draining) => draining::plan(view),
        Some(Phase::Asleep) => Step::StorePhase(Phase::Waking).because(BECAUSE),
        Some(Phase::Waking) => wake(view),
        // A slice without an endpoint: requests may be held by it.
        None | Some(Phase::Serving) if facts.slice.is_some() && facts.endpoints.is_empty() => {
            Step::StorePhase(Phase::Waking).because(BECAUSE)
        }
        None | Some(Phase::Serving) => finish(view),
    }
}

fn wake(view: &View<'_>) -> Plan {
    // Whoever was held when the pods were called for has had an answer by then.
    let starting = view.memory.starting;
    let patience = starting.map(|since| after(since, view.settings.hold_timeout));
    let out_of_patience = patience.is_some_and(|moment| moment <= view.now);
    if view.facts.is_scaled_up() && (out_of_patience || !view.facts.service_exists) {
        return tidy(view);
    }
    let plan = waking::plan(view);
    match plan.step {
        Step::Rest => {
            let moment = plan.look_again.into_iter().chain(patience).min();
            plan.until(moment)
        }
        _ => plan,
    }
}

fn finish(view: &View<'_>) -> Plan {
    if view.facts.pause() == Pause::Ours {
        return Step::UnpauseAutoscaler.because(BECAUSE);
    }
    slice::removal(view).unwrap_or_else(|| tidy(view))
}

/// Takes away what is ours, whatever the target does.
fn tidy(view: &View<'_>) -> Plan {
    if view.facts.pause() == Pause::Ours {
        return Step::UnpauseAutoscaler.because(BECAUSE);
    }
    match &view.facts.slice {
        Some(slice) => Step::RemoveSlice {
            version: slice.version.clone(),
        }
        .because(BECAUSE),
        None => Step::RemoveFinalizer.because(BECAUSE),
    }
}
