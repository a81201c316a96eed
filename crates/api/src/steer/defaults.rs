//! Steer's numbers: ports, limits, default values and time spans, those of the resource, of the
//! controllers, of the engine, and of router and consumer.
//!
//! A constant without a unit in its name has it in its type; those without either are plain
//! numbers. The coefficients of the policies belong to the policies and are not here.

use std::time::Duration;

/// How one part of a schedule scales by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoscalingDefaults {
    /// Fewest replicas.
    pub min_replica_count: i32,
    /// Most replicas.
    pub max_replica_count: i32,
    /// Seconds without load before replicas are taken away.
    pub cooldown_period: i32,
    /// CPU use, in percent of the request, above which replicas are added.
    pub cpu_utilization: i32,
}

/// `spec.router.autoscaling`.
pub const ROUTER_AUTOSCALING: AutoscalingDefaults = AutoscalingDefaults {
    min_replica_count: 1,
    max_replica_count: 15,
    cooldown_period: 60,
    cpu_utilization: 80,
};
/// `spec.consumer.autoscaling` and `spec.target.autoscaling`.
pub const WORKER_AUTOSCALING: AutoscalingDefaults = AutoscalingDefaults {
    min_replica_count: 1,
    max_replica_count: 12,
    cooldown_period: 120,
    cpu_utilization: 80,
};
/// The fewest replicas of a router, whatever the spec says; also the lowest carbon ceiling.
pub const ROUTER_MIN_REPLICAS: i32 = 1;

/// The policies by name, ours first.
pub const POLICIES: [&str; 7] = [
    "optimal",
    "credit-greedy",
    "forecast-aware",
    "forecast-aware-global",
    "p100",
    "round-robin",
    "random",
];
/// The policy of schedules that name none.
pub const POLICY: &str = "optimal";
/// The policy that runs where an unknown one is named.
pub const UNKNOWN_POLICY_RUNS: &str = "credit-greedy";
/// `scheduler.evaluator`: any word but [`CONSUMER_EVALUATOR`] means this one.
pub const EVALUATOR: &str = "router";
/// The other evaluator.
pub const CONSUMER_EVALUATOR: &str = "consumer";
/// `scheduler.budgetWindow`: a week.
pub const BUDGET_WINDOW: &str = "168h";
/// The shortest `budgetWindow`.
pub const BUDGET_WINDOW_MIN: Duration = Duration::from_hours(1);
/// The longest `budgetWindow`: a leap year.
pub const BUDGET_WINDOW_MAX: Duration = Duration::from_hours(366 * 24);
/// The most slots in `status.forecastSchedule`.
pub const STATUS_FORECAST_SLOTS: u32 = 96;

/// When the schedule controller asks again for a schedule that is pending.
pub const PENDING_RETRY: Duration = Duration::from_secs(5);
/// When it looks again at the latest, however long the schedule holds.
pub const RESYNC_AFTER: Duration = Duration::from_mins(1);
/// `pollingInterval` of the ScaledObjects, in seconds.
pub const KEDA_POLLING_INTERVAL_SECONDS: i32 = 5;
/// What the rabbitmq triggers measure.
pub const KEDA_QUEUE_MODE: &str = "QueueLength";
/// Messages per replica in the rabbitmq triggers.
pub const KEDA_QUEUE_LENGTH: i32 = 300;
/// Threshold of the consumer's Prometheus trigger on waiting messages.
pub const KEDA_CONSUMER_READY_THRESHOLD: i32 = 1;
/// Threshold of the consumer's Prometheus trigger on messages taken.
pub const KEDA_CONSUMER_TAKEN_THRESHOLD: i32 = 500;
/// Over which time that trigger counts.
pub const KEDA_CONSUMER_TAKEN_WINDOW: Duration = Duration::from_mins(1);
/// Threshold of a flavour's Prometheus trigger on waiting messages.
pub const KEDA_FLAVOUR_READY_THRESHOLD: i32 = 300;
/// Over which time that trigger takes the most.
pub const KEDA_FLAVOUR_READY_WINDOW: Duration = Duration::from_secs(30);
/// From which value on the Prometheus triggers wake a part that is at zero.
pub const KEDA_ACTIVATION_THRESHOLD: i32 = 1;

/// `ENABLE_LEADER_ELECTION`.
pub const ENABLE_LEADER_ELECTION: bool = false;
/// `METRICS_BIND_ADDRESS`: off.
pub const METRICS_BIND_ADDRESS: &str = "0";
/// `METRICS_SECURE`.
pub const METRICS_SECURE: bool = true;
/// `HEALTH_PROBE_BIND_ADDRESS`.
pub const HEALTH_PROBE_BIND_ADDRESS: &str = ":8081";
/// `failurePolicy` of the webhook: admission never depends on us being up.
pub const WEBHOOK_FAILURE_POLICY: &str = "Ignore";

