//! How hold speaks to users: the reasons of its Events and the types of its conditions.
//!
//! What is wrong with the object itself is reported through `Accepted` and `Adjusted`, which all
//! three resources share; here are the conditions of what it meets in the cluster.

/// Reason of an Event on an `ElastiService`. An Event about a failure that has a condition carries
/// that condition's type as its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventReason {
    /// The target was scaled.
    SuccessToScale,
    /// The target could not be scaled.
    FailedToScale,
    /// Phase: pods answer by themselves.
    Serving,
    /// Phase: requests already go to the resolver, the pods are still there.
    Draining,
    /// Phase: no pods; the resolver holds what comes.
    Asleep,
    /// Phase: requests are held while pods start.
    Waking,
}

impl EventReason {
    /// The reason as the Event has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SuccessToScale => "SuccessToScale",
            Self::FailedToScale => "FailedToScale",
            Self::Serving => "Serving",
            Self::Draining => "Draining",
            Self::Asleep => "Asleep",
            Self::Waking => "Waking",
        }
    }
}

/// Type of a condition of an `ElastiService`. All but [`ConditionType::Ready`] are true when
/// something is wrong, and absent when it never was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionType {
    /// The service is held as the spec says.
    Ready,
    /// The target is Ready, but the Service leads to none of its pods.
    ServiceSelectsNoReadyPod,
    /// Resolvers cannot connect to a Ready pod; the message has the NetworkPolicy to add.
    TargetUnreachable,
    /// The Service is headless, has no selector, or is an ExternalName: it cannot be held.
    ServiceCannotBeHeld,
    /// Ports of the Service that are not TCP are not held.
    PortsNotHeld,
    /// A `Local` traffic policy, and a node with pods of the target but without a ready resolver.
    ResolverMissingOnNode,
    /// An older `ElastiService` holds the same Service.
    ServiceHeldByAnother,
    /// Services that are not held select the target's pods.
    TargetServedByOthers,
    /// The cut-over to the resolver was not seen to work, so the target was not put to sleep.
    CutOverNotSeen,
    /// No port is left for a port of the Service; it is found by its Host header.
    ResolverPortsExhausted,
    /// A pause of the ScaledObject that is not ours.
    PausedByUser,
    /// The HPA has `minReplicas: 0` and may put the target to sleep by itself.
    AutoscalerReachesZero,
    /// A trigger cannot be used here, such as `network` with pods on the host's network.
    TriggerNotUsable,
    /// A trigger could not be evaluated, so the target stays as it is.
    TriggerFailing,
    /// For information: the target's pods have no `preStop`; the message has the line to add.
    PreStopMissing,
}

impl ConditionType {
    /// The type as the condition has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::ServiceSelectsNoReadyPod => "ServiceSelectsNoReadyPod",
            Self::TargetUnreachable => "TargetUnreachable",
            Self::ServiceCannotBeHeld => "ServiceCannotBeHeld",
            Self::PortsNotHeld => "PortsNotHeld",
            Self::ResolverMissingOnNode => "ResolverMissingOnNode",
            Self::ServiceHeldByAnother => "ServiceHeldByAnother",
            Self::TargetServedByOthers => "TargetServedByOthers",
            Self::CutOverNotSeen => "CutOverNotSeen",
            Self::ResolverPortsExhausted => "ResolverPortsExhausted",
            Self::PausedByUser => "PausedByUser",
            Self::AutoscalerReachesZero => "AutoscalerReachesZero",
            Self::TriggerNotUsable => "TriggerNotUsable",
            Self::TriggerFailing => "TriggerFailing",
            Self::PreStopMissing => "PreStopMissing",
        }
    }
}
