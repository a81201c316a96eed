//! Metrics of our own, beside the peers' in `weir_api::hold::names::metrics`.

/// Histogram of what a wake takes, from the first request that was held, by [`PHASE`], namespace and source.
pub const WAKE_SECONDS: &str = "weir_resolver_wake_seconds";
/// Requests that are held.
pub const HELD_REQUESTS: &str = "weir_resolver_held_requests";
/// Bytes of bodies that are kept in memory.
pub const HELD_BYTES: &str = "weir_resolver_held_bytes";
/// Connections from clients.
pub const CONNECTIONS: &str = "weir_resolver_connections";
/// Connections that became tunnels.
pub const TUNNELS: &str = "weir_resolver_tunnels";
/// Requests that were not forwarded, by [`REASON`].
pub const REFUSED: &str = "weir_resolver_refused";
/// Requests that were sent again, by [`REASON`].
pub const RETRIES: &str = "weir_resolver_retries";
/// Connections that were passed through and have ended, by namespace, source, [`PROTOCOL`] and [`END`].
pub const PASSED_THROUGH: &str = "weir_resolver_passed_through";
/// Bytes of those, by namespace, source and [`DIRECTION`].
pub const PASSED_THROUGH_BYTES: &str = "weir_resolver_passed_through_bytes";
/// Pods that were ready by their own probes before the kubelet said so, by namespace and source.
pub const EARLY_READY: &str = "weir_resolver_early_ready";
/// Pods of those that failed before the kubelet had asked them.
pub const EARLY_WITHDRAWN: &str = "weir_resolver_early_withdrawn";
/// Probes of pods that start, by [`RESULT`].
pub const EARLY_PROBES: &str = "weir_resolver_early_probes";
/// Services that were to be woken without an operator, by [`RESULT`].
pub const SCALES: &str = "weir_resolver_scales";
/// Always 1, by [`VERSION`].
pub const BUILD_INFO: &str = "weir_resolver_build_info";

/// Label: how far a wake has come.
pub const PHASE: &str = "phase";
/// Label: a reason out of a fixed set.
pub const REASON: &str = "reason";
/// Label: how a probe or a wake ended.
pub const RESULT: &str = "result";
/// Label: what was spoken, `tls` or `tcp`.
pub const PROTOCOL: &str = "protocol";
/// Label: how a connection ended.
pub const END: &str = "end";
/// Label: [`SENT`] or [`RECEIVED`].
pub const DIRECTION: &str = "direction";
/// Label: the version of the program.
pub const VERSION: &str = "version";

/// Value of [`PHASE`]: the operator has answered the signal.
pub const SIGNALLED: &str = "signalled";
/// Value of [`PHASE`]: an endpoint is ready.
pub const READY: &str = "ready";
/// Value of [`PHASE`]: the first byte of a held request goes to a pod.
pub const FIRST_BYTE: &str = "first_byte";
/// Value of [`DIRECTION`]: from clients to pods.
pub const SENT: &str = "sent";
/// Value of [`DIRECTION`]: from pods to clients.
pub const RECEIVED: &str = "received";
/// Value of [`REASON`]: the connection came from an address that is not served.
pub const SOURCE_NOT_ALLOWED: &str = "source_not_allowed";
/// Value of a label for what has no name of its own.
pub const OTHER: &str = "other";

/// Upper bounds of the buckets of [`WAKE_SECONDS`].
pub const WAKE_BUCKETS: [f64; 11] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0];
