//! One look at one ElastiService: dereference, validate, plan, apply, update status.
//!
//! [`gather`] reads what is known, [`upkeep`] keeps what must be there in every phase, `weir_hold` decides the one next step
//! and [`step`] carries it out. A look does at most one step of the plan; the change that it makes brings the next look.

mod gather;
mod step;
mod upkeep;

use std::{sync::Arc, time::Duration};

use gather::Gathered;
use jiff::Timestamp;
use kube::ResourceExt;
use thiserror::Error;
use tokio::time::timeout;
use weir_api::hold::{Phase, names::report::ConditionType};
use weir_hold::{Facts, Memory, NO_ENDPOINT, NO_RESOLVER, Plan, Step, settings::after};
use weir_role::cluster::ObjectId;

use super::{
    context::{Context, lock},
    fresh,
    hands::HandError,
    refusal::{Judgement, Told},
    sight::Kind,
    status::{self, Report},
    turns::next_turn,
    world::sibling,
};

/// No look takes longer; whatever was on its way is decided again.
const PATIENCE: Duration = Duration::from_secs(30);
/// After a change that somebody else made first.
const SOON: Duration = Duration::from_millis(100);
/// After a failure, doubled each time.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A target of a kind that is not watched is looked for this often while it is not there.
const AGAIN: Duration = Duration::from_secs(10);
/// What no event tells, such as a Service that begins to lead to the same pods, is seen after this time.
const NOW_AND_THEN: Duration = Duration::from_mins(10);
/// Between two silent connections through a Service.
const PROBE_PAUSE: Duration = Duration::from_millis(50);

