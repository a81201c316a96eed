//! Kubernetes' own autoscaler; KEDA's is in `weir_wake`, since whoever wakes a target looks at it.

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;

/// What of a HorizontalPodAutoscaler matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hpa {
    /// It may scale to zero by itself.
    pub reaches_zero: bool,
}

impl Hpa {
    /// What matters of this one.
    pub fn of(object: &HorizontalPodAutoscaler) -> Self {
        let least = object.spec.as_ref().and_then(|spec| spec.min_replicas);
        Self {
            reaches_zero: least == Some(0),
        }
    }
}
