//! What must be there in every phase, and what must not: finalizer, ports, private Service, and nothing left over from an
//! earlier spec.

use kube::ResourceExt;
use weir_api::hold::{
    Phase, ScaleTargetRef,
    names::{FINALIZER, fence, private_service},
};

use super::{LookError, gather::Gathered, report, step};
use crate::elasti_service::{
    context::{Context, lock},
    hands::HandError,
    private_service as private,
    refusal::Judgement,
    resolver_slice,
    sight::Kind,
    world::{Derived, sibling},
};

/// Before anything is planned; says whether the object itself was written, so that it must be read again.
pub(super) async fn before(context: &Context, gathered: &Gathered) -> Result<bool, LookError> {
    let object = gathered.object();
    if object
        .finalizers()
        .iter()
        .all(|finalizer| finalizer != FINALIZER)
    {
        context.hands.set_finalizer(object, true).await?;
        context.metrics.finalizer(&gathered.id, "added");
        return Ok(true);
    }
    // Before the status speaks of anything else.
    leftovers(context, gathered).await?;
    former(context, gathered).await?;
    let stored = object.status.as_ref();
    let stored = stored.map_or(&[][..], |status| &status.ports);
    if *stored != *gathered.allotted.ports {
        // Resolvers open these ports before the Service leads to them.
        report(context, gathered, None, &[]).await?;
        return Ok(true);
    }
    if let (Judgement::Held | Judgement::Incomplete(_), Some(service)) =
        (&gathered.judgement, &gathered.sight.service)
    {
        let wanted = private::build(object, service);
        let actual = gathered.private.as_deref();
        if !actual.is_some_and(|actual| private::is_right(actual, &wanted)) {
            context.hands.put_private_service(&wanted).await?;
        }
    }
    Ok(false)
}

/// The object goes, and with it all that was made for it.
pub(super) async fn after_all(context: &Context, gathered: &Gathered) -> Result<(), LookError> {
    let id = &gathered.id;
    let object = gathered.object();
    for derived in &gathered.derived {
        remove(context, derived).await?;
    }
    for scaler in &gathered.marked {
        context.hands.waking.unpause(scaler).await?;
    }
    let key = fence(&object.name_any());
    if let (Some(scaler), Some(autoscaler)) =
        (gathered.sight.scaler.there(), &object.spec.autoscaler)
        && scaler.fences.contains_key(&key)
    {
        context
            .hands
            .unfence_scaler(&sibling(id, &autoscaler.name), id)
            .await?;
    }
    if let Some(target) = gathered.sight.target.there()
        && target.fences.contains_key(&key)
    {
        let (kind, name) = step::target(gathered);
        context.hands.unfence_target(&kind, &name, id).await?;
    }
    context.hands.set_finalizer(object, false).await?;
    Ok(())
}

/// What the present spec does not call for.
async fn leftovers(context: &Context, gathered: &Gathered) -> Result<(), LookError> {
    let object = gathered.object();
    let is_refused = matches!(gathered.judgement, Judgement::Refused(_));
    let private = private_service(&object.spec.service);
    let service = gathered.sight.service.as_ref();
    let slices = service.map(|service| resolver_slice::names(object, service));
    for derived in &gathered.derived {
        let is_wanted = match derived {
            Derived::Service(service) => !is_refused && *service.name == *private,
            Derived::Slice(slice) => {
                // Of a family that the Service does not have any more, it leads nobody.
                let is_called_for = |name: &str| {
                    let mut names = slices.iter().flatten();
                    slices.is_none() || names.any(|called_for| called_for == name)
                };
                let world = lock(&context.world);
                world.slice(slice).is_none_or(|slice| {
                    slice.service == object.spec.service && is_called_for(&slice.name)
                })
            }
        };
        if !is_wanted {
            remove(context, derived).await?;
        }
    }
    let autoscaler = object.spec.autoscaler.as_ref();
    for scaler in &gathered.marked {
        if autoscaler.is_none_or(|autoscaler| *autoscaler.name != *scaler.name) {
            context.hands.waking.unpause(scaler).await?;
        }
    }
    Ok(())
}

/// After an edit, what the status speaks of is not held any more. A former Service was kept in force until its pods were
/// back; a former target of the same Service must not sleep for ever. What was seen of them says nothing about what is
/// held now.
async fn former(context: &Context, gathered: &Gathered) -> Result<(), LookError> {
    let spec = &gathered.object().spec;
    let Some(status) = &gathered.object().status else {
        return Ok(());
    };
    let service = status.service.as_ref();
    let target = status.target.as_deref().and_then(ScaleTargetRef::parse);
    let target = target.filter(|target| target.text() != spec.scale_target_ref.text());
    if target.is_some() || service.is_some_and(|service| *service != spec.service) {
        lock(&context.memories).remove(&gathered.id);
    }
    let Some(target) = target else {
        return Ok(());
    };
    let (kind, former) = (Kind::of(&target), sibling(&gathered.id, &target.name));
    if !matches!(status.phase, None | Some(Phase::Serving)) {
        let replicas = spec.min_target_replicas.max(1);
        let woken = context
            .hands
            .waking
            .scale_up_from_zero(&kind, &former, replicas, None)
            .await;
        match woken {
            Ok(_) | Err(HandError::Gone(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    context
        .hands
        .unfence_target(&kind, &former, &gathered.id)
        .await?;
    Ok(())
}

async fn remove(context: &Context, derived: &Derived) -> Result<(), LookError> {
    match derived {
        Derived::Service(service) => context.hands.remove_private_service(service).await?,
        Derived::Slice(slice) => {
            let version = lock(&context.world)
                .slice(slice)
                .map(|slice| slice.version.clone());
            if let Some(version) = version {
                context.hands.remove_slice(slice, &version).await?;
            }
        }
    }
    Ok(())
}
