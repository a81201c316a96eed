//! Carries out what was decided: one write to the API server each, on the version that it was decided on.
//!
//! [`workload`] scales to zero, [`scaler`] pauses, [`objects`] keeps what is derived; what wakes is `weir_wake`'s. Nothing here
//! decides anything.

mod objects;
mod scaler;
mod workload;

use std::sync::Arc;

use kube::{
    Client,
    api::{Patch, PatchParams, PostParams},
};
use weir_api::hold::names::FIELD_MANAGER;
use weir_role::cluster::ObjectId;

pub use weir_wake::HandError;
use weir_wake::Kinds;

use crate::metrics::OperatorMetrics;

/// Writes to the API server. Cheap to clone.
#[derive(Clone)]
pub struct Hands {
    /// What wakes a target.
    pub waking: weir_wake::Hands,
    client: Client,
    metrics: Arc<OperatorMetrics>,
}

impl Hands {
    /// Hands that write with this client.
    pub fn new(client: Client, kinds: Arc<Kinds>, metrics: Arc<OperatorMetrics>) -> Self {
        let counts = Arc::clone(&metrics);
        let wrote = Arc::new(move |what| counts.wrote(what));
        Self {
            waking: weir_wake::Hands::new(client.clone(), kinds, wrote),
            client,
            metrics,
        }
    }

    /// What came of a write, counted.
    fn wrote<T>(&self, what: &'static str, outcome: kube::Result<T>) -> Result<T, HandError> {
        self.metrics.wrote(what);
        outcome.map_err(|error| HandError::of(what, error))
    }

    fn api<K>(&self, id: &ObjectId) -> kube::Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        kube::Api::namespaced(self.client.clone(), &id.namespace)
    }
}

fn patching() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

fn posting() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// A merge patch: what it does not name stays.
fn merge(value: serde_json::Value) -> Patch<serde_json::Value> {
    Patch::Merge(value)
}
