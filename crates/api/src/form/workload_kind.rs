//! The kinds of workload that an `ElastiService` scales, and the older spellings of them.
//!
//! `scaleTargetRef.kind` used to be the plural resource name for Deployments and Rollouts; those
//! two still work. Any other kind is left as it is: whether it has a `/scale` is the API server's
//! to say.

/// The workloads that Weir has rights for out of the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkloadKind {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` StatefulSet.
    StatefulSet,
    /// `argoproj.io/v1alpha1` Rollout, of Argo Rollouts.
    Rollout,
}

impl WorkloadKind {
    /// All of them, in the order in which messages name them.
    pub const ALL: [Self; 3] = [Self::Deployment, Self::StatefulSet, Self::Rollout];

    /// The workload that a reference means, by its present or its older spelling.
    pub fn recognise(api_version: &str, kind: &str) -> Option<Self> {
        let (api_version, kind) = canonical(api_version, kind);
        Self::ALL
            .into_iter()
            .find(|known| known.api_version() == api_version && known.kind() == kind)
    }

    /// The `apiVersion` of the workload's objects.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::Deployment | Self::StatefulSet => "apps/v1",
            Self::Rollout => "argoproj.io/v1alpha1",
        }
    }

    /// The `kind` of the workload's objects.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::Rollout => "Rollout",
        }
    }

    /// The name of the resource in the API server's paths and in roles.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Deployment => "deployments",
            Self::StatefulSet => "statefulsets",
            Self::Rollout => "rollouts",
        }
    }
}

/// The `(apiVersion, kind)` that a reference means: `deployments` and `rollouts` are the older
/// spellings of Deployment and Rollout; everything else means itself.
pub fn canonical<'a>(api_version: &'a str, kind: &'a str) -> (&'a str, &'a str) {
    let kind = match kind {
        "deployments" => WorkloadKind::Deployment.kind(),
        "rollouts" => WorkloadKind::Rollout.kind(),
        other => other,
    };
    (api_version, kind)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn older_spellings_mean_the_same() {
        let argo = "argoproj.io/v1alpha1";
        assert_eq!(
            canonical("apps/v1", "deployments"),
            ("apps/v1", "Deployment")
        );
        assert_eq!(canonical(argo, "rollouts"), (argo, "Rollout"));
        assert_eq!(
            WorkloadKind::recognise(argo, "rollouts"),
            Some(WorkloadKind::Rollout)
        );
        // The older system knew no plural of this one, so it is no alias.
        assert_eq!(
            canonical("apps/v1", "statefulsets"),
            ("apps/v1", "statefulsets")
        );
        assert_eq!(WorkloadKind::recognise("apps/v1", "statefulsets"), None);
        assert_eq!(WorkloadKind::recognise("apps/v1", "rollouts"), None);
    }

    #[test]
    fn every_kind_is_recognised_by_its_own_name() {
        for known in WorkloadKind::ALL {
            assert_eq!(
                WorkloadKind::recognise(known.api_version(), known.kind()),
                Some(known)
            );
        }
    }

    proptest! {
        #[test]
        fn the_canonical_form_is_final(api_version in "[a-z/0-9.]{0,12}", kind in "[A-Za-z]{0,12}") {
            let (once_version, once_kind) = canonical(&api_version, &kind);
            prop_assert_eq!(canonical(once_version, once_kind), (once_version, once_kind));
            prop_assert_eq!(once_version, &api_version);
        }
    }
}
