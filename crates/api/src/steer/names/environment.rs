//! The original's environment variables, by the process that reads them. Their defaults are in
//! `defaults`.

/// What the operator reads; each has a flag too.
pub mod operator {
    /// Whether only one replica acts.
    pub const ENABLE_LEADER_ELECTION: &str = "ENABLE_LEADER_ELECTION";
    /// Where metrics are served; `0` is nowhere.
    pub const METRICS_BIND_ADDRESS: &str = "METRICS_BIND_ADDRESS";
    /// Whether metrics are served with TLS, token review and access review.
    pub const METRICS_SECURE: &str = "METRICS_SECURE";
    /// Where health is served.
    pub const HEALTH_PROBE_BIND_ADDRESS: &str = "HEALTH_PROBE_BIND_ADDRESS";
    /// The directory of the webhook's certificate; unset, there is no webhook.
    pub const WEBHOOK_CERT_PATH: &str = "WEBHOOK_CERT_PATH";
}

/// What the decision engine reads.
pub mod engine {
    /// The error that a schedule may have.
    pub const TARGET_ERROR: &str = "TARGET_ERROR";
    /// The least credit.
    pub const CREDIT_MIN: &str = "CREDIT_MIN";
    /// The most credit.
    pub const CREDIT_MAX: &str = "CREDIT_MAX";
    /// How fast credit moves.
    pub const CREDIT_SENSITIVITY: &str = "CREDIT_SENSITIVITY";
    /// The feedback windows that the velocity averages.
    pub const CREDIT_WINDOW: &str = "CREDIT_WINDOW";
    /// The policy of schedules that name none.
    pub const SCHEDULER_POLICY: &str = "SCHEDULER_POLICY";
    /// Seconds for which a schedule holds.
    pub const SCHEDULE_VALID_FOR: &str = "SCHEDULE_VALID_FOR";
    /// Seconds between two evaluations.
    pub const SCHEDULE_EVAL_INTERVAL_SEC: &str = "SCHEDULE_EVAL_INTERVAL_SEC";
    /// Seconds between two looks at Prometheus.
    pub const METRICS_POLL_INTERVAL_SEC: &str = "METRICS_POLL_INTERVAL_SEC";
    /// Seconds between two discoveries of flavours.
    pub const STRATEGY_DISCOVERY_INTERVAL: &str = "STRATEGY_DISCOVERY_INTERVAL";
    /// Where forecasts come from.
    pub const CARBON_API_URL: &str = "CARBON_API_URL";
    /// The grid that is asked for.
    pub const CARBON_API_TARGET: &str = "CARBON_API_TARGET";
    /// Seconds that a forecast may take to come.
    pub const CARBON_API_TIMEOUT: &str = "CARBON_API_TIMEOUT";
    /// Seconds for which a forecast is kept.
    pub const CARBON_API_CACHE_TTL: &str = "CARBON_API_CACHE_TTL";
    /// The least throttle.
    pub const THROTTLE_MIN: &str = "THROTTLE_MIN";
    /// The intensity below which nothing is throttled.
    pub const THROTTLE_INTENSITY_FLOOR: &str = "THROTTLE_INTENSITY_FLOOR";
    /// The intensity above which all that may be is throttled.
    pub const THROTTLE_INTENSITY_CEILING: &str = "THROTTLE_INTENSITY_CEILING";
    /// How much a clean grid makes up for a lack of credit.
    pub const THROTTLE_GREEN_BLEND: &str = "THROTTLE_GREEN_BLEND";
    /// The intensity ratio from which on nothing is throttled.
    pub const THROTTLE_GREEN_OVERRIDE_THRESHOLD: &str = "THROTTLE_GREEN_OVERRIDE_THRESHOLD";
    /// The Prometheus that demand is read from.
    pub const PROMETHEUS_URL: &str = "PROMETHEUS_URL";
    /// The port of the metrics; routers and consumers read it too.
    pub const METRICS_PORT: &str = "METRICS_PORT";
    /// Namespace of the default session.
    pub const DEFAULT_SCHEDULE_NAMESPACE: &str = "DEFAULT_SCHEDULE_NAMESPACE";
    /// Name of the default session.
    pub const DEFAULT_SCHEDULE_NAME: &str = "DEFAULT_SCHEDULE_NAME";
    /// The flavours of schedules that have none, as JSON.
    pub const SCHEDULER_STRATEGIES: &str = "SCHEDULER_STRATEGIES";
    /// How much is logged; routers and consumers read it too.
    pub const LOGLEVEL: &str = "LOGLEVEL";
}

/// What routers and consumers read.
pub mod buffer {
    pub use super::engine::{LOGLEVEL, METRICS_PORT};

    /// The broker's URL, from a Secret.
    pub const RABBITMQ_URL: &str = "RABBITMQ_URL";
    /// Name of the schedule.
    pub const TS_NAME: &str = "TS_NAME";
    /// Namespace of the schedule.
    pub const TS_NAMESPACE: &str = "TS_NAMESPACE";
    /// Name of the target Service.
    pub const TARGET_SVC_NAME: &str = "TARGET_SVC_NAME";
    /// Namespace of the target Service.
    pub const TARGET_SVC_NAMESPACE: &str = "TARGET_SVC_NAMESPACE";
    /// Scheme of the target Service.
    pub const TARGET_SVC_SCHEME: &str = "TARGET_SVC_SCHEME";
    /// Port of the target Service.
    pub const TARGET_SVC_PORT: &str = "TARGET_SVC_PORT";
    /// Seconds that the router waits for an answer.
    pub const RPC_TIMEOUT_SEC: &str = "RPC_TIMEOUT_SEC";
    /// Requests in flight per queue.
    pub const CONCURRENCY_PER_QUEUE: &str = "CONCURRENCY_PER_QUEUE";
    /// Whether the consumer heeds the throttle.
    pub const CONSUMER_THROTTLE_ENABLED: &str = "CONSUMER_THROTTLE_ENABLED";
    /// How sharply the throttle bites.
    pub const CONSUMER_THROTTLE_EXPONENT: &str = "CONSUMER_THROTTLE_EXPONENT";
    /// Requests in flight that the throttle always leaves.
    pub const CONSUMER_THROTTLE_MIN_INFLIGHT: &str = "CONSUMER_THROTTLE_MIN_INFLIGHT";
    /// The least time that a request takes, for experiments.
    pub const MIN_REQUEST_DURATION: &str = "MIN_REQUEST_DURATION";
    /// Whether more is logged.
    pub const DEBUG: &str = "DEBUG";

    /// Variables that say nothing to us.
    pub const ACCEPTED_AND_UNUSED: [&str; 2] =
        ["CONSUMER_THROTTLE_REFRESH_SECONDS", "TRAFFIC_SCHEDULE_NAME"];
}

/// What the sample service reads: `high`, `mid` or `low`.
pub const CARBONSTAT_FLAVOUR: &str = "FLAVOUR";
