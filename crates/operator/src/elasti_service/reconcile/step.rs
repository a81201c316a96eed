//! One step of the plan, done.

use std::net::SocketAddr;

use weir_api::hold::{
    Phase,
    names::{metrics::scale_target, report::EventReason},
};
use weir_hold::{Facts, Plan, Step};
use weir_role::cluster::ObjectId;

use super::{LookError, gather::Gathered};
use crate::elasti_service::{
    context::{Context, lock},
    cut_over, dereference,
    hands::HandError,
    resolver_slice,
    sight::Kind,
    world::sibling,
};

/// Does what changes anything but the object itself.
pub(super) async fn carry_out(
    context: &Context,
    gathered: &Gathered,
    facts: &Facts,
    plan: &Plan,
) -> Result<(), LookError> {
    let id = &gathered.id;
    let hands = &context.hands;
    let scaler = gathered.object().spec.autoscaler.as_ref();
    let scaler = scaler.map(|scaler| sibling(id, &scaler.name));
    match &plan.step {
        Step::ApplySlice {
            version,
            resolvers,
            mark,
        } => {
            let Some(service) = &gathered.sight.service else {
                return Ok(());
            };
            let ports =
                resolver_slice::ports(service, &gathered.allotted.ports, context.shared_port);
            let known: Vec<_> = gathered
                .resolvers
                .iter()
                .map(|(known, _)| known.clone())
                .collect();
            let mark = mark.or_else(|| facts.slice.as_ref()?.mark);
            let slice =
                resolver_slice::build(gathered.object(), service, ports, &known, resolvers, mark);
            if let Some(memory) = lock(&context.memories).get_mut(id) {
                memory.slice_is_written();
            }
            hands.put_slice(slice, version.as_ref()).await?;
        }
        Step::RemoveSlice { version } => {
            if let Some(slice) = dereference::our_slice(&gathered.sight) {
                hands
                    .remove_slice(&sibling(id, &slice.name), version)
                    .await?;
            }
        }
        Step::PauseAutoscaler { version } => {
            if let Some(scaler) = &scaler {
                hands.pause(scaler, id, version).await?;
            }
        }
        Step::UnpauseAutoscaler => {
            if let Some(scaler) = &scaler {
                hands.waking.unpause(scaler).await?;
            }
        }
        Step::FenceAutoscaler { drain } => {
            if let Some(scaler) = &scaler {
                hands.fence_scaler(scaler, id, *drain).await?;
            }
        }
        Step::FenceTarget { drain } => {
            let (kind, target) = target(gathered);
            hands.fence_target(&kind, &target, id, *drain).await?;
        }
        Step::ScaleToZero { version } => {
            let (kind, target) = target(gathered);
            let outcome = hands.scale_to_zero(&kind, &target, version).await;
            scaled(context, gathered, 0, &outcome, plan.because);
            outcome?;
        }
        Step::ScaleUp { replicas } => {
            let (kind, target) = target(gathered);
            let outcome = hands.waking.scale_up(&kind, &target, *replicas).await;
            if !matches!(outcome, Ok(false)) {
                scaled(context, gathered, *replicas, &outcome, plan.because);
            }
            outcome?;
        }
        Step::Rest
        | Step::StorePhase(_)
        | Step::GiveUpCutOver
        | Step::RecordActivity
        | Step::ProbeCutOver
        | Step::RemoveFinalizer => {}
    }
    Ok(())
}

/// Opens silent connections through the Service; remembers which resolver saw one.
pub(super) async fn probe(context: &Context, gathered: &Gathered) -> Option<()> {
    let service = gathered.sight.service.as_ref()?;
    let port = service.tcp_ports().next()?;
    let port = u16::try_from(port.number).ok()?;
    let to: Vec<SocketAddr> = service
        .cluster_ips
        .iter()
        .map(|ip| SocketAddr::new(*ip, port))
        .collect();
    let resolver = cut_over::probe(&context.resolvers, &to).await?;
    let now = context.now();
    let mut memories = lock(&context.memories);
    memories.get_mut(&gathered.id)?.cut_over_seen(resolver, now);
    Some(())
}

/// The target's kind and name.
pub(super) fn target(gathered: &Gathered) -> (Kind, ObjectId) {
    let reference = &gathered.object().spec.scale_target_ref;
    (Kind::of(reference), sibling(&gathered.id, &reference.name))
}

/// The reason of the Event about a phase.
pub(super) fn reason(phase: Phase) -> &'static str {
    match phase {
        Phase::Serving => EventReason::Serving,
        Phase::Draining => EventReason::Draining,
        Phase::Asleep => EventReason::Asleep,
        Phase::Waking => EventReason::Waking,
    }
    .as_str()
}

fn scaled<T>(
    context: &Context,
    gathered: &Gathered,
    replicas: i32,
    outcome: &Result<T, HandError>,
    because: &str,
) {
    let object = gathered.object();
    let reference = &object.spec.scale_target_ref;
    let (_, kind) = reference.canonical();
    let target = scale_target(kind, &reference.name);
    let (namespace, service) = (&gathered.id.namespace, &object.spec.service);
    match outcome {
        Ok(_) => {
            context
                .metrics
                .scaled(namespace, service, &target, "success");
            let text = format!("{kind} {} scaled to {replicas}: {because}", reference.name);
            context.tell(object, EventReason::SuccessToScale.as_str(), "Scale", text);
            tracing::info!(%namespace, service, target, replicas, because, "scaled");
        }
        Err(error) => {
            context
                .metrics
                .scaled(namespace, service, &target, error.reason());
            let text = format!(
                "{kind} {} not scaled to {replicas}: {error}",
                reference.name
            );
            context.warn(object, EventReason::FailedToScale.as_str(), "Scale", text);
        }
    }
}
