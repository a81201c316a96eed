//! All families, in the order in which they are shown: the peers' first, then ours.

use std::collections::BTreeMap;

use weir_api::hold::{
    defaults::REQUEST_HISTOGRAM_SECONDS,
    names::metrics::{
        ENABLED, ERROR, EXTRACTION_CACHE_HIT, EXTRACTION_CACHE_MISS, EXTRACTION_ERROR,
        EXTRACTION_TYPE, METHOD, NAMESPACE, RESOLVER_HOST_EXTRACTION_COUNT,
        RESOLVER_INCOMING_REQUESTS, RESOLVER_OPERATOR_RPC_COUNT, RESOLVER_QUEUED_COUNT,
        RESOLVER_TRAFFIC_SWITCH_COUNT, SOURCE, STATUS, SWITCH_DISABLED, SWITCH_ENABLED, TARGET,
    },
};
use weir_role::metrics::exposition::{Exposition, Kind};

use super::{
    Metrics, WakePhase,
    names::{
        BUILD_INFO, CONNECTIONS, DIRECTION, EARLY_PROBES, EARLY_READY, EARLY_WITHDRAWN, END,
        HELD_BYTES, HELD_REQUESTS, PASSED_THROUGH, PASSED_THROUGH_BYTES, PHASE, PROTOCOL, REASON,
        RECEIVED, REFUSED, RESULT, RETRIES, SCALES, SENT, TUNNELS, VERSION, WAKE_BUCKETS,
        WAKE_SECONDS,
    },
    service::ServiceMetrics,
};

pub(super) fn render(metrics: &Metrics) -> String {
    let services = metrics.sorted();
    let mut out = Exposition::default();
    peers(metrics, &services, &mut out);
    ours(metrics, &services, &mut out);
    out.finish()
}

fn peers(metrics: &Metrics, services: &[impl AsRef<ServiceMetrics>], out: &mut Exposition) {
    let help = "Requests that are held.";
    let mut family = out.family(RESOLVER_QUEUED_COUNT, Kind::Gauge, help);
    for service in services.iter().map(AsRef::as_ref) {
        let id = service.id();
        let labels = [(SOURCE, &*id.name), (NAMESPACE, &*id.namespace)];
        family.sample(&labels, service.queued.get());
    }

    let help = "Seconds from the arrival of a request to the end of its answer.";
    let mut family = out.family(RESOLVER_INCOMING_REQUESTS, Kind::Histogram, help);
    for service in services.iter().map(AsRef::as_ref) {
        let id = service.id();
        let target = service.target();
        for (method, status, took) in service.requests() {
            let labels = [
                (SOURCE, &*id.name),
                (TARGET, &*target),
                (NAMESPACE, &*id.namespace),
                (METHOD, method.as_str()),
                (STATUS, status),
            ];
            family.histogram(&labels, &REQUEST_HISTOGRAM_SECONDS, &took);
        }
    }

    let help = "Requests on the shared port, by how their target was found.";
    let mut family = out.family(RESOLVER_HOST_EXTRACTION_COUNT, Kind::Counter, help);
    for (how, count) in [
        (EXTRACTION_CACHE_HIT, &metrics.hits),
        (EXTRACTION_CACHE_MISS, &metrics.misses),
        (EXTRACTION_ERROR, &metrics.errors),
    ] {
        family.sample(&[(EXTRACTION_TYPE, how)], count.get());
    }

    // The peers tell services of one name in two namespaces not apart here: they are added up.
    let mut switches: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for service in services.iter().map(AsRef::as_ref) {
        let counts = switches.entry(&service.id().name).or_default();
        let [enabled, disabled] = counts;
        *enabled += service.enabled.get();
        *disabled += service.disabled.get();
    }
    let help = "Switches of traffic to the resolver (enabled) and back to the pods (disabled).";
    let mut family = out.family(RESOLVER_TRAFFIC_SWITCH_COUNT, Kind::Counter, help);
    for (source, [enabled, disabled]) in switches {
        for (value, count) in [(SWITCH_ENABLED, enabled), (SWITCH_DISABLED, disabled)] {
            if count > 0 {
                family.sample(&[(SOURCE, source), (ENABLED, value)], count);
            }
        }
    }

    let help = "Wake signals to the operator; error is empty where all went well.";
    let mut family = out.family(RESOLVER_OPERATOR_RPC_COUNT, Kind::Counter, help);
    for (error, count) in metrics.rpcs.sorted() {
        family.sample(&[(ERROR, error)], count);
    }
}

