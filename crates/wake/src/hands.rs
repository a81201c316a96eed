//! The writes that wake a target, each on the version that was read: one that comes late does no harm.

use std::sync::Arc;

use k8s_openapi::{
    api::autoscaling::v1::{Scale, ScaleSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use thiserror::Error;
use weir_api::hold::names::{
    FIELD_MANAGER, KEDA_PAUSED_ANNOTATION, KEDA_PAUSED_REPLICAS_ANNOTATION, PAUSED_BY_ANNOTATION,
};
use weir_hold::facts::{Pause, Version};
use weir_role::cluster::ObjectId;

use crate::{
    kind::Kind,
    kinds::Kinds,
    scaler::{ScaledObject, Scaler},
};

/// What is told of a scale in errors and counts.
const SCALE: &str = "scale";
/// Of a ScaledObject.
const SCALER: &str = "scaled_object";

/// Hears of each write, by what was written.
pub type Wrote = Arc<dyn Fn(&'static str) + Send + Sync>;

/// Writes to the API server. Cheap to clone.
#[derive(Clone)]
pub struct Hands {
    client: Client,
    kinds: Arc<Kinds>,
    wrote: Wrote,
}

/// A target that is to be woken.
#[derive(Clone, Copy, Debug)]
pub struct Sleeper<'a> {
    /// Its kind.
    pub kind: &'a Kind,
    /// Its name.
    pub target: &'a ObjectId,
    /// Its ScaledObject, where it is to have one.
    pub scaler: Option<&'a ObjectId>,
    /// The names of all ElastiServices on it: the pause of one is that of all.
    pub group: &'a [&'a str],
    /// How many replicas it gets.
    pub replicas: i32,
    /// A version at which it had none.
    pub at_zero: Option<&'a Version>,
}

/// Why something was not written.
#[derive(Debug, Error)]
pub enum HandError {
    /// It has changed since it was read. Nothing is lost: it is decided again.
    #[error("the {0} has changed meanwhile; it is looked at again")]
    Changed(&'static str),
    /// It is not there any more.
    #[error("the {0} is gone")]
    Gone(&'static str),
    /// We are not allowed to.
    #[error(
        "the {what} may not be written; give this ServiceAccount the rights that `weir manifests` has"
    )]
    Forbidden {
        /// What.
        what: &'static str,
        /// What the API server says.
        source: Box<kube::Error>,
    },
    /// Anything else.
    #[error("the {what} cannot be written at the moment")]
    Failed {
        /// What.
        what: &'static str,
        /// What the API server says.
        source: Box<kube::Error>,
    },
}

impl HandError {
    /// A label for metrics, out of a fixed set.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Changed(_) => "conflict",
            Self::Gone(_) => "not_found",
            Self::Forbidden { .. } => "forbidden",
            Self::Failed { .. } => "failed",
        }
    }

    /// What the API server's answer to a question for this, or to a write of it, means.
    pub fn of(what: &'static str, error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if status.code == 409 => Self::Changed(what),
            kube::Error::Api(status) if status.code == 404 => Self::Gone(what),
            // Nothing can be made any more where everything goes; that is no matter of rights.
            kube::Error::Api(status) if status.message.contains("being terminated") => {
                Self::Gone(what)
            }
            kube::Error::Api(status) if status.code == 403 => Self::Forbidden {
                what,
                source: Box::new(error),
            },
            _ => Self::Failed {
                what,
                source: Box::new(error),
            },
        }
    }
}

impl Hands {
    /// Hands that write with this client.
    pub fn new(client: Client, kinds: Arc<Kinds>, wrote: Wrote) -> Self {
        Self {
            client,
            kinds,
            wrote,
        }
    }

    /// Takes away a pause that is ours or the peers', then scales to so many replicas, unless there is one; says whether
    /// there was none.
    pub async fn wake(&self, sleeper: &Sleeper<'_>) -> Result<bool, HandError> {
        // A paused ScaledObject takes every replica away again, so this comes first.
        if let Some(scaler) = sleeper.scaler {
            self.unpause_if_ours(scaler, sleeper.group).await?;
        }
        let Sleeper {
            kind,
            target,
            replicas,
            at_zero,
            ..
        } = *sleeper;
        self.scale_up_from_zero(kind, target, replicas, at_zero)
            .await
    }

