//! What a user should know, beside the phase: the conditions that this part decides.

use weir_api::hold::{Phase, names::report::ConditionType};

use super::{
    View,
    facts::{Pause, Triggers},
    settings::after,
    step::{Plan, Step},
};

/// A condition that holds now. Those that are not named do not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its type.
    pub kind: ConditionType,
    /// What to know, and to do.
    pub message: &'static str,
}

pub(super) fn of(view: &View<'_>, plan: &Plan) -> Vec<Condition> {
    let facts = view.facts;
    let phase = facts.stored.map(|stored| stored.phase);
    let not_seen = facts.wanted.cut_over_failed.is_some()
        && !matches!(phase, Some(Phase::Draining | Phase::Asleep));
    let peers_at_zero =
        facts.pause() == Pause::Peers && matches!(phase, Some(Phase::Asleep | Phase::Waking));
    let foreign_pause = matches!(facts.pause(), Pause::Users | Pause::Peers) && !peers_at_zero;
    let grace = view.settings.no_ready_pod_grace;
    let unselected = view
        .memory
        .no_endpoint
        .is_some_and(|since| after(since, grace) <= view.now);
    let usable = !facts.usable_resolvers().is_empty();
    let all = [
        (
            facts.target.is_some() && usable,
            ConditionType::Ready,
            "the Service is held as the spec says",
        ),
        (
            not_seen || plan.step == Step::GiveUpCutOver,
            ConditionType::CutOverNotSeen,
            "no resolver saw a connection through the Service, so the target was not put to \
             sleep; see that nodes follow EndpointSlices and that NetworkPolicies admit resolvers",
        ),
        (
            foreign_pause,
            ConditionType::PausedByUser,
            "the ScaledObject is paused, and not by this ElastiService; its pause is left alone",
        ),
        (
            facts.wanted.triggers == Triggers::Unknown,
            ConditionType::TriggerFailing,
            "a trigger could not be asked, so the target stays as it is",
        ),
        (
            unselected,
            ConditionType::ServiceSelectsNoReadyPod,
            "the target has ready pods, but the Service leads to none; compare its selector with \
             the pods' labels",
        ),
    ];
    let holds = |(holds, kind, message)| Some(Condition { kind, message }).filter(|_| holds);
    all.into_iter().filter_map(holds).collect()
}