fn ours(metrics: &Metrics, services: &[impl AsRef<ServiceMetrics>], out: &mut Exposition) {
    let help = "Seconds from the first request that was held to a phase of the wake.";
    let mut family = out.family(WAKE_SECONDS, Kind::Histogram, help);
    for service in services.iter().map(AsRef::as_ref) {
        let id = service.id();
        for (phase, histogram) in WakePhase::ALL.into_iter().zip(service.wakes()) {
            if histogram.count() > 0 {
                let labels = [
                    (PHASE, phase.as_str()),
                    (NAMESPACE, &*id.namespace),
                    (SOURCE, &*id.name),
                ];
                family.histogram(&labels, &WAKE_BUCKETS, &histogram);
            }
        }
    }
    let help = "Connections that were passed through and have ended.";
    let mut family = out.family(PASSED_THROUGH, Kind::Counter, help);
    for service in services.iter().map(AsRef::as_ref) {
        let id = service.id();
        for (protocol, end, count) in service.passed_through() {
            let labels = [
                (NAMESPACE, &*id.namespace),
                (SOURCE, &*id.name),
                (PROTOCOL, protocol.as_str()),
                (END, end.as_str()),
            ];
            family.sample(&labels, count);
        }
    }
    let help = "Bytes of connections that were passed through and have ended.";
    let mut family = out.family(PASSED_THROUGH_BYTES, Kind::Counter, help);
    for service in services.iter().map(AsRef::as_ref) {
        let id = service.id();
        for (direction, bytes) in [(SENT, &service.sent), (RECEIVED, &service.received)] {
            if bytes.get() > 0 {
                let labels = [
                    (NAMESPACE, &*id.namespace),
                    (SOURCE, &*id.name),
                    (DIRECTION, direction),
                ];
                family.sample(&labels, bytes.get());
            }
        }
    }
    early(metrics, services, out);
    for (name, help, gauge) in [
        (
            HELD_REQUESTS,
            "Requests that are held.",
            &metrics.held_requests,
        ),
        (
            HELD_BYTES,
            "Bytes of bodies kept in memory.",
            &metrics.held_bytes,
        ),
        (
            CONNECTIONS,
            "Connections from clients.",
            &metrics.connections,
        ),
        (
            TUNNELS,
            "Connections that became tunnels.",
            &metrics.tunnels,
        ),
    ] {
        out.family(name, Kind::Gauge, help).sample(&[], gauge.get());
    }
    for (name, help, reasons) in [
        (
            REFUSED,
            "Requests that were not forwarded.",
            &metrics.refused,
        ),
        (RETRIES, "Requests that were sent again.", &metrics.retries),
    ] {
        let mut family = out.family(name, Kind::Counter, help);
        for (reason, count) in reasons.sorted() {
            family.sample(&[(REASON, reason)], count);
        }
    }
    let help = "Services that were to be woken without an operator.";
    let mut family = out.family(SCALES, Kind::Counter, help);
    for (result, count) in metrics.scales.sorted() {
        family.sample(&[(RESULT, result)], count);
    }
    let help = "Always 1; the version is in the label.";
    let version = env!("CARGO_PKG_VERSION");
    out.family(BUILD_INFO, Kind::Gauge, help)
        .sample(&[(VERSION, version)], 1);
}

fn early(metrics: &Metrics, services: &[impl AsRef<ServiceMetrics>], out: &mut Exposition) {
    let help = "Pods that were ready by their own probes before the kubelet said so.";
    let mut family = out.family(EARLY_READY, Kind::Counter, help);
    for service in services.iter().map(AsRef::as_ref) {
        let id = service.id();
        if service.early_ready.get() > 0 {
            let labels = [(NAMESPACE, &*id.namespace), (SOURCE, &*id.name)];
            family.sample(&labels, service.early_ready.get());
        }
    }
    let help = "Pods of those that failed before the kubelet said that they are ready.";
    out.family(EARLY_WITHDRAWN, Kind::Counter, help)
        .sample(&[], metrics.early_withdrawn.get());
    let help = "Probes of pods that start.";
    let mut family = out.family(EARLY_PROBES, Kind::Counter, help);
    for (result, count) in metrics.early_probes.sorted() {
        family.sample(&[(RESULT, result)], count);
    }
}
