//! How the API server is asked for a kind that is not known beforehand: by its discovery, once.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use kube::{Client, api::ApiResource, core::GroupVersionKind, discovery::pinned_kind};

use crate::kind::Kind;

/// Kinds that are remembered; whoever names more makes us ask again.
const MOST: usize = 64;

/// The kinds that were asked for.
pub struct Kinds {
    client: Client,
    known: Mutex<HashMap<Kind, ApiResource>>,
}

impl Kinds {
    /// Asks with this client.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::default(),
        }
    }

    /// How it is asked for; nothing if it is not installed.
    pub async fn resource(&self, kind: &Kind) -> kube::Result<Option<ApiResource>> {
        let other = match kind {
            Kind::Other(other) => other,
            watched => return Ok(watched.resource()),
        };
        if let Some(known) = self.known().get(kind) {
            return Ok(Some(known.clone()));
        }
        let (group, version) = other.group_and_version();
        let wanted = GroupVersionKind::gvk(group, version, &other.kind);
        let found = match pinned_kind(&self.client, &wanted).await {
            Ok((found, _)) => found,
            Err(kube::Error::Discovery(_)) => return Ok(None),
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut known = self.known();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(kind.clone(), found.clone());
        Ok(Some(found))
    }

    /// Never kept across an await.
    fn known(&self) -> MutexGuard<'_, HashMap<Kind, ApiResource>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