/// Why a look ended before its end.
#[derive(Debug, Error)]
enum LookError {
    #[error(transparent)]
    Hand(#[from] HandError),
    #[error("the cluster cannot be read at the moment")]
    Read(#[from] kube::Error),
    #[error("the API server takes longer than {} s", PATIENCE.as_secs())]
    Slow,
}

/// Looks at one ElastiService; says when to look again, if nothing happens before.
pub async fn reconcile(context: &Context, id: &ObjectId) -> Option<Timestamp> {
    context.metrics.reconciled(id);
    let outcome = timeout(PATIENCE, look(context, id)).await;
    match outcome.unwrap_or(Err(LookError::Slow)) {
        Ok(again) => {
            lock(&context.failures).remove(id);
            let now_and_then = next_turn(id, context.now(), NOW_AND_THEN);
            Some(again.map_or(now_and_then, |again| again.min(now_and_then)))
        }
        Err(error) => Some(failed(context, id, &error)),
    }
}

fn failed(context: &Context, id: &ObjectId, error: &LookError) -> Timestamp {
    let now = context.now();
    let reason = match error {
        LookError::Hand(HandError::Changed(what)) => {
            tracing::debug!(namespace = %id.namespace, name = %id.name, what, "changed meanwhile");
            return after(now, SOON);
        }
        LookError::Hand(error) => error.reason(),
        LookError::Read(_) => "read",
        LookError::Slow => "slow",
    };
    context.metrics.reconcile_failed(reason);
    let times = {
        let mut failures = lock(&context.failures);
        let times = failures.entry(id.clone()).or_insert(0);
        *times = times.saturating_add(1);
        *times
    };
    let pause = PAUSE.saturating_mul(1 << times.min(8)).min(LONGEST_PAUSE);
    let error: &dyn std::error::Error = error;
    tracing::warn!(
        namespace = %id.namespace, name = %id.name, error,
        again_in_seconds = pause.as_secs_f64(),
        "an ElastiService could not be looked after"
    );
    after(now, pause)
}

async fn look(context: &Context, id: &ObjectId) -> Result<Option<Timestamp>, LookError> {
    ask_for_target(context, id).await?;
    let Some(mut gathered) = gather::gather(context, id) else {
        context.forget(id);
        return Ok(None);
    };
    if !gathered.is_complete() {
        return Ok(None);
    }
    let object = Arc::clone(&gathered.sight.object);
    if object.metadata.deletion_timestamp.is_some() {
        if object
            .finalizers()
            .iter()
            .all(|finalizer| finalizer != weir_api::hold::names::FINALIZER)
        {
            // Somebody else's finalizer keeps it; our part is done.
            return Ok(None);
        }
        let namespace = fresh::namespace_ends(&context.client, &id.namespace).await?;
        gathered.namespace_ends = namespace;
    } else if upkeep::before(context, &gathered).await? {
        // What was written comes back as an event.
        return Ok(None);
    }
    let goes = gathered.is_deleted() || object.is_left();
    if matches!(gathered.judgement, Judgement::Incomplete(_)) && !goes {
        report(context, &gathered, None, &[]).await?;
        // Nobody tells when a target that is not watched appears, or may be read.
        let is_watched = !matches!(step::target(&gathered).0, Kind::Other(_));
        return Ok((!is_watched).then(|| after(context.now(), AGAIN)));
    }

    let now = context.now();
    let facts = gathered.facts(context, now);
    let mut memory = lock(&context.memories).get(id).cloned().unwrap_or_default();
    memory.see(&facts, now);
    let plan = weir_hold::next(&facts, &memory, &context.settings, now);
    lock(&context.memories).insert(id.clone(), memory.clone());
    tracing::debug!(
        namespace = %id.namespace, name = %id.name, step = ?plan.step, because = plan.because, "planned"
    );

    if plan.because == NO_RESOLVER && plan.step == Step::StorePhase(Phase::Waking) {
        let may = lock(&context.fail_open).may_wake(id, facts.wanted.last_scaled_up);
        if !may {
            return Ok(earlier(plan.look_again, gathered.schedule_changes));
        }
    } else {
        lock(&context.fail_open).forget(id);
    }
    let again = act(context, &gathered, &facts, &memory, &plan).await?;
    Ok(earlier(again, gathered.schedule_changes))
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

/// A target of a kind that is not watched.
async fn ask_for_target(context: &Context, id: &ObjectId) -> Result<(), LookError> {
    let object = lock(&context.world).object(id).cloned();
    let Some(object) = object else {
        return Ok(());
    };
    let reference = &object.spec.scale_target_ref;
    let kind = Kind::of(reference);
    if !matches!(kind, Kind::Other(_)) {
        return Ok(());
    }
    let seen = fresh::target(&context.client, &context.kinds, id, &object).await?;
    let target = sibling(id, &reference.name);
    lock(&context.world).set_other(kind, target, seen);
    Ok(())
}

/// Carries out the one step and tells of it.
async fn act(
    context: &Context,
    gathered: &Gathered,
    facts: &Facts,
    memory: &Memory,
    plan: &Plan,
) -> Result<Option<Timestamp>, LookError> {
    let id = &gathered.id;
    let now = context.now();
    let confirmed;
    let plan = if must_be_confirmed(plan) {
        let Some(again) = confirm(context, gathered, memory, plan).await? else {
            return Ok(Some(after(now, SOON)));
        };
        confirmed = again;
        &confirmed
    } else {
        plan
    };
    match &plan.step {
        Step::StorePhase(phase) => {
            report(context, gathered, Some(*phase), &plan.conditions).await?;
            if *phase == Phase::Serving {
                // Whoever asked for it before has it; who scales it to zero now means what they do.
                context.wake_is_done(id, now);
            }
            let reason = step::reason(*phase);
            context.tell(
                &gathered.sight.object,
                reason,
                "Phase",
                format!("{}: {}", reason, plan.because),
            );
            tracing::info!(namespace = %id.namespace, name = %id.name, phase = reason, because = plan.because, "a new phase");
            return Ok(None);
        }
        Step::GiveUpCutOver => {
            report(context, gathered, Some(Phase::Serving), &plan.conditions).await?;
            return Ok(None);
        }
        Step::RecordActivity => {
            record_activity(context, gathered, &plan.conditions).await?;
            return Ok(None);
        }
        Step::ProbeCutOver => {
            report(context, gathered, None, &plan.conditions).await?;
            return Ok(Some(
                step::probe(context, gathered)
                    .await
                    .map_or_else(|| after(now, PROBE_PAUSE), |()| context.now()),
            ));
        }
        Step::RemoveFinalizer if gathered.is_deleted() => {
            upkeep::after_all(context, gathered).await?;
            context.metrics.finalizer(id, "removed");
            return Ok(None);
        }
        // Nothing of what the edit left behind is held any more, so the edit is in force.
        Step::RemoveFinalizer if gathered.object().is_left() => {
            report(context, gathered, Some(Phase::Serving), &plan.conditions).await?;
            return Ok(None);
        }
        Step::Rest | Step::RemoveFinalizer => {}
        Step::ScaleToZero { .. }
        | Step::PauseAutoscaler { .. }
        | Step::RemoveSlice { .. }
        | Step::ApplySlice { .. }
        | Step::UnpauseAutoscaler
        | Step::ScaleUp { .. }
        | Step::FenceTarget { .. }
        | Step::FenceAutoscaler { .. } => step::carry_out(context, gathered, facts, plan).await?,
    }
    report(context, gathered, None, &plan.conditions).await?;
    Ok(plan.look_again)
}

/// Whether watches that are late could make this harmful: what takes something away, and what may overrule a user.
fn must_be_confirmed(plan: &Plan) -> bool {
    match plan.step {
        Step::ScaleToZero { .. } | Step::PauseAutoscaler { .. } | Step::RemoveSlice { .. } => true,
        Step::StorePhase(Phase::Waking) => plan.because == NO_ENDPOINT,
        _ => false,
    }
}

/// The plan that the API server itself leads to, and what resolvers say now, where that is the same step. Its versions are newer where only a
/// status was written in between.
async fn confirm(
    context: &Context,
    gathered: &Gathered,
    memory: &Memory,
    plan: &Plan,
) -> Result<Option<Plan>, LookError> {
    let Some(sight) = fresh::read(&context.client, &context.kinds, &gathered.id).await? else {
        return Ok(None);
    };
    if let Step::ScaleToZero { .. } | Step::PauseAutoscaler { .. } = plan.step {
        let on_target = gathered.all_on_target();
        let changed = context.turnstile.ask(&on_target, &context.resolvers).await;
        context.queue.mark(changed);
    }
    let now = context.now();
    let facts = gathered.facts_of(&sight, context, now);
    let mut memory = memory.clone();
    memory.see(&facts, now);
    let again = weir_hold::next(&facts, &memory, &context.settings, now);
    let is_same = match (&again.step, &plan.step) {
        (Step::ScaleToZero { .. }, Step::ScaleToZero { .. })
        | (Step::PauseAutoscaler { .. }, Step::PauseAutoscaler { .. }) => true,
        (again, planned) => again == planned,
    };
    Ok(is_same.then_some(again))
}

/// Writes the status, if it says anything new.
async fn report(
    context: &Context,
    gathered: &Gathered,
    phase: Option<Phase>,
    conditions: &[weir_hold::Condition],
) -> Result<(), LookError> {
    let is_active = phase == Some(Phase::Waking);
    write_report(context, gathered, phase, conditions, is_active).await
}

async fn record_activity(
    context: &Context,
    gathered: &Gathered,
    conditions: &[weir_hold::Condition],
) -> Result<(), LookError> {
    write_report(context, gathered, None, conditions, true).await
}

async fn write_report(
    context: &Context,
    gathered: &Gathered,
    phase: Option<Phase>,
    conditions: &[weir_hold::Condition],
    is_active: bool,
) -> Result<(), LookError> {
    let object = &gathered.sight.object;
    let mut told = gathered.told.clone();
    for condition in conditions
        .iter()
        .filter(|condition| condition.kind != ConditionType::Ready)
    {
        let message = match (condition.kind, &gathered.verdict.why) {
            (ConditionType::TriggerFailing, Some(why)) => format!("{}: {why}", condition.message),
            // Nobody was asked yet: what was said before stays. And who knows too little for now does not fail.
            (ConditionType::TriggerFailing, None) => match status::standing(object, condition.kind)
            {
                Some(before) if gathered.verdict.is_unheard => before.to_owned(),
                _ => continue,
            },
            _ => condition.message.to_owned(),
        };
        told.push(Told {
            kind: condition.kind,
            message,
        });
    }
    let is_ready = conditions
        .iter()
        .any(|condition| condition.kind == ConditionType::Ready);
    let not_ready = match &gathered.judgement {
        _ if object.is_left() => Some(format!(
            "the spec names another Service, which is held once {} is awake and {} leads to it",
            object.spec.scale_target_ref.text(),
            object.spec.service
        )),
        Judgement::Refused(why) | Judgement::Incomplete(why) => Some(why.clone()),
        Judgement::Held if is_ready => None,
        Judgement::Held => {
            let mut told = gathered.told.iter();
            let cannot = told.find(|told| told.kind == ConditionType::ServiceCannotBeHeld);
            let why = cannot.map_or(
                "no ready resolver knows the Service; see that resolvers run and are ready",
                |told| &told.message,
            );
            Some(why.to_owned())
        }
    };
    let report = Report {
        findings: &gathered.findings,
        told,
        not_ready,
        ports: gathered.allotted.ports.clone(),
        phase,
        is_active,
    };
    let Some(status) = status::next(object, &report, context.now()) else {
        return Ok(());
    };
    let mode = status.mode;
    let stored = status.phase;
    context.hands.store(object, status).await?;
    if let Some(mode) = mode {
        context.metrics.status_written(&gathered.id, mode);
        context.metrics.set_mode(&gathered.id, mode);
    }
    if let Some(phase) = stored {
        context.metrics.set_phase(&gathered.id, phase);
    }
    for told in status::risen(object, &report.told) {
        let (reason, text) = (told.kind.as_str(), told.message.clone());
        match told.kind {
            ConditionType::PreStopMissing => context.tell(object, reason, "Check", text),
            _ => context.warn(object, reason, "Check", text),
        }
    }
    Ok(())
}