    /// A ScaledObject as it is now, if it is there.
    pub async fn scaler(&self, scaler: &ObjectId) -> Result<Option<Scaler>, HandError> {
        let found = self.scalers(scaler).get_opt(&scaler.name).await;
        let found = found.map_err(|error| HandError::of(SCALER, error))?;
        Ok(found.as_ref().map(Scaler::of))
    }

    /// Takes the pause away, of which the caller knows that it is ours. A ScaledObject that is gone is not paused.
    pub async fn unpause(&self, scaler: &ObjectId) -> Result<(), HandError> {
        self.unpause_at(scaler, None).await
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

    /// The target's `/scale`.
    pub async fn get_scale(
        &self,
        api: &Api<DynamicObject>,
        target: &ObjectId,
    ) -> Result<Scale, HandError> {
        let scale = api.get_scale(&target.name).await;
        scale.map_err(|error| HandError::of(SCALE, error))
    }

    /// Writes it, on the version that it carries.
    pub async fn put_scale(
        &self,
        api: &Api<DynamicObject>,
        target: &ObjectId,
        scale: &Scale,
    ) -> Result<(), HandError> {
        let posting = PostParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        let outcome = api.replace_scale(&target.name, &posting, scale).await;
        self.wrote(SCALE, outcome).map(drop)
    }

    /// Where objects of this kind are.
    pub async fn workloads(
        &self,
        kind: &Kind,
        target: &ObjectId,
    ) -> Result<Api<DynamicObject>, HandError> {
        let resource = self.kinds.resource(kind).await;
        let resource = resource.map_err(|error| HandError::of("target's kind", error))?;
        let resource = resource.ok_or(HandError::Gone("target's kind"))?;
        let client = self.client.clone();
        Ok(Api::namespaced_with(client, &target.namespace, &resource))
    }

    /// A merge patch of a ScaledObject.
    pub async fn patch_scaler(&self, scaler: &ObjectId, patch: Value) -> Result<(), HandError> {
        let patching = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let api = self.scalers(scaler);
        let outcome = api
            .patch(&scaler.name, &patching, &Patch::Merge(patch))
            .await;
        self.wrote(SCALER, outcome).map(drop)
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
            let mut scale = self.get_scale(&api, target).await?;
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

    /// What was heard of a pause may be old, so it is asked for; and a pause that a user sets just then stays.
    async fn unpause_if_ours(&self, scaler: &ObjectId, group: &[&str]) -> Result<(), HandError> {
        loop {
            let Some(found) = self.scaler(scaler).await? else {
                return Ok(());
            };
            match found.pause(group) {
                Pause::Ours | Pause::Peers => {}
                Pause::No | Pause::Users => return Ok(()),
            }
            match self.unpause_at(scaler, found.version.as_ref()).await {
                // KEDA writes its status all the time.
                Err(HandError::Changed(_)) => {}
                outcome => return outcome,
            }
        }
    }

    async fn unpause_at(
        &self,
        scaler: &ObjectId,
        version: Option<&Version>,
    ) -> Result<(), HandError> {
        let mut patch = json!({ "metadata": { "annotations": {
            KEDA_PAUSED_ANNOTATION: null,
            KEDA_PAUSED_REPLICAS_ANNOTATION: null,
            PAUSED_BY_ANNOTATION: null,
        }}});
        if let Some(version) = version {
            patch["metadata"]["resourceVersion"] = version.0.clone().into();
        }
        match self.patch_scaler(scaler, patch).await {
            Err(HandError::Gone(_)) => Ok(()),
            outcome => outcome,
        }
    }

    fn scalers(&self, scaler: &ObjectId) -> Api<ScaledObject> {
        Api::namespaced(self.client.clone(), &scaler.namespace)
    }

    /// What came of a write, told to who counts.
    fn wrote<T>(&self, what: &'static str, outcome: kube::Result<T>) -> Result<T, HandError> {
        (self.wrote)(what);
        outcome.map_err(|error| HandError::of(what, error))
    }
}
