//! Phase Asleep: no pods; the resolvers hold what comes.
//!
//! A target found at zero comes here as well. Its autoscaler is then left alone: whoever put it to zero
//! may wake it by the same means.

use weir_api::hold::Phase;

use super::{
    View, slice,
    step::{Plan, Step},
    wish,
};

pub(super) fn plan(view: &View<'_>) -> Plan {
    if let Some(upkeep) = slice::upkeep(view, None) {
        return upkeep;
    }
    if view.facts.is_scaled_up() {
        return Step::StorePhase(Phase::Waking).because("somebody scaled the target up");
    }
    match wish::wake(view) {
        Some(because) => Step::StorePhase(Phase::Waking).because(because),
        None => Plan::rest("nobody needs the target").until(wish::wake_at(view)),
    }
}
