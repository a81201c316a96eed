//! Phase Draining: requests begin to go to the resolvers while the pods are still there.
//!
//! It ends in Asleep, or is undone. Either way nothing that was sent for this drain may take effect
//! later: a scale to zero or a pause which a deposed leader has on its way carries the version that it
//! read, and an undone drain changes that version before it says that it is over.

use jiff::Timestamp;
use weir_api::hold::Phase;

use super::{
    View,
    facts::{Facts, Pause},
    settings::after,
    slice,
    step::{Plan, Step},
    wish,
};

/// How far the cut-over is.
enum CutOver {
    /// No resolver has reported the silent connection yet.
    NotSeen,
    /// And none will: time is up.
    GivenUp,
    /// It works; every node follows until then.
    OverlapsUntil(Timestamp),
}

pub(super) fn plan(view: &View<'_>) -> Plan {
    let Some(drain) = view.facts.stored.map(|stored| stored.since) else {
        return Plan::rest("no phase is stored");
    };
    if !view.facts.is_scaled_up() {
        return arrive(view, drain);
    }
    if view.facts.endpoints.is_empty() {
        let waking = || undo(view, drain, Phase::Waking, "no endpoint is ready");
        return slice::upkeep(view, None).unwrap_or_else(waking);
    }
    if let Err(awake) = wish::sleep(view) {
        return undo(view, drain, Phase::Serving, awake.because);
    }
    if is_fenced(view.facts, drain) {
        return match cut_over(view) {
            CutOver::GivenUp => give_up(view, drain),
            _ => undo(view, drain, Phase::Serving, "the drain was being undone"),
        };
    }
    if let Some(upkeep) = slice::upkeep(view, Some(drain)) {
        return upkeep;
    }
    match cut_over(view) {
        CutOver::NotSeen => Step::ProbeCutOver
            .because("does the Service lead to a resolver?")
            .until(give_up_at(view)),
        CutOver::GivenUp => give_up(view, drain),
        CutOver::OverlapsUntil(moment) if view.now < moment => {
            Plan::rest("every node is to follow the slice").until(moment)
        }
        CutOver::OverlapsUntil(_) if !view.facts.group.others_cut_over => {
            Plan::rest("other Services of the target are not cut over yet")
        }
        CutOver::OverlapsUntil(_) => put_to_sleep(view),
    }
}

/// Undoes what is left of the drain, then goes to `phase`.
pub(super) fn undo(view: &View<'_>, drain: Timestamp, phase: Phase, because: &'static str) -> Plan {
    close(view, drain, because).unwrap_or_else(|| Step::StorePhase(phase).because(because))
}

fn give_up(view: &View<'_>, drain: Timestamp) -> Plan {
    let because = "no resolver saw a connection through the Service";
    close(view, drain, because).unwrap_or_else(|| Step::GiveUpCutOver.because(because))
}

/// What must be done before a drain is over and its target still up.
fn close(view: &View<'_>, drain: Timestamp, because: &'static str) -> Option<Plan> {
    if view.facts.pause() == Pause::Ours {
        return Some(Step::UnpauseAutoscaler.because(because));
    }
    fence_autoscaler(view.facts, drain)
        .or_else(|| fence_target(view.facts, drain))
        .map(|step| step.because(because))
}

/// The target is at zero, by us or by somebody else.
fn arrive(view: &View<'_>, drain: Timestamp) -> Plan {
    if let Some(upkeep) = slice::upkeep(view, Some(drain)) {
        return upkeep;
    }
    let because = "the target is at zero";
    let unpaused = view.facts.pause() != Pause::Ours;
    match fence_autoscaler(view.facts, drain).filter(|_| unpaused) {
        Some(fence) => fence.because(because),
        None => Step::StorePhase(Phase::Asleep).because(because),
    }
}

fn put_to_sleep(view: &View<'_>) -> Plan {
    let because = "the target is idle, and every node leads to a resolver";
    let drain = view.memory.drain.as_ref();
    if view.facts.pause() == Pause::No
        && let Some(autoscaler) = drain.and_then(|drain| drain.autoscaler.as_ref())
    {
        let version = autoscaler.version.clone();
        return Step::PauseAutoscaler { version }.because(because);
    }
    match drain.and_then(|drain| drain.target.as_ref()) {
        Some(target) => {
            let version = target.version.clone();
            Step::ScaleToZero { version }.because(because)
        }
        None => Plan::rest("there is no target to scale"),
    }
}

fn cut_over(view: &View<'_>) -> CutOver {
    let standing = &view.memory.in_slice;
    if view.facts.wanted.cannot_be_probed {
        // Nothing tells when it works, so the overlap is twice as long from the slice on.
        return match standing.values().min() {
            Some(since) => CutOver::OverlapsUntil(after(*since, 2 * view.settings.sync_period)),
            None => CutOver::NotSeen,
        };
    }
    let drain = view.memory.drain.as_ref();
    let seen = drain.and_then(|drain| drain.seen.as_ref());
    // Seen by a resolver that has gone since, it says nothing about those that are there.
    let counted = seen.and_then(|(resolvers, at)| {
        let since = resolvers.iter().map(|resolver| standing.get(resolver));
        let since: Vec<&Timestamp> = since.collect::<Option<_>>()?;
        since.into_iter().max().map(|since| *since.max(at))
    });
    match counted {
        Some(moment) => CutOver::OverlapsUntil(after(moment, view.settings.sync_period)),
        None if give_up_at(view) <= view.now => CutOver::GivenUp,
        None => CutOver::NotSeen,
    }
}

/// Whether it works, and every node has had the time to follow.
pub(super) fn is_cut_over(view: &View<'_>) -> bool {
    matches!(cut_over(view), CutOver::OverlapsUntil(moment) if moment <= view.now)
}

fn give_up_at(view: &View<'_>) -> Timestamp {
    let watched = view.memory.drain.as_ref().map(|drain| drain.watched_since);
    after(watched.unwrap_or(view.now), view.settings.cut_over_timeout)
}

fn is_fenced(facts: &Facts, drain: Timestamp) -> bool {
    let autoscaler = facts.autoscaler.as_ref().map(|scaler| scaler.fenced_for);
    fence_target(facts, drain).is_none() || autoscaler == Some(Some(drain))
}

fn fence_target(facts: &Facts, drain: Timestamp) -> Option<Step> {
    let target = facts.target.as_ref()?;
    (target.fenced_for != Some(drain)).then_some(Step::FenceTarget { drain })
}

fn fence_autoscaler(facts: &Facts, drain: Timestamp) -> Option<Step> {
    let autoscaler = facts.autoscaler.as_ref()?;
    (autoscaler.fenced_for != Some(drain)).then_some(Step::FenceAutoscaler { drain })
}
