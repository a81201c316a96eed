//! The original's metrics, which its dashboards and autoscalers know by these names.

/// Weight, by [`NAMESPACE`], [`SCHEDULE`] and [`FLAVOUR`].
pub const SCHEDULE_FLAVOUR_WEIGHT: &str = "schedule_flavour_weight";
/// Until when a schedule holds, by [`NAMESPACE`] and [`SCHEDULE`].
pub const SCHEDULE_VALID_UNTIL: &str = "schedule_valid_until";
/// Credit, by [`NAMESPACE`], [`SCHEDULE`] and [`POLICY`], as the next three.
pub const SCHEDULER_CREDIT_BALANCE: &str = "scheduler_credit_balance";
/// How fast credit changes.
pub const SCHEDULER_CREDIT_VELOCITY: &str = "scheduler_credit_velocity";
/// Mean precision.
pub const SCHEDULER_AVG_PRECISION: &str = "scheduler_avg_precision";
/// The throttle.
pub const SCHEDULER_PROCESSING_THROTTLE: &str = "scheduler_processing_throttle";
/// The most replicas, also by [`COMPONENT`].
pub const SCHEDULER_EFFECTIVE_REPLICA_CEILING: &str = "scheduler_effective_replica_ceiling";
/// Choices, also by [`STRATEGY`].
pub const SCHEDULER_POLICY_CHOICE_TOTAL: &str = "scheduler_policy_choice_total";
/// Forecast intensity, also by [`HORIZON`].
pub const SCHEDULER_FORECAST_INTENSITY: &str = "scheduler_forecast_intensity";
/// The same under another name; it carries no timestamp, as Prometheus drops future ones.
pub const SCHEDULER_FORECAST_INTENSITY_TIMESTAMPED: &str =
    "scheduler_forecast_intensity_timestamped";

/// Requests at the router, by [`METHOD`], [`STATUS`], [`QTYPE`], [`FLAVOUR`] and [`FORCED`].
pub const ROUTER_INGRESS_HTTP_REQUESTS_TOTAL: &str = "router_ingress_http_requests_total";
/// Time at the router, by [`QTYPE`] and [`FLAVOUR`].
pub const ROUTER_REQUEST_DURATION_SECONDS: &str = "router_request_duration_seconds";
/// Messages sent, by [`QUEUE`].
pub const ROUTER_MESSAGES_PUBLISHED_TOTAL: &str = "router_messages_published_total";
/// For how long the router's schedule still holds.
pub const ROUTER_SCHEDULE_VALID_SECONDS: &str = "router_schedule_valid_seconds";
/// Requests answered, by the same labels as at the router, but exported by the consumer; the engine
/// reads demand from it.
pub const ROUTER_HTTP_REQUESTS_TOTAL: &str = "router_http_requests_total";
/// Messages taken, by [`QUEUE_TYPE`] and [`FLAVOUR`]; KEDA scales the consumer by it.
pub const CONSUMER_MESSAGES_TOTAL: &str = "consumer_messages_total";
/// Time at the target, by [`FLAVOUR`].
pub const CONSUMER_FORWARD_SECONDS: &str = "consumer_forward_seconds";
/// Time in the queue, by [`FLAVOUR`].
pub const CONSUMER_QUEUE_DURATION_SECONDS: &str = "consumer_queue_duration_seconds";
/// Attempts after the first, by [`FLAVOUR`] and [`REASON`].
pub const CONSUMER_FORWARD_RETRIES_TOTAL: &str = "consumer_forward_retries_total";
/// The throttle that the consumer heeds, by [`SCOPE`], as the next two.
pub const CONSUMER_PROCESSING_THROTTLE_FACTOR: &str = "consumer_processing_throttle_factor";
/// The most requests in flight.
pub const CONSUMER_PROCESSING_INFLIGHT_LIMIT: &str = "consumer_processing_inflight_limit";
/// Requests in flight.
pub const CONSUMER_PROCESSING_INFLIGHT_ACTIVE: &str = "consumer_processing_inflight_active";

/// The operator's reconciles, as controller-runtime counts them.
pub const RECONCILE_TOTAL: &str = "controller_runtime_reconcile_total";
/// The operator's failed reconciles.
pub const RECONCILE_ERRORS_TOTAL: &str = "controller_runtime_reconcile_errors_total";
/// How long reconciles take.
pub const RECONCILE_TIME_SECONDS: &str = "controller_runtime_reconcile_time_seconds";
/// RabbitMQ's own count of waiting messages, which KEDA's Prometheus triggers ask for.
pub const RABBITMQ_MESSAGES_READY: &str = "rabbitmq_detailed_queue_messages_ready";

/// Label: the schedule's namespace.
pub const NAMESPACE: &str = "namespace";
/// Label: the schedule's name.
pub const SCHEDULE: &str = "schedule";
/// Label: the flavour's name.
pub const FLAVOUR: &str = "flavour";
/// Label: the policy's name.
pub const POLICY: &str = "policy";
/// Label: `router`, `consumer` or `target`.
pub const COMPONENT: &str = "component";
/// Label: the flavour that a policy chose.
pub const STRATEGY: &str = "strategy";
/// Label: [`HORIZON_NOW`], [`HORIZON_NEXT`], or hours as [`horizon_hours`] writes them.
pub const HORIZON: &str = "horizon";
/// Label: the request's method, of a bounded set.
pub const METHOD: &str = "method";
/// Label: the response's status, of a bounded set.
pub const STATUS: &str = "status";
/// Label: `queue` or `direct`, at the router.
pub const QTYPE: &str = "qtype";
/// Label: `queue` or `direct`, at the consumer.
pub const QUEUE_TYPE: &str = "queue_type";
/// Label: [`FORCED_TRUE`] or [`FORCED_FALSE`].
pub const FORCED: &str = "forced";
/// Label: the queue's name.
pub const QUEUE: &str = "queue";
/// Label: why an attempt failed, of a bounded set.
pub const REASON: &str = "reason";
/// Label: always [`SCOPE_GLOBAL`].
pub const SCOPE: &str = "scope";

/// Value of [`HORIZON`]: the present slot.
pub const HORIZON_NOW: &str = "now";
/// Value of [`HORIZON`]: the next slot.
pub const HORIZON_NEXT: &str = "next";
/// Value of [`FORCED`] when the client chose the flavour; the original is written in Python.
pub const FORCED_TRUE: &str = "True";
/// Value of [`FORCED`] when it did not.
pub const FORCED_FALSE: &str = "False";
/// Value of [`SCOPE`].
pub const SCOPE_GLOBAL: &str = "global";

/// Value of [`HORIZON`] for a slot so many hours ahead: `1.5h`.
pub fn horizon_hours(hours: f64) -> String {
    format!("{hours:.1}h")
}

#[cfg(test)]
mod tests {
    #[test]
    fn horizons_have_one_decimal_place() {
        assert_eq!(super::horizon_hours(0.5), "0.5h");
        assert_eq!(super::horizon_hours(12.0), "12.0h");
    }
}
