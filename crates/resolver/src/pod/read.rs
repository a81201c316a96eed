//! What a Pod means: which probes there are, who can ask them, and what the kubelet has found out already.

use std::{net::IpAddr, sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, uri::PathAndQuery};
use k8s_openapi::{
    api::core::v1::{
        ContainerPort, GRPCAction, HTTPGetAction, Probe as WrittenProbe, TCPSocketAction,
    },
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{
    Action, Check, ContainerView, PodView, Probe,
    object::{Container, ContainerStatus, Status, Written},
};

/// Of a container that starts before the others and stays.
const ALWAYS: &str = "Always";
/// Phases of pods that have ended.
const ENDED: [&str; 2] = ["Succeeded", "Failed"];

/// Kubernetes' defaults.
const PERIOD: i32 = 10;
const TIMEOUT: i32 = 1;
const SUCCESSES: i32 = 1;
const FAILURES: i32 = 3;

impl PodView {
    /// Nothing for a pod that is not there yet or no longer, and for one whose readiness others decide as well.
    pub(super) fn of(pod: &Written) -> Option<Self> {
        let status = &pod.status;
        let has_ended = status
            .phase
            .as_deref()
            .is_some_and(|phase| ENDED.contains(&phase));
        let is_ending = pod.metadata.deletion_timestamp.is_some();
        if has_ended || is_ending || !pod.spec.readiness_gates.is_empty() {
            return None;
        }
        let stays = |container: &&Container| container.restart_policy.as_deref() == Some(ALWAYS);
        let sidecars = pod.spec.init_containers.iter().filter(stays);
        let containers: Vec<ContainerView> = pod
            .spec
            .containers
            .iter()
            .map(|container| ContainerView::of(container, &status.container_statuses))
            .chain(sidecars.map(|it| ContainerView::of(it, &status.init_container_statuses)))
            .collect();
        let addresses = addresses(status);
        if containers.is_empty() || addresses.is_empty() {
            return None;
        }
        Some(Self {
            uid: pod.metadata.uid.as_deref()?.into(),
            addresses,
            containers,
        })
    }
}

fn addresses(status: &Status) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    let written = status.pod_ip.iter();
    for text in written.chain(status.pod_ips.iter().map(|it| &it.ip)) {
        if let Ok(address) = text.parse()
            && is_a_pods(address)
            && !addresses.contains(&address)
        {
            addresses.push(address);
        }
    }
    addresses
}

/// What means this machine, or somebody near it, is no pod's: an EndpointSlice may not have it either.
fn is_a_pods(address: IpAddr) -> bool {
    let is_near = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !(is_near || address.is_loopback() || address.is_unspecified() || address.is_multicast())
}

impl ContainerView {
    fn of(container: &Container, statuses: &[ContainerStatus]) -> Self {
        let status = statuses.iter().find(|it| it.name == container.name);
        let runs = status.filter(|status| status.state.running.is_some());
        let run = runs.and_then(|status| status.container_id.as_deref());
        let run = run.filter(|run| !run.is_empty());
        let says = |what: fn(&ContainerStatus) -> bool| run.is_some() && runs.is_some_and(what);
        let check =
            |probe: &Option<WrittenProbe>| probe.as_ref().map(|it| check(it, &container.ports));
        Self {
            run: run.map(Arc::from),
            is_started: says(|status| status.started == Some(true)),
            is_ready: says(|status| status.ready),
            startup: check(&container.startup_probe),
            readiness: check(&container.readiness_probe),
        }
    }
}

/// Whatever is not understood is the kubelet's.
fn check(probe: &WrittenProbe, ports: &[ContainerPort]) -> Check {
    let asked = if probe.exec.is_some() {
        None
    } else if let Some(action) = &probe.http_get {
        http(action, ports)
    } else if let Some(action) = &probe.tcp_socket {
        tcp(action, ports)
    } else if let Some(action) = &probe.grpc {
        grpc(action)
    } else {
        None
    };
    let Some((port, action)) = asked else {
        return Check::Kubelet;
    };
    Check::Ask(Arc::new(Probe {
        port,
        action,
        initial_delay: seconds(probe.initial_delay_seconds.unwrap_or(0)),
        period: seconds(positive(probe.period_seconds, PERIOD)),
        timeout: seconds(positive(probe.timeout_seconds, TIMEOUT)),
        successes: positive(probe.success_threshold, SUCCESSES).unsigned_abs(),
        failures: positive(probe.failure_threshold, FAILURES).unsigned_abs(),
    }))
}

/// A host of its own may be anybody's: that is not ours to ask.
fn http(action: &HTTPGetAction, ports: &[ContainerPort]) -> Option<(u16, Action)> {
    if is_elsewhere(action.host.as_deref()) {
        return None;
    }
    let tls = match action.scheme.as_deref() {
        None | Some("" | "HTTP") => false,
        Some("HTTPS") => true,
        Some(_) => return None,
    };
    let mut headers = Vec::new();
    for header in action.http_headers.iter().flatten() {
        let name = HeaderName::try_from(header.name.as_str()).ok()?;
        let value = HeaderValue::try_from(header.value.as_str()).ok()?;
        headers.push((name, value));
    }
    let path = action.path.as_deref().unwrap_or_default();
    let rooted = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    let asked = Action::Http {
        tls,
        path: PathAndQuery::try_from(rooted).ok()?,
        headers,
    };
    Some((number(&action.port, ports)?, asked))
}

fn tcp(action: &TCPSocketAction, ports: &[ContainerPort]) -> Option<(u16, Action)> {
    if is_elsewhere(action.host.as_deref()) {
        return None;
    }
    Some((number(&action.port, ports)?, Action::Tcp))
}

fn grpc(action: &GRPCAction) -> Option<(u16, Action)> {
    let service = action.service.clone().unwrap_or_default();
    Some((port(action.port)?, Action::Grpc { service }))
}

fn is_elsewhere(host: Option<&str>) -> bool {
    host.is_some_and(|host| !host.is_empty())
}

/// A port by number, or by the name that its container gives it.
fn number(written: &IntOrString, ports: &[ContainerPort]) -> Option<u16> {
    match written {
        IntOrString::Int(number) => port(*number),
        IntOrString::String(name) => {
            let named = ports
                .iter()
                .find(|it| it.name.as_deref() == Some(name.as_str()));
            match named {
                Some(named) => port(named.container_port),
                None => port(name.parse().ok()?),
            }
        }
    }
}

fn port(number: i32) -> Option<u16> {
    u16::try_from(number).ok().filter(|port| *port != 0)
}

fn positive(written: Option<i32>, default: i32) -> i32 {
    written.filter(|number| *number > 0).unwrap_or(default)
}

fn seconds(count: i32) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or_default())
}
