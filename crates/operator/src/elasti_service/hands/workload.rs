//! Scaling to zero, and the fence on a target. To scale up is `weir_wake`'s.

use jiff::Timestamp;
use serde_json::json;
use weir_api::hold::names::fence;
use weir_hold::facts::Version;
use weir_role::cluster::ObjectId;

use super::{HandError, Hands, merge, patching};
use crate::elasti_service::sight::Kind;

impl Hands {
    /// Writes 0, if the target still has this version.
    pub async fn scale_to_zero(
        &self,
        kind: &Kind,
        target: &ObjectId,
        version: &Version,
    ) -> Result<(), HandError> {
        let api = self.waking.workloads(kind, target).await?;
        let mut scale = self.waking.get_scale(&api, target).await?;
        scale.metadata.resource_version = Some(version.0.clone());
        scale.spec.get_or_insert_default().replicas = Some(0);
        self.waking.put_scale(&api, target, &scale).await
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
        let api = self.waking.workloads(kind, target).await?;
        let outcome = api.patch(&target.name, &patching(), &merge(patch)).await;
        self.wrote("target", outcome).map(drop)
    }
}
