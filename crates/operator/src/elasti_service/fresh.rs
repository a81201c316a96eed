//! The same sight as `world` gives, but from the API server itself.
//!
//! What watches say may be late by as long as a connection was broken. The steps that take something away (a slice, all
//! pods) are confirmed by it: where the two do not agree, nothing is done until the watches have caught up.

use std::sync::Arc;

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
};
use weir_api::hold::{AutoscalerType, ElastiService, InForce, names::SERVICE_NAME_LABEL};
use weir_role::cluster::ObjectId;
use weir_wake::Kinds;

use super::sight::{
    Kind, Rollout, ScaledObject, Scaler, Seen, ServiceSight, Sight, SliceSight, Workload,
};

/// Reads all that matters to an ElastiService; nothing if it is gone.
pub async fn read(client: &Client, kinds: &Kinds, id: &ObjectId) -> kube::Result<Option<Sight>> {
    let objects: Api<ElastiService> = Api::namespaced(client.clone(), &id.namespace);
    let Some(object) = objects.get_opt(&id.name).await? else {
        return Ok(None);
    };
    let object = InForce::from(object);
    let spec = &object.spec;
    let services: Api<Service> = Api::namespaced(client.clone(), &id.namespace);
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), &id.namespace);
    let of_service =
        ListParams::default().labels(&format!("{SERVICE_NAME_LABEL}={}", spec.service));
    let service = services.get_opt(&spec.service);
    let target = target(client, kinds, id, &object);
    let scaler = scaler(client, id, &object);
    let (service, target, scaler, slices) =
        tokio::try_join!(service, target, scaler, slices.list(&of_service))?;
    Ok(Some(Sight {
        service: service.map(|service| Arc::new(ServiceSight::of(&service))),
        target,
        slices: slices
            .iter()
            .filter_map(|slice| SliceSight::of(slice).map(Arc::new))
            .collect(),
        scaler,
        // No step that is confirmed looks at it.
        hpa: None,
        object: Arc::new(object),
    }))
}

/// Whether a namespace is being deleted. Who may not look is told that it is not.
pub async fn namespace_ends(client: &Client, namespace: &str) -> kube::Result<bool> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match namespaces.get_opt(namespace).await {
        Ok(found) => Ok(found.is_none_or(|found| found.metadata.deletion_timestamp.is_some())),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(false),
        Err(error) => Err(error),
    }
}

/// Who paused a ScaledObject, asked of the API server.
pub async fn scaler(
    client: &Client,
    id: &ObjectId,
    object: &ElastiService,
) -> kube::Result<Seen<Scaler>> {
    let Some(autoscaler) = &object.spec.autoscaler else {
        return Ok(Seen::Missing);
    };
    if autoscaler.type_ != AutoscalerType::Keda {
        return Ok(Seen::Missing);
    }
    let api: Api<ScaledObject> = Api::namespaced(client.clone(), &id.namespace);
    Ok(seen(api.get_opt(&autoscaler.name).await?, |scaler| {
        Scaler::of(&scaler)
    }))
}

/// The target, asked of the API server.
pub async fn target(
    client: &Client,
    kinds: &Kinds,
    id: &ObjectId,
    object: &ElastiService,
) -> kube::Result<Seen<Workload>> {
    let reference = &object.spec.scale_target_ref;
    let name = &reference.name;
    let kind = Kind::of(reference);
    Ok(match &kind {
        Kind::Other(_) => other(client, kinds, &kind, id, name).await?,
        Kind::Deployment => {
            let api: Api<Deployment> = Api::namespaced(client.clone(), &id.namespace);
            seen(api.get_opt(name).await?, |it| Workload::of_deployment(&it))
        }
        Kind::StatefulSet => {
            let api: Api<StatefulSet> = Api::namespaced(client.clone(), &id.namespace);
            seen(api.get_opt(name).await?, |it| {
                Workload::of_stateful_set(&it)
            })
        }
        Kind::Rollout => {
            let api: Api<Rollout> = Api::namespaced(client.clone(), &id.namespace);
            seen(api.get_opt(name).await?, |it| Workload::of_rollout(&it))
        }
    })
}

/// One of a kind that is not known beforehand. Who may not read it, or finds no `/scale`, cannot tell it from one that is
/// not installed.
async fn other(
    client: &Client,
    kinds: &Kinds,
    kind: &Kind,
    id: &ObjectId,
    name: &str,
) -> kube::Result<Seen<Workload>> {
    let Some(resource) = kinds.resource(kind).await? else {
        return Ok(Seen::NoSuchKind);
    };
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &id.namespace, &resource);
    let scale = match api.get_scale(name).await {
        Ok(scale) => Some(scale),
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        Err(kube::Error::Api(status)) if status.code == 403 => return Ok(Seen::NoSuchKind),
        Err(error) => return Err(error),
    };
    let object = match api.get_opt(name).await {
        Err(kube::Error::Api(status)) if status.code == 403 => return Ok(Seen::NoSuchKind),
        object => object?,
    };
    Ok(match (object, scale) {
        (None, _) => Seen::Missing,
        (Some(_), None) => Seen::NoSuchKind,
        (Some(object), Some(scale)) => Seen::There(Arc::new(Workload::of_scale(&object, &scale))),
    })
}

fn seen<K, T>(object: Option<K>, of: impl Fn(K) -> T) -> Seen<T> {
    object.map_or(Seen::Missing, |object| Seen::There(Arc::new(of(object))))
}
