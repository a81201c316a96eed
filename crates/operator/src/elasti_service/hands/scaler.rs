//! Pausing a ScaledObject at zero, and letting it go on. Only what carries our mark, or the peers' pair on a target that
//! sleeps, is ever removed.

use jiff::Timestamp;
use kube::Api;
use serde_json::json;
use weir_api::hold::names::{
    KEDA_PAUSED, KEDA_PAUSED_ANNOTATION, KEDA_PAUSED_REPLICAS, KEDA_PAUSED_REPLICAS_ANNOTATION,
    PAUSED_BY_ANNOTATION, fence,
};
use weir_hold::facts::Version;
use weir_role::cluster::ObjectId;

use super::{HandError, Hands, merge, patching};
use crate::elasti_service::sight::ScaledObject;

/// What is told of it in errors and counts.
const SCALER: &str = "scaled_object";

impl Hands {
    /// Pauses it at zero, if it still has this version.
    pub async fn pause(
        &self,
        scaler: &ObjectId,
        by: &ObjectId,
        version: &Version,
    ) -> Result<(), HandError> {
        let patch = json!({ "metadata": {
            "resourceVersion": version.0,
            "annotations": {
                KEDA_PAUSED_ANNOTATION: KEDA_PAUSED,
                KEDA_PAUSED_REPLICAS_ANNOTATION: KEDA_PAUSED_REPLICAS,
                PAUSED_BY_ANNOTATION: &*by.name,
            },
        }});
        self.patch_scaler(scaler, patch).await
    }

    /// Takes our pause away, or the peers'. One that is gone is not paused.
    pub async fn unpause(&self, scaler: &ObjectId) -> Result<(), HandError> {
        let patch = json!({ "metadata": { "annotations": {
            KEDA_PAUSED_ANNOTATION: null,
            KEDA_PAUSED_REPLICAS_ANNOTATION: null,
            PAUSED_BY_ANNOTATION: null,
        }}});
        match self.patch_scaler(scaler, patch).await {
            Err(HandError::Gone(_)) => Ok(()),
            outcome => outcome,
        }
    }

    /// Marks it with a drain that was undone, which changes its version.
    pub async fn fence_scaler(
        &self,
        scaler: &ObjectId,
        object: &ObjectId,
        drain: Timestamp,
    ) -> Result<(), HandError> {
        let key = fence(&object.name);
        let patch = json!({ "metadata": { "annotations": { key: drain.to_string() } } });
        self.patch_scaler(scaler, patch).await
    }

    /// Takes the mark away.
    pub async fn unfence_scaler(
        &self,
        scaler: &ObjectId,
        object: &ObjectId,
    ) -> Result<(), HandError> {
        let key = fence(&object.name);
        let patch = json!({ "metadata": { "annotations": { key: null } } });
        match self.patch_scaler(scaler, patch).await {
            Err(HandError::Gone(_)) => Ok(()),
            outcome => outcome,
        }
    }

    async fn patch_scaler(
        &self,
        scaler: &ObjectId,
        patch: serde_json::Value,
    ) -> Result<(), HandError> {
        let api: Api<ScaledObject> = self.api(scaler);
        let outcome = api.patch(&scaler.name, &patching(), &merge(patch)).await;
        self.wrote(SCALER, outcome).map(drop)
    }
}
