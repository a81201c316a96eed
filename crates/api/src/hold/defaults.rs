//! Hold's numbers: ports, limits, default values and time spans.
//!
//! A constant without a unit in its name has it in its type. Durations that stand in the schema as
//! text are text here, in Go's form.

use std::{ops::RangeInclusive, time::Duration};

/// Replicas to wake to (`minTargetReplicas`).
pub const MIN_TARGET_REPLICAS: i32 = 1;
/// `cooldownPeriod` where it is absent or 0, in seconds.
pub const COOLDOWN_SECONDS: i32 = 900;
/// The longest `cooldownPeriod`, in seconds: a week.
pub const COOLDOWN_MAX_SECONDS: i32 = 604_800;
/// `enabledPeriod.schedule`: every midnight.
pub const ENABLED_PERIOD_SCHEDULE: &str = "0 0 * * *";
/// `enabledPeriod.duration`: with the default schedule, always.
pub const ENABLED_PERIOD_DURATION: &str = "24h";
/// `uptimeFilter` of a Prometheus trigger: which `up` tells that Prometheus itself is.
pub const PROMETHEUS_UPTIME_FILTER: &str = r#"container="prometheus""#;
/// Bytes per second of a pod, received and sent together, below which the `network` trigger calls it
/// idle.
///
/// It lies above probe traffic: an HTTP probe is about ten packets of 66 bytes of headers and some
/// hundred bytes of request and answer, below 2 KiB in all; a readiness and a liveness probe, each
/// every second, are below 2 × 2 KiB/s = 4096 B/s, and with Kubernetes' default period of 10 s
/// below a tenth of that.
pub const NETWORK_TRIGGER_THRESHOLD_BYTES_PER_SECOND: u64 = 4096;

/// The most rules in `probeResponse`.
pub const PROBE_RESPONSE_MAX_RULES: usize = 32;
/// The most characters in the path of a probe rule.
pub const PROBE_PATH_MAX_LENGTH: usize = 1024;
/// The most headers in a probe rule.
pub const PROBE_MAX_HEADERS: usize = 16;
/// The most characters in the value of a header in a probe rule.
pub const PROBE_HEADER_VALUE_MAX_LENGTH: usize = 4096;
/// The most query parameters in a probe rule.
pub const PROBE_MAX_QUERY_PARAMS: usize = 16;
/// The most characters in the value of a query parameter in a probe rule.
pub const PROBE_QUERY_VALUE_MAX_LENGTH: usize = 1024;
/// The most characters in the name of a header or a query parameter in a probe rule.
pub const PROBE_NAME_MAX_LENGTH: usize = 256;
/// The statuses with which a probe rule may answer.
pub const PROBE_RESPONSE_STATUSES: [u16; 10] = [200, 204, 400, 401, 403, 404, 500, 502, 503, 504];

/// The resolver's shared proxy port, where the target is named by a header.
pub const RESOLVER_PROXY_PORT: u16 = 8012;
/// The resolver's internal port: metrics, health and the peers' status calls.
pub const RESOLVER_INTERNAL_PORT: u16 = 8013;
/// The internal port of the second resolver in a pod, which shares the first one's other ports.
pub const RESOLVER_SIBLING_PORT: u16 = 8014;
/// The operator's internal port: metrics, its table of services, and wake signals.
pub const OPERATOR_INTERNAL_PORT: u16 = 8013;
/// The operator's health port.
pub const OPERATOR_HEALTH_PORT: u16 = 8081;
/// Ports that are allotted to Services, clear of the ephemeral range (a setting).
pub const RESOLVER_PORT_RANGE: RangeInclusive<u16> = 10_240..=32_767;
/// How long a released port rests before it is allotted again.
pub const RELEASED_PORT_REST: Duration = Duration::from_mins(10);
/// The port of the kubelet that the `network` trigger asks.
pub const KUBELET_PORT: u16 = 10_250;
/// The header that names the target on the shared port, in the chart.
pub const HEADER_FOR_HOST: &str = "X-Envoy-Decorator-Operation";

