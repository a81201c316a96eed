//! Carries out what was decided: one write to the API server each, on the version that it was decided on.
//!
//! [`workload`] scales, [`scaler`] pauses, [`objects`] keeps what is derived. Nothing here decides anything.

mod objects;
mod scaler;
mod workload;

use std::sync::Arc;

use kube::{
    Client,
    api::{Patch, PatchParams, PostParams},
};
use thiserror::Error;
use weir_api::hold::names::FIELD_MANAGER;
use weir_role::cluster::ObjectId;

use super::kinds::Kinds;
use crate::metrics::OperatorMetrics;

/// Writes to the API server. Cheap to clone.
#[derive(Clone)]
pub struct Hands {
    client: Client,
    kinds: Arc<Kinds>,
    metrics: Arc<OperatorMetrics>,
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
        "the {what} may not be written; give the operator's ServiceAccount the rights that `weir manifests` has"
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

    /// Something could not even be read.
    pub fn unreadable(what: &'static str, error: kube::Error) -> Self {
        Self::of(what, error)
    }

    fn of(what: &'static str, error: kube::Error) -> Self {
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
    pub fn new(client: Client, kinds: Arc<Kinds>, metrics: Arc<OperatorMetrics>) -> Self {
        Self {
            client,
            kinds,
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
