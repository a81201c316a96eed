//! What a target may be.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use kube::{Resource, api::ApiResource, core::GroupVersionKind};
use weir_api::hold::ScaleTargetRef;

/// The kinds of targets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `apps/v1`.
    Deployment,
    /// `apps/v1`.
    StatefulSet,
    /// Argo's, `argoproj.io/v1alpha1`.
    Rollout,
    /// Any other with `/scale`. It is not watched, but asked for at each look; its pods are seen in the Service's slices.
    Other(Arc<OtherKind>),
}

/// A kind that is not known beforehand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OtherKind {
    /// Such as `apps/v1`.
    pub api_version: String,
    /// Such as `ReplicaSet`.
    pub kind: String,
}

impl OtherKind {
    /// The group, which may be empty, and the version.
    pub fn group_and_version(&self) -> (&str, &str) {
        self.api_version
            .split_once('/')
            .unwrap_or(("", &self.api_version))
    }
}

impl Kind {
    /// The kind that a reference names.
    pub fn of(reference: &ScaleTargetRef) -> Self {
        match reference.canonical() {
            ("apps/v1", "Deployment") => Self::Deployment,
            ("apps/v1", "StatefulSet") => Self::StatefulSet,
            ("argoproj.io/v1alpha1", "Rollout") => Self::Rollout,
            (api_version, kind) => Self::other(api_version, kind),
        }
    }

    /// How the API server is asked for it, where that is known beforehand; see `kinds` for others.
    pub fn resource(&self) -> Option<ApiResource> {
        fn of<K: Resource<DynamicType = ()>>() -> ApiResource {
            ApiResource::erase::<K>(&())
        }
        match self {
            Self::Deployment => Some(of::<Deployment>()),
            Self::StatefulSet => Some(of::<StatefulSet>()),
            Self::Rollout => Some(rollouts()),
            Self::Other(_) => None,
        }
    }

    fn other(api_version: &str, kind: &str) -> Self {
        Self::Other(Arc::new(OtherKind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        }))
    }
}

/// Argo's; nothing of it need be known to scale it.
fn rollouts() -> ApiResource {
    let kind = GroupVersionKind::gvk("argoproj.io", "v1alpha1", "Rollout");
    ApiResource::from_gvk_with_plural(&kind, "rollouts")
}
