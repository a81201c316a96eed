//! Place's numbers: ports, limits, default values and time spans.
//!
//! A constant without a unit in its name has it in its type. Durations that stand in the schema as
//! text are text here, in Go's form.

use std::time::Duration;

/// `interval`.
pub const INTERVAL: &str = "10s";
/// The shortest `interval`.
pub const INTERVAL_MIN: Duration = Duration::from_secs(5);
/// The longest `interval`.
pub const INTERVAL_MAX: Duration = Duration::from_mins(5);
/// `samples.unfit`: readings in a row that make a node unfit.
pub const SAMPLES_UNFIT: i32 = 2;
/// `samples.fit`: readings in a row that make a node fit.
pub const SAMPLES_FIT: i32 = 2;
/// `minDwell`: the shortest time between two changes.
pub const MIN_DWELL: &str = "0s";
/// `minFitNodes`.
pub const MIN_FIT_NODES: i32 = 1;
/// `maxSampleAge`: older data is no data.
pub const MAX_SAMPLE_AGE: &str = "180s";
/// Where the interval is long, a measurement counts for so many of it if that is longer.
pub const MAX_SAMPLE_AGE_INTERVALS: u32 = 2;
/// `rebalance.after`.
pub const REBALANCE_AFTER: &str = "5m";
/// `rebalance.maxPerNode`.
pub const REBALANCE_MAX_PER_NODE: i32 = 1;
/// `rebalance.maxTotal`.
pub const REBALANCE_MAX_TOTAL: i32 = 1;
/// `rebalance.cooldown`.
pub const REBALANCE_COOLDOWN: &str = "5m";

/// `interfaces.exclude`: loopback and what clusters make for their pods. By name alone, as
/// exporters tell neither an interface's kind nor its master.
pub const EXCLUDED_INTERFACES: [&str; 25] = [
    "lo",
    "veth*",
    "cni*",
    "cali*",
    "cilium*",
    "lxc*",
    "eni*",
    "azv*",
    "gke*",
    "flannel*",
    "docker*",
    "br-*",
    "virbr*",
    "ovn*",
    "ovs*",
    "genev*",
    "vxlan*",
    "tun*",
    "tap*",
    "tunl*",
    "wg*",
    "kube-*",
    "nodelocaldns",
    "dummy*",
    "ifb*",
];

/// Port of the node exporter that the operator runs (a setting): 9100 is often taken.
pub const NODE_EXPORTER_PORT: u16 = 9810;
/// When a node whose scrape failed is asked again, before backoff and jitter.
pub const SCRAPE_RETRY: Duration = Duration::from_secs(30);
/// How often keys that no watch claims are looked for, after the start.
pub const ORPHAN_SWEEP_INTERVAL: Duration = Duration::from_hours(1);
/// Steps in which the annotation with a node's load is written, in percentage points.
pub const BANDWIDTH_PERCENT_STEP: u32 = 5;
/// The shortest time between two writes of that annotation on one node.
pub const BANDWIDTH_PERCENT_MIN_INTERVAL: Duration = Duration::from_mins(1);
/// `currentBandwidthPercent` in status before the first window.
pub const UNMEASURED_PERCENT: &str = "0";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::{glob::Glob, go_duration::GoDuration};

    #[test]
    fn text_defaults_parse_and_are_within_their_bounds() {
        let parse = |text| GoDuration::parse(text).unwrap().to_std().unwrap();
        assert!((INTERVAL_MIN..=INTERVAL_MAX).contains(&parse(INTERVAL)));
        assert_eq!(parse(MIN_DWELL), Duration::ZERO);
        assert_eq!(parse(MAX_SAMPLE_AGE), Duration::from_mins(3));
        assert_eq!(parse(REBALANCE_AFTER), Duration::from_mins(5));
        assert_eq!(parse(REBALANCE_COOLDOWN), Duration::from_mins(5));
    }

    #[test]
    fn cluster_interfaces_are_excluded_and_hosts_are_not() {
        let globs = EXCLUDED_INTERFACES.map(|glob| Glob::parse(glob).unwrap());
        let is_excluded = |name: &str| globs.iter().any(|glob| glob.matches(name));
        for name in [
            "lo",
            "veth12ab",
            "cali0a1b2c",
            "br-1f2e",
            "tunl0",
            "nodelocaldns",
            "wg0",
        ] {
            assert!(is_excluded(name), "{name}");
        }
        for name in [
            "eth0", "ens5", "eno1", "enp3s0f0", "bond0", "br0", "wlan0", "ib0",
        ] {
            assert!(!is_excluded(name), "{name}");
        }
    }
}