/// How often triggers are asked (`POLLING_INTERVAL`).
pub const POLLING_INTERVAL: Duration = Duration::from_secs(30);
/// How long the network takes to follow a changed EndpointSlice: the overlap in both directions (a
/// setting). kube-proxy gathers changes for a second on each node by itself.
pub const SYNC_PERIOD: Duration = Duration::from_secs(3);
/// How long the cut-over may take to be seen, before it is undone.
pub const CUT_OVER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a Ready target may be without an endpoint before a condition says so.
pub const NO_READY_POD_GRACE: Duration = Duration::from_secs(10);
/// How long there may be no ready resolver before sleeping services are woken (a setting).
pub const FAIL_OPEN_AFTER: Duration = Duration::from_secs(30);
/// Services woken per second when there is no ready resolver.
pub const FAIL_OPEN_WAKES_PER_SECOND: u32 = 20;
/// How often the operator asks each resolver whether it is there.
pub const RESOLVER_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Misses in a row after which a resolver leaves the slice.
pub const RESOLVER_CHECK_MISSES: u32 = 3;
/// `lastScaledUpTime` is written at most this often, or every tenth of the cooldown if that is
/// longer; see [`LAST_SCALED_UP_COOLDOWN_DIVISOR`].
pub const LAST_SCALED_UP_MIN_INTERVAL: Duration = Duration::from_secs(30);
/// The part of the cooldown for [`LAST_SCALED_UP_MIN_INTERVAL`].
pub const LAST_SCALED_UP_COOLDOWN_DIVISOR: u32 = 10;

/// How long a request is held, at most (`REQ_TIMEOUT`).
pub const HOLD_TIMEOUT: Duration = Duration::from_mins(10);
/// How long no operator may have answered before a resolver that may wakes a service by itself (a setting).
pub const RESOLVER_SCALES_AFTER: Duration = Duration::from_secs(5);
/// How long a connection of unknown protocol may stay silent before it counts as raw TCP.
pub const SNIFF_TIMEOUT: Duration = Duration::from_millis(200);
/// How often a pod that is not yet Ready is asked by the resolver itself.
pub const EARLY_READINESS_INTERVAL: Duration = Duration::from_millis(50);
/// `terminationGracePeriodSeconds` of the resolver: a whole hold, and time to end in order.
pub const RESOLVER_TERMINATION_GRACE_SECONDS: i64 = 630;
/// How long before the end of that period the rest of what is held is refused.
pub const SHUTDOWN_REFUSE_BEFORE_END: Duration = Duration::from_secs(5);
/// Resolver replicas.
pub const RESOLVER_REPLICAS: i32 = 2;
/// `maxUnavailable` of the resolver's rollout: the old one goes when the new one is ready.
pub const RESOLVER_MAX_UNAVAILABLE: i32 = 0;
/// Upper bounds of the buckets of the histogram of requests, in seconds.
pub const REQUEST_HISTOGRAM_SECONDS: [f64; 6] = [0.1, 0.5, 1.0, 2.0, 5.0, 10.0];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::{cron::Cron, go_duration::GoDuration};

    #[test]
    fn text_defaults_parse() {
        assert!(Cron::parse(ENABLED_PERIOD_SCHEDULE).is_ok());
        let day = GoDuration::parse(ENABLED_PERIOD_DURATION).unwrap().to_std();
        assert_eq!(day, Ok(Duration::from_hours(24)));
    }

    #[test]
    fn ports_do_not_clash() {
        for port in [
            RESOLVER_PROXY_PORT,
            RESOLVER_INTERNAL_PORT,
            RESOLVER_SIBLING_PORT,
            OPERATOR_HEALTH_PORT,
        ] {
            assert!(!RESOLVER_PORT_RANGE.contains(&port));
        }
        assert_ne!(RESOLVER_PROXY_PORT, RESOLVER_INTERNAL_PORT);
        assert_ne!(RESOLVER_SIBLING_PORT, RESOLVER_INTERNAL_PORT);
        assert_ne!(OPERATOR_INTERNAL_PORT, OPERATOR_HEALTH_PORT);
    }

    #[test]
    fn a_resolver_that_ends_can_serve_what_it_holds() {
        let grace = Duration::from_secs(RESOLVER_TERMINATION_GRACE_SECONDS.unsigned_abs());
        assert!(SYNC_PERIOD + HOLD_TIMEOUT + SHUTDOWN_REFUSE_BEFORE_END < grace);
    }
}
