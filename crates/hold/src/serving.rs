//! Phase Serving, and objects that have no phase yet: pods answer by themselves.
//!
//! A target without a ready endpoint leaves it at once, with the slice first: here nobody was asked
//! whether the pods may go, so there is nothing to be gentle with.

use weir_api::hold::Phase;

use super::{
    View,
    facts::Pause,
    settings::after,
    slice,
    step::{Plan, Step},
    wish,
};

/// Why a target that should serve is taken for one that wakes. Told by its text: watches may have said that its pods go
/// before they say that somebody has scaled it to zero, and who did must not be overruled.
pub const NO_ENDPOINT: &str = "no endpoint is ready";

pub(super) fn plan(view: &View<'_>) -> Plan {
    let facts = view.facts;
    // A slice that was left over gets a new mark, for its removal may be on its way.
    let mark = facts.stored.map(|stored| stored.since);
    if !facts.is_scaled_up() {
        let asleep = Step::StorePhase(Phase::Asleep).because("the target is at zero");
        return slice::upkeep(view, mark).unwrap_or(asleep);
    }
    if facts.endpoints.is_empty() {
        let waking = Step::StorePhase(Phase::Waking).because(NO_ENDPOINT);
        return slice::upkeep(view, mark).unwrap_or(waking);
    }
    if facts.stored.is_none() {
        return Step::StorePhase(Phase::Serving).because("an endpoint is ready");
    }
    if facts.pause() == Pause::Ours {
        return Step::UnpauseAutoscaler.because("the target is awake");
    }
    // Times are stored in seconds: two drains must not begin at the same one, or share their mark.
    let rested = facts
        .stored
        .map(|stored| after(stored.since, view.settings.sync_period));
    match wish::sleep(view) {
        Ok(()) if rested.is_some_and(|rested| view.now < rested) => {
            let awake = wish::Awake {
                because: "it serves only since just now",
                until: rested,
            };
            stay(view, &awake)
        }
        Ok(()) => Step::StorePhase(Phase::Draining).because("the target is idle"),
        Err(awake) => stay(view, &awake),
    }
}

fn stay(view: &View<'_>, awake: &wish::Awake) -> Plan {
    if let Some(removal) = slice::removal(view) {
        let moment = removal.look_again.into_iter().chain(awake.until).min();
        return removal.until(moment);
    }
    if let Some(replicas) = wish::replicas_short_of_window(view) {
        let step = Step::ScaleUp { replicas };
        return step.because("outside enabledPeriod the target is kept up");
    }
    if wish::activity_to_record(view) {
        return Step::RecordActivity.because("a trigger is not idle");
    }
    Plan::rest(awake.because).until(awake.until)
}
