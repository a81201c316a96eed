//! Pausing a ScaledObject at zero, and the fence on it. To let it go on is `weir_wake`'s.

use jiff::Timestamp;
use serde_json::json;
use weir_api::hold::names::{
    KEDA_PAUSED, KEDA_PAUSED_ANNOTATION, KEDA_PAUSED_REPLICAS, KEDA_PAUSED_REPLICAS_ANNOTATION,
    PAUSED_BY_ANNOTATION, fence,
};
use weir_hold::facts::Version;
use weir_role::cluster::ObjectId;

use super::{HandError, Hands};

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
        self.waking.patch_scaler(scaler, patch).await
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
        self.waking.patch_scaler(scaler, patch).await
    }

    /// Takes the mark away.
    pub async fn unfence_scaler(
        &self,
        scaler: &ObjectId,
        object: &ObjectId,
    ) -> Result<(), HandError> {
        let key = fence(&object.name);
        let patch = json!({ "metadata": { "annotations": { key: null } } });
        match self.waking.patch_scaler(scaler, patch).await {
            Err(HandError::Gone(_)) => Ok(()),
            outcome => outcome,
        }
    }
}
