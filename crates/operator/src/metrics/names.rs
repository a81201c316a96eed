//! Metrics of our own, beside the peers' in `weir_api::hold::names::metrics`.

/// 1 in the process that leads.
pub const LEADER: &str = "weir_operator_leader";
/// Wake signals and what came of them, by [`OUTCOME`].
pub const WAKES: &str = "weir_operator_wakes";
/// Questions to triggers and what came of them, by [`OUTCOME`].
pub const TRIGGERS: &str = "weir_operator_triggers";
/// Reconciles that failed, by [`REASON`].
pub const RECONCILE_ERRORS: &str = "weir_operator_reconcile_errors";
/// `ElastiService`s, by [`PHASE`].
pub const SERVICES: &str = "weir_operator_services";
/// Writes to the API server, by [`KIND`].
pub const API_WRITES: &str = "weir_operator_api_writes";
/// Always 1, by [`VERSION`].
pub const BUILD_INFO: &str = "weir_operator_build_info";

/// Label: what came of it, out of a fixed set.
pub const OUTCOME: &str = "outcome";
/// Label: a reason out of a fixed set.
pub const REASON: &str = "reason";
/// Label: how far between awake and asleep.
pub const PHASE: &str = "phase";
/// Label: what was written.
pub const KIND: &str = "kind";
/// Label: the version of the program.
pub const VERSION: &str = "version";

/// Value of [`crate::metrics`]' `action`: something was added or opened.
pub const ADDED: &str = "added";
/// Value of `action`: something was removed or closed.
pub const REMOVED: &str = "removed";
