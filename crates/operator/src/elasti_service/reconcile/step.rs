//! One step of the plan, done.

use std::net::{IpAddr, SocketAddr};

use futures_util::future::join_all;
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
            if let Some(memory) = lock(&context.memories).get_mut(id) {
                memory.slice_is_written();
            }
            // Of each family one. Should this end between two of them, the next look finds a pair that is not whole.
            let there = dereference::our_slices(&gathered.sight, gathered.claim());
            for family in &service.families {
                let object = gathered.object();
                let slice =
                    resolver_slice::build(object, *family, ports.clone(), &known, resolvers, mark);
                let mut there = there.iter().filter(|_| version.is_some());
                let there = there.find(|there| Some(&there.name) == slice.metadata.name.as_ref());
                hands
                    .put_slice(slice, there.map(|there| &there.version))
                    .await?;
            }
        }
        // On the versions that were looked at, which are those of the plan.
        Step::RemoveSlice { version: _ } => {
            for slice in dereference::our_slices(&gathered.sight, gathered.claim()) {
                hands
                    .remove_slice(&sibling(id, &slice.name), &slice.version)
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

/// Opens silent connections through the Service, by each of its addresses: nodes follow the slice of each family by itself.
/// Remembers which resolvers saw them, once one has by each way.
pub(super) async fn probe(context: &Context, gathered: &Gathered) -> Option<()> {
    let service = gathered.sight.service.as_ref()?;
    let port = service.tcp_ports().next()?;
    let port = u16::try_from(port.number).ok()?;
    let ways = service.cluster_ips.iter().map(|ip| {
        let to = SocketAddr::new(*ip, port);
        cut_over::probe(&context.resolvers, to)
    });
    let seen = join_all(ways).await.into_iter();
    let resolvers: Vec<IpAddr> = seen.collect::<Option<_>>()?;
    if resolvers.is_empty() {
        return None;
    }
    let now = context.now();
    let mut memories = lock(&context.memories);
    memories
        .get_mut(&gathered.id)?
        .cut_over_seen(resolvers, now);
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
