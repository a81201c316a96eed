//! How steer speaks to users: the types and reasons of its conditions. Events about the same matter
//! carry the condition's type as their reason.
//!
//! What is wrong with the object itself is reported through `Accepted` and `Adjusted`, which all
//! three resources share; here are the conditions of what it meets in the cluster.

/// Reason of [`ConditionType::BudgetHeld`] when it is false: even the most precise flavour that is
/// there has a larger error than the target.
pub const NO_FLAVOUR_WITHIN_BUDGET: &str = "NoFlavourWithinBudget";

/// Type of a condition of a `TrafficSchedule`. `Ready` and `BudgetHeld` are true when all is well,
/// the others when something is wrong, and absent when it never was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionType {
    /// There is a schedule, and it is in force.
    Ready,
    /// The mean error is within the target.
    BudgetHeld,
    /// Deployments whose precision does not parse, or that another one has already, are left out.
    FlavoursLeftOut,
    /// Deployments that an older schedule has claimed are left out.
    FlavoursClaimedByAnother,
    /// Flavours without usable emissions count as much as the most precise one.
    EmissionsAssumed,
    /// The forecast comes from a fallback; the message says which.
    ForecastFallback,
    /// KEDA is not installed: nothing scales by itself.
    AutoscalerMissing,
    /// There is no metrics server: the cpu triggers are left out.
    MetricsServerMissing,
    /// A queue exists with another type than the one asked for.
    QueueTypeRefused,
}

impl ConditionType {
    /// The type as the condition has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::BudgetHeld => "BudgetHeld",
            Self::FlavoursLeftOut => "FlavoursLeftOut",
            Self::FlavoursClaimedByAnother => "FlavoursClaimedByAnother",
            Self::EmissionsAssumed => "EmissionsAssumed",
            Self::ForecastFallback => "ForecastFallback",
            Self::AutoscalerMissing => "AutoscalerMissing",
            Self::MetricsServerMissing => "MetricsServerMissing",
            Self::QueueTypeRefused => "QueueTypeRefused",
        }
    }
}
