//! Waking a service by ourselves: unpaused first, then scaled, as an operator does it, and by the same hands.
//!
//! It rests on what the API server says now, not on what watches said: an ElastiService that an operator has in mode `proxy`.
//! So nothing is woken that nobody put to sleep or found asleep. All else that makes it safe is in [`weir_wake`]: never fewer
//! replicas than there are, each write on the version that was read. An operator that comes back finds a target that somebody
//! has scaled up, and goes on from there.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use kube::{Api, Client};
use thiserror::Error;
use tokio::time::timeout;
use weir_api::hold::{AutoscalerType, ElastiService, InForce, Mode};
use weir_role::cluster::ObjectId;
use weir_wake::{HandError, Hands, Kind, Kinds, Sleeper};

use super::Wakes;
use crate::view::ServiceId;

/// No wake takes longer; it is tried again.
const PATIENCE: Duration = Duration::from_secs(10);

/// Names the ElastiService that holds a Service.
pub type Holder = Arc<dyn Fn(&ServiceId) -> Option<ObjectId> + Send + Sync>;

/// Wakes services. Cheap to clone.
#[derive(Clone)]
pub struct Scaler {
    client: Client,
    hands: Hands,
    holder: Holder,
}

/// Why a service was not woken.
#[derive(Debug, Error)]
pub enum ScaleError {
    /// No ElastiService holds it any more.
    #[error("no ElastiService holds it any more")]
    NotHeld,
    /// Pods should be there, or an operator has never looked at it.
    #[error("its ElastiService is not in mode `proxy`; only an operator wakes it")]
    NotProxied,
    /// The ElastiService cannot be read.
    #[error("its ElastiService cannot be read at the moment")]
    Read(#[source] Box<kube::Error>),
    /// Something cannot be written.
    #[error(transparent)]
    Hand(#[from] HandError),
    /// The API server is slow.
    #[error("the API server takes longer than {} s", PATIENCE.as_secs())]
    Slow,
    /// A mistake of ours.
    #[error("waking it failed inside; please report it with the log above")]
    Panic,
}

impl ScaleError {
    /// A label for metrics, out of a fixed set.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NotHeld => "not_held",
            Self::NotProxied => "not_proxied",
            Self::Read(_) => "read",
            Self::Hand(error) => error.reason(),
            Self::Slow => "slow",
            Self::Panic => "panic",
        }
    }
}

impl Scaler {
    /// Wakes what `holder` knows, with this client.
    pub fn new(client: Client, holder: Holder) -> Self {
        let kinds = Arc::new(Kinds::new(client.clone()));
        Self {
            hands: Hands::new(client.clone(), kinds, Arc::new(|_| {})),
            client,
            holder,
        }
    }

    async fn wake_now(&self, service: &ServiceId) -> Result<bool, ScaleError> {
        let id = (self.holder)(service).ok_or(ScaleError::NotHeld)?;
        let object = self.read(&id).await?.ok_or(ScaleError::NotHeld)?;
        if object.spec.service != *service.name {
            return Err(ScaleError::NotHeld);
        }
        let mode = object.status.as_ref().and_then(|status| status.mode);
        if mode != Some(Mode::Proxy) {
            return Err(ScaleError::NotProxied);
        }
        let autoscaler = object.spec.autoscaler.as_ref();
        let scaler = autoscaler.filter(|it| it.type_ == AutoscalerType::Keda);
        let scaler = scaler.map(|scaler| ObjectId::new(&id.namespace, &scaler.name));
        let partner = self.partner(&id, &object, scaler.as_ref()).await?;
        let group: Vec<&str> = [Some(&*id.name), partner.as_deref()]
            .into_iter()
            .flatten()
            .collect();
        let reference = &object.spec.scale_target_ref;
        let sleeper = Sleeper {
            kind: &Kind::of(reference),
            target: &ObjectId::new(&id.namespace, &reference.name),
            scaler: scaler.as_ref(),
            group: &group,
            replicas: object.spec.min_target_replicas.max(1),
            at_zero: None,
        };
        Ok(self.hands.wake(&sleeper).await?)
    }

    /// Another ElastiService on the same target, if the pause is by that one.
    async fn partner(
        &self,
        id: &ObjectId,
        object: &InForce,
        scaler: Option<&ObjectId>,
    ) -> Result<Option<String>, ScaleError> {
        let Some(scaler) = scaler else {
            return Ok(None);
        };
        let paused = self.hands.scaler(scaler).await?;
        let by = paused.and_then(|scaler| scaler.paused_by);
        let Some(by) = by.filter(|by| **by != *id.name) else {
            return Ok(None);
        };
        let other = self.read(&ObjectId::new(&id.namespace, &by)).await?;
        let target = object.spec.scale_target_ref.text();
        let shares = other.is_some_and(|it| it.spec.scale_target_ref.text() == target);
        Ok(shares.then_some(by))
    }

    async fn read(&self, id: &ObjectId) -> Result<Option<InForce>, ScaleError> {
        let objects: Api<ElastiService> = Api::namespaced(self.client.clone(), &id.namespace);
        let object = objects.get_opt(&id.name).await;
        let object = object.map_err(|error| ScaleError::Read(Box::new(error)))?;
        Ok(object.map(InForce::from))
    }
}

impl Wakes for Scaler {
    fn wake(&self, service: ServiceId) -> BoxFuture<'static, Result<bool, ScaleError>> {
        let this = self.clone();
        let wake = async move { this.wake_now(&service).await };
        timeout(PATIENCE, wake)
            .map(|outcome| outcome.unwrap_or(Err(ScaleError::Slow)))
            .boxed()
    }
}
