//! Scaling, and the fence on a target.

use jiff::Timestamp;
use k8s_openapi::{
    api::autoscaling::v1::{Scale, ScaleSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Api, api::DynamicObject};
use serde_json::json;
use weir_api::hold::names::fence;
use weir_hold::facts::Version;
use weir_role::cluster::ObjectId;

use super::{HandError, Hands, merge, patching, posting};
use crate::elasti_service::sight::Kind;

/// What is told of a scale in errors and counts.
const SCALE: &str = "scale";

impl Hands {
    /// Writes 0, if the target still has this version.
    pub async fn scale_to_zero(
        &self,
        kind: &Kind,
        target: &ObjectId,
        version: &Version,
    ) -> Result<(), HandError> {
        let api = self.workloads(kind, target).await?;
        let mut scale = api
            .get_scale(&target.name)
            .await
            .map_err(|error| HandError::of(SCALE, error))?;
        scale.metadata.resource_version = Some(version.0.clone());
        scale.spec.get_or_insert_default().replicas = Some(0);
        self.put_scale(&api, target, &scale).await
    }

    /// Writes so many replicas, unless there are as many; says whether there were fewer.
    pub async fn scale_up(
        &self,
        kind: &Kind,
        target: &ObjectId,
        replicas: i32,
    ) -> Result<bool, HandError> {
        self.raise(kind, target, replicas, replicas).await
    }

    /// Writes so many replicas, unless there is one; says whether there was none. A version at which there was none
    /// saves asking for it first: somebody waits.
    pub async fn scale_up_from_zero(
        &self,
        kind: &Kind,
        target: &ObjectId,
        replicas: i32,
        at_zero: Option<&Version>,
    ) -> Result<bool, HandError> {
        if let Some(version) = at_zero {
            let scale = Scale {
                metadata: ObjectMeta {
                    name: Some(target.name.to_string()),
                    namespace: Some(target.namespace.to_string()),
                    resource_version: Some(version.0.clone()),
                    ..ObjectMeta::default()
                },
                spec: Some(ScaleSpec {
                    replicas: Some(replicas),
                }),
                status: None,
            };
            let api = self.workloads(kind, target).await?;
            match self.put_scale(&api, target, &scale).await {
                // It is not as it was known: it may not be at zero any more.
                Err(HandError::Changed(_)) => {}
                outcome => return outcome.map(|()| true),
            }
        }
        self.raise(kind, target, 1, replicas).await
    }

    async fn raise(
        &self,
        kind: &Kind,
        target: &ObjectId,
        below: i32,
        replicas: i32,
    ) -> Result<bool, HandError> {
        let api = self.workloads(kind, target).await?;
        loop {
            // The one that was read may be old, and a scale must never be lowered here.
            let mut scale = api
                .get_scale(&target.name)
                .await
                .map_err(|error| HandError::of(SCALE, error))?;
            let spec = scale.spec.get_or_insert_default();
            if spec.replicas.unwrap_or(0) >= below {
                return Ok(false);
            }
            spec.replicas = Some(replicas);
            match self.put_scale(&api, target, &scale).await {
                Ok(()) => return Ok(true),
                // Controllers write the status of what starts and ends all the time: read it again.
                Err(HandError::Changed(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Marks the target with a drain that was undone, which changes its version.
    pub async fn fence_target(
        &self,
        kind: &Kind,
        target: &ObjectId,
        object: &ObjectId,
        drain: Timestamp,
    ) -> Result<(), HandError> {
        self.annotate_target(kind, target, object, Some(drain))
            .await
    }

    /// Takes the mark away; a target that is gone needs none.
    pub async fn unfence_target(
        &self,
        kind: &Kind,
        target: &ObjectId,
        object: &ObjectId,
    ) -> Result<(), HandError> {
        match self.annotate_target(kind, target, object, None).await {
            Err(HandError::Gone(_)) => Ok(()),
            outcome => outcome,
        }
    }

    async fn annotate_target(
        &self,
        kind: &Kind,
        target: &ObjectId,
        object: &ObjectId,
        drain: Option<Timestamp>,
    ) -> Result<(), HandError> {
        let mark = drain.map(|drain| drain.to_string());
        let patch = json!({ "metadata": { "annotations": { fence(&object.name): mark } } });
        let api = self.workloads(kind, target).await?;
        let outcome = api.patch(&target.name, &patching(), &merge(patch)).await;
        self.wrote("target", outcome).map(drop)
    }

    async fn put_scale(
        &self,
        api: &Api<DynamicObject>,
        target: &ObjectId,
        scale: &Scale,
    ) -> Result<(), HandError> {
        let outcome = api.replace_scale(&target.name, &posting(), scale).await;
        self.wrote(SCALE, outcome).map(drop)
    }

    async fn workloads(
        &self,
        kind: &Kind,
        target: &ObjectId,
    ) -> Result<Api<DynamicObject>, HandError> {
        let resource = self.kinds.resource(kind).await;
        let resource = resource.map_err(|error| HandError::unreadable("target's kind", error))?;
        let resource = resource.ok_or(HandError::Gone("target's kind"))?;
        let client = self.client.clone();
        Ok(Api::namespaced_with(client, &target.namespace, &resource))
    }
}