/// The engine's port.
pub const ENGINE_PORT: u16 = 80;
/// `TARGET_ERROR`, as a share of 1.
pub const TARGET_ERROR: f64 = 0.15;
/// `CREDIT_MIN`.
pub const CREDIT_MIN: f64 = -1.0;
/// `CREDIT_MAX`.
pub const CREDIT_MAX: f64 = 1.0;
/// `CREDIT_SENSITIVITY`.
pub const CREDIT_SENSITIVITY: f64 = 0.33;
/// `CREDIT_WINDOW`: a number of feedback windows, not seconds.
pub const CREDIT_WINDOW: u32 = 300;
/// `SCHEDULE_VALID_FOR`.
pub const SCHEDULE_VALID_FOR: Duration = Duration::from_mins(1);
/// `SCHEDULE_EVAL_INTERVAL_SEC`.
pub const SCHEDULE_EVAL_INTERVAL: Duration = Duration::from_secs(15);
/// `METRICS_POLL_INTERVAL_SEC`.
pub const METRICS_POLL_INTERVAL: Duration = Duration::from_secs(15);
/// `STRATEGY_DISCOVERY_INTERVAL`.
pub const DISCOVERY_INTERVAL: Duration = Duration::from_mins(1);
/// `CARBON_API_TARGET`, and what an unknown `carbonTarget` means.
pub const CARBON_TARGET: &str = "national";
/// `CARBON_API_TIMEOUT`.
pub const CARBON_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest time-out; longer ones are clamped to it.
pub const CARBON_TIMEOUT_MAX_SECONDS: i32 = 30;
/// `CARBON_API_CACHE_TTL`.
pub const CARBON_CACHE_TTL: Duration = Duration::from_secs(5);
/// `DEFAULT_SCHEDULE_NAMESPACE`.
pub const DEFAULT_SCHEDULE_NAMESPACE: &str = "default";
/// `DEFAULT_SCHEDULE_NAME`.
pub const DEFAULT_SCHEDULE_NAME: &str = "default";
/// The flavours of a schedule that has none: precision in percent, and relative cost.
pub const FLAVOURS: [(u32, f64); 3] = [(100, 1.0), (50, 0.6), (30, 0.3)];

/// `THROTTLE_MIN`.
pub const THROTTLE_MIN: f64 = 0.05;
/// `THROTTLE_INTENSITY_FLOOR`, in gCO2eq per kWh.
pub const THROTTLE_INTENSITY_FLOOR: f64 = 150.0;
/// `THROTTLE_INTENSITY_CEILING`, in gCO2eq per kWh.
pub const THROTTLE_INTENSITY_CEILING: f64 = 350.0;
/// `THROTTLE_GREEN_BLEND`.
pub const THROTTLE_GREEN_BLEND: f64 = 0.6;
/// `THROTTLE_GREEN_OVERRIDE_THRESHOLD`.
pub const THROTTLE_GREEN_OVERRIDE_THRESHOLD: f64 = 0.99;
/// Slots among which a cleaner one to wait for is looked for, the present one included.
pub const THROTTLE_LOOKAHEAD_SLOTS: usize = 6;
/// How many times dirtier than that slot the present must be before the throttle waits for it.
pub const THROTTLE_LOOKAHEAD_RATIO: f64 = 1.2;
/// The share of its remaining deadline that a request may be expected to wait for the throttle.
pub const THROTTLE_MAX_WAIT_SHARE: f64 = 0.5;

/// The router's port for the application's requests.
pub const ROUTER_HTTP_PORT: u16 = 8000;
/// `METRICS_PORT` of engine, router and consumer: metrics and health.
pub const METRICS_PORT: u16 = 8001;
/// `TS_NAMESPACE`; the default of `TS_NAME` is [`super::names::FALLBACK_SCHEDULE`].
pub const TS_NAMESPACE: &str = "default";
/// `TARGET_SVC_SCHEME`.
pub const TARGET_SCHEME: &str = "http";
/// `RPC_TIMEOUT_SEC`.
pub const RPC_TIMEOUT: Duration = Duration::from_mins(1);
/// The largest body of a queued request (a setting); larger ones go directly, or get 413.
pub const QUEUED_BODY_MAX_BYTES: usize = 8 * 1024 * 1024;
/// The type of queues (a setting): the original's, so that its parts can share them.
pub const QUEUE_TYPE: &str = "classic";
/// The type of queues for new installations.
pub const NEW_QUEUE_TYPE: &str = "quorum";
/// `CONCURRENCY_PER_QUEUE`.
pub const CONCURRENCY_PER_QUEUE: u32 = 32;
/// `CONSUMER_THROTTLE_ENABLED`.
pub const CONSUMER_THROTTLE_ENABLED: bool = true;
/// `CONSUMER_THROTTLE_EXPONENT`.
pub const CONSUMER_THROTTLE_EXPONENT: f64 = 3.0;
/// `CONSUMER_THROTTLE_MIN_INFLIGHT`.
pub const CONSUMER_THROTTLE_MIN_INFLIGHT: u32 = 1;
/// `MIN_REQUEST_DURATION`.
pub const MIN_REQUEST_DURATION: Duration = Duration::ZERO;
/// Attempts that the consumer makes at the target, the first included.
pub const FORWARD_MAX_ATTEMPTS: u32 = 5;
/// How long one attempt may take.
pub const FORWARD_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after the first failed attempt; it doubles with each further one.
pub const FORWARD_BACKOFF: Duration = Duration::from_secs(1);
/// By how much the pause grows.
pub const FORWARD_BACKOFF_FACTOR: u32 = 2;

/// `FLAVOUR` of the sample service.
pub const CARBONSTAT_FLAVOUR: &str = "high";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::go_duration::GoDuration;

    #[test]
    fn text_defaults_are_within_their_bounds() {
        let week = GoDuration::parse(BUDGET_WINDOW).unwrap().to_std().unwrap();
        assert_eq!(week, Duration::from_hours(7 * 24));
        assert!((BUDGET_WINDOW_MIN..=BUDGET_WINDOW_MAX).contains(&week));
        assert!(CARBON_TIMEOUT.as_secs() <= u64::from(CARBON_TIMEOUT_MAX_SECONDS.unsigned_abs()));
    }

    #[test]
    fn the_policies_that_run_exist() {
        assert!(POLICIES.contains(&POLICY));
        assert!(POLICIES.contains(&UNKNOWN_POLICY_RUNS));
    }
}
