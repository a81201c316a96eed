//! The status of an ElastiService: what is written is computed here, and only if it says anything new.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use weir_api::{
    finding::{self, Finding},
    hold::{
        ElastiService, ElastiServiceStatus, InForce, Mode, Phase, PortAllotment,
        names::report::ConditionType,
    },
};

use super::refusal::Told;

/// What is to be told.
#[derive(Clone, Debug, Default)]
pub struct Report<'a> {
    /// What is wrong with the spec.
    pub findings: &'a [Finding],
    /// Conditions that hold; all others do not.
    pub told: Vec<Told>,
    /// Why it is not held as the spec says; none if it is.
    pub not_ready: Option<String>,
    /// The ports of the resolvers.
    pub ports: Vec<PortAllotment>,
    /// A new phase.
    pub phase: Option<Phase>,
    /// It was woken, or seen busy.
    pub is_active: bool,
}

/// The conditions that come and go. Ready is always there.
const PASSING: [ConditionType; 14] = [
    ConditionType::ServiceSelectsNoReadyPod,
    ConditionType::TargetUnreachable,
    ConditionType::ServiceCannotBeHeld,
    ConditionType::PortsNotHeld,
    ConditionType::ResolverMissingOnNode,
    ConditionType::ServiceHeldByAnother,
    ConditionType::TargetServedByOthers,
    ConditionType::CutOverNotSeen,
    ConditionType::ResolverPortsExhausted,
    ConditionType::PausedByUser,
    ConditionType::AutoscalerReachesZero,
    ConditionType::TriggerNotUsable,
    ConditionType::TriggerFailing,
    ConditionType::PreStopMissing,
];

/// The new status; nothing if the present one says it all.
pub fn next(object: &InForce, report: &Report<'_>, now: Timestamp) -> Option<ElastiServiceStatus> {
    let old = object.status.clone().unwrap_or_default();
    // Kubernetes keeps whole seconds.
    let now = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
    let mut new = old.clone();
    if let Some(phase) = report.phase {
        new.phase = Some(phase);
        new.phase_start_time = Some(now.clone());
    }
    if report.is_active {
        new.last_scaled_up_time = Some(now.clone());
    }
    new.mode = new.phase.map(mode);
    new.service = Some(object.spec.service.clone());
    new.target = Some(object.spec.scale_target_ref.text());
    new.ports.clone_from(&report.ports);
    if !object.is_left() {
        new.observed_generation = object.metadata.generation;
    }
    new.conditions = conditions(&old.conditions, new.observed_generation, report, &now);
    if new == old {
        return None;
    }
    new.last_reconciled_time = Some(now);
    Some(new)
}

/// Where requests go in a phase.
pub fn mode(phase: Phase) -> Mode {
    match phase {
        Phase::Serving => Mode::Serve,
        Phase::Draining | Phase::Asleep | Phase::Waking => Mode::Proxy,
    }
}

/// The message of a condition that stands.
pub fn standing(object: &ElastiService, kind: ConditionType) -> Option<&str> {
    let mut conditions = object.status.as_ref()?.conditions.iter();
    let found = conditions.find(|it| it.type_ == kind.as_str() && it.status == "True");
    found.map(|condition| condition.message.as_str())
}

/// Conditions that hold now and did not before, for Events.
pub fn risen<'a>(object: &ElastiService, told: &'a [Told]) -> Vec<&'a Told> {
    let is_new = |told: &&Told| standing(object, told.kind).is_none();
    told.iter().filter(is_new).collect()
}

fn conditions(
    old: &[Condition],
    generation: Option<i64>,
    report: &Report<'_>,
    now: &Time,
) -> Vec<Condition> {
    let mut wanted = finding::conditions(report.findings, generation, now);
    let make = |kind: ConditionType, status: &str, reason: &str, message: &str| Condition {
        type_: kind.as_str().to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: generation,
        last_transition_time: now.clone(),
    };
    wanted.push(match &report.not_ready {
        None => make(
            ConditionType::Ready,
            "True",
            "Held",
            "the Service is held as the spec says",
        ),
        Some(why) => make(ConditionType::Ready, "False", "NotHeld", why),
    });
    for kind in PASSING {
        let told = report.told.iter().find(|told| told.kind == kind);
        let known = old.iter().any(|condition| condition.type_ == kind.as_str());
        match told {
            Some(told) => wanted.push(make(kind, "True", kind.as_str(), &told.message)),
            None if known => wanted.push(make(kind, "False", "Over", "")),
            None => {}
        }
    }
    for condition in &mut wanted {
        let before = old.iter().find(|old| old.type_ == condition.type_);
        if let Some(before) = before.filter(|before| before.status == condition.status) {
            condition.last_transition_time = before.last_transition_time.clone();
        }
    }
    // Who else writes conditions of their own keeps them.
    let ours: Vec<String> = wanted
        .iter()
        .map(|condition| condition.type_.clone())
        .collect();
    let others = old
        .iter()
        .filter(|old| !ours.contains(&old.type_) && old.type_ != finding::ADJUSTED);
    wanted.extend(others.cloned());
    wanted
}
