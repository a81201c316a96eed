//! An ElastiService that is being deleted, or by an edit leaves its Service: wake the target, serve what is held, leave
//! nothing.

use weir_api::hold::Phase;

use super::{
    View, draining,
    facts::{Deletion, Pause},
    settings::after,
    slice,
    step::{Plan, Step},
    waking,
};

/// Why all this is done.
pub(super) fn because(how: Deletion) -> &'static str {
    match how {
        Deletion::WakeFirst | Deletion::Leave => "the ElastiService is being deleted",
        Deletion::Edited => "the spec names another Service",
    }
}

pub(super) fn plan(view: &View<'_>, how: Deletion) -> Plan {
    let facts = view.facts;
    let because = because(how);
    if let Some(stored) = facts.stored
        && stored.phase == Phase::Draining
        && facts.is_scaled_up()
    {
        return draining::undo(view, stored.since, Phase::Serving, because);
    }
    let nothing_to_serve = facts.target.is_none() || how == Deletion::Leave;
    if nothing_to_serve {
        return tidy(view, because);
    }
    match facts.stored.map(|stored| stored.phase) {
        Some(Phase::Draining) => draining::plan(view),
        Some(Phase::Asleep) => Step::StorePhase(Phase::Waking).because(because),
        Some(Phase::Waking) => wake(view, because),
        // A slice without an endpoint: requests may be held by it.
        None | Some(Phase::Serving) if facts.slice.is_some() && facts.endpoints.is_empty() => {
            Step::StorePhase(Phase::Waking).because(because)
        }
        None | Some(Phase::Serving) => finish(view, because),
    }
}

fn wake(view: &View<'_>, because: &'static str) -> Plan {
    // Whoever was held when the pods were called for has had an answer by then.
    let starting = view.memory.starting;
    let patience = starting.map(|since| after(since, view.settings.hold_timeout));
    let out_of_patience = patience.is_some_and(|moment| moment <= view.now);
    if view.facts.is_scaled_up() && (out_of_patience || !view.facts.service_exists) {
        return tidy(view, because);
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

fn finish(view: &View<'_>, because: &'static str) -> Plan {
    if view.facts.pause() == Pause::Ours {
        return Step::UnpauseAutoscaler.because(because);
    }
    slice::removal(view).unwrap_or_else(|| tidy(view, because))
}

/// Takes away what is ours, whatever the target does.
fn tidy(view: &View<'_>, because: &'static str) -> Plan {
    if view.facts.pause() == Pause::Ours {
        return Step::UnpauseAutoscaler.because(because);
    }
    match &view.facts.slice {
        Some(slice) => Step::RemoveSlice {
            version: slice.version.clone(),
        }
        .because(because),
        None => let_go(view, because),
    }
}

/// Resolvers forget the Service at once, and a node that has not followed yet still leads to them.
fn let_go(view: &View<'_>, because: &'static str) -> Plan {
    let facts = view.facts;
    let nobody_is_led = !facts.service_exists || facts.deletion == Some(Deletion::Leave);
    let without_slice = view.memory.no_slice.unwrap_or(view.now);
    let followed = after(without_slice, view.settings.sync_period);
    if nobody_is_led || followed <= view.now {
        return Step::RemoveFinalizer.because(because);
    }
    Plan::rest("resolvers go on until no node leads to them").until(Some(followed))
}
