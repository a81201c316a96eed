//! Headers of steered requests, and the paths of the decision engine.

/// Header by which a client forces a flavour (`precision-50` or `50`), by which the consumer tells
/// the target which one was chosen (`50`), and on which the VirtualService routes.
pub const FLAVOUR_HEADER: &str = "x-carbonrouter";
/// Header by which a client asks to be served at once; read by the router.
pub const URGENT_HEADER: &str = "x-urgent";
/// Header that tells the target that a request is urgent.
pub const TARGET_URGENT_HEADER: &str = "x-carbonrouter-urgent";
/// Value of [`URGENT_HEADER`] and [`TARGET_URGENT_HEADER`].
pub const URGENT: &str = "true";
/// Header with a request's deadline, in seconds or as a time; read by router and consumer.
pub const DEADLINE_HEADER: &str = "x-carbonrouter-deadline";
/// Header by which a client asks for an asynchronous answer; read by the router.
pub const PREFER_HEADER: &str = "prefer";
/// The preference in [`PREFER_HEADER`] that asks for it.
pub const PREFER_ASYNC: &str = "respond-async";
/// Header of a 502 or 504 that says whether the request may have been executed; read by clients.
pub const OUTCOME_HEADER: &str = "x-weir-outcome";
/// Value of [`OUTCOME_HEADER`]: perhaps executed.
pub const OUTCOME_UNKNOWN: &str = "unknown";

/// Metrics of router, consumer and engine; read by Prometheus.
pub const METRICS_PATH: &str = "/metrics";
/// Whether the process lives; read by the kubelet.
pub const HEALTH_PATH: &str = "/healthz";
/// Whether the process may be sent requests; read by the kubelet.
pub const READY_PATH: &str = "/readyz";
/// The engine's default session; read by the original's scripts.
pub const DEFAULT_SCHEDULE_PATH: &str = "/schedule";
/// Sets a manual schedule for the default session; used by the original's scripts.
pub const SET_SCHEDULE_PATH: &str = "/setschedule";
/// All of the engine's sessions.
pub const SCHEDULES_PATH: &str = "/schedules";
/// The engine's own description.
pub const OPENAPI_PATH: &str = "/openapi.json";

/// Where the operator puts a schedule's configuration.
pub fn config_path(namespace: &str, name: &str) -> String {
    format!("/config/{namespace}/{name}")
}

/// Where the operator, routers and consumers get a schedule.
pub fn schedule_path(namespace: &str, name: &str) -> String {
    format!("{DEFAULT_SCHEDULE_PATH}/{namespace}/{name}")
}

/// Where a manual schedule is set for one validity window.
pub fn manual_schedule_path(namespace: &str, name: &str) -> String {
    format!("{}/manual", schedule_path(namespace, name))
}

/// Where the engine tells of changes, as server-sent events.
pub fn schedule_events_path(namespace: &str, name: &str) -> String {
    format!("{}/events", schedule_path(namespace, name))
}

/// Where consumers report what was really served.
pub fn feedback_path(namespace: &str, name: &str) -> String {
    format!("/feedback/{namespace}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_asked_as_the_original_is() {
        assert_eq!(config_path("shop", "s"), "/config/shop/s");
        assert_eq!(schedule_path("shop", "s"), "/schedule/shop/s");
        assert_eq!(manual_schedule_path("shop", "s"), "/schedule/shop/s/manual");
        assert_eq!(schedule_events_path("shop", "s"), "/schedule/shop/s/events");
        assert_eq!(feedback_path("shop", "s"), "/feedback/shop/s");
    }
}
