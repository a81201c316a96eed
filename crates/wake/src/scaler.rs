//! KEDA's ScaledObject: whose pause it has, and our fences on it.

use std::collections::BTreeMap;

use kube::{CustomResource, ResourceExt};
use serde::{Deserialize, Serialize};
use weir_api::hold::names::{
    FENCE_PREFIX, KEDA_PAUSED, KEDA_PAUSED_ANNOTATION, KEDA_PAUSED_REPLICAS,
    KEDA_PAUSED_REPLICAS_ANNOTATION, PAUSED_BY_ANNOTATION,
};
use weir_hold::facts::{Pause, Version};

/// A ScaledObject; all that is read of it are its annotations.
#[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize)]
#[kube(
    group = "keda.sh",
    version = "v1alpha1",
    kind = "ScaledObject",
    namespaced,
    schema = "disabled"
)]
pub struct ScaledObjectSpec {}

/// What of a ScaledObject matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scaler {
    /// Its version.
    pub version: Option<Version>,
    /// `metadata.generation`.
    pub generation: i64,
    /// Who paused it, if it is paused by one of ours.
    pub paused_by: Option<String>,
    /// Its annotation `paused`.
    pub paused: Option<String>,
    /// Its annotation `paused-replicas`.
    pub paused_replicas: Option<String>,
    /// Our fences on it, by their key.
    pub fences: BTreeMap<String, String>,
}

impl Scaler {
    /// What matters of this one.
    pub fn of(object: &ScaledObject) -> Self {
        let annotation = |key: &str| object.annotations().get(key).cloned();
        Self {
            version: object.resource_version().map(Version),
            generation: object.metadata.generation.unwrap_or_default(),
            paused_by: annotation(PAUSED_BY_ANNOTATION),
            paused: annotation(KEDA_PAUSED_ANNOTATION),
            paused_replicas: annotation(KEDA_PAUSED_REPLICAS_ANNOTATION),
            fences: fences(object),
        }
    }

    /// Whose pause it is, as this ElastiService sees it. On a target with several, the pause of one is that of all.
    pub fn pause(&self, group: &[&str]) -> Pause {
        let peers = self.paused.as_deref() == Some(KEDA_PAUSED)
            && self.paused_replicas.as_deref() == Some(KEDA_PAUSED_REPLICAS);
        match &self.paused_by {
            Some(by) if group.contains(&by.as_str()) => Pause::Ours,
            _ if peers => Pause::Peers,
            _ if self.is_paused() => Pause::Users,
            _ => Pause::No,
        }
    }

    /// KEDA takes `paused-replicas` alone for a pause as well.
    fn is_paused(&self) -> bool {
        let paused = self.paused.as_deref();
        paused.is_some_and(|paused| paused != "false") || self.paused_replicas.is_some()
    }
}

/// Our fences on an object.
pub fn fences(object: &impl ResourceExt) -> BTreeMap<String, String> {
    let annotations = object.annotations().iter();
    annotations
        .filter(|(key, _)| key.starts_with(FENCE_PREFIX))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaler(by: Option<&str>, paused: Option<&str>, replicas: Option<&str>) -> Scaler {
        Scaler {
            version: None,
            generation: 1,
            paused_by: by.map(str::to_owned),
            paused: paused.map(str::to_owned),
            paused_replicas: replicas.map(str::to_owned),
            fences: BTreeMap::new(),
        }
    }

    #[test]
    fn a_pause_is_told_by_its_mark() {
        for (by, paused, replicas, expected) in [
            (None, None, None, Pause::No),
            (None, Some("false"), None, Pause::No),
            (None, Some("true"), None, Pause::Users),
            (None, None, Some("3"), Pause::Users),
            (None, None, Some("0"), Pause::Users),
            (None, Some("true"), Some("0"), Pause::Peers),
            (Some("web"), Some("true"), Some("0"), Pause::Ours),
            // Half of a pause with our mark is ours, and is removed whole.
            (Some("web"), None, None, Pause::Ours),
            (Some("other"), Some("true"), Some("0"), Pause::Peers),
            (Some("other"), Some("true"), Some("1"), Pause::Users),
        ] {
            assert_eq!(scaler(by, paused, replicas).pause(&["web"]), expected);
        }
    }
}
