//! How the parts are reached and by whom, and how many of them must stay.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        core::v1::{Service, ServicePort, ServiceSpec},
        networking::v1::{
            NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort,
            NetworkPolicySpec,
        },
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    },
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};
use weir_api::hold::defaults::{
    OPERATOR_HEALTH_PORT, OPERATOR_INTERNAL_PORT, RESOLVER_INTERNAL_PORT, RESOLVER_PORT_RANGE,
    RESOLVER_PROXY_PORT,
};

use super::part::Part;
use crate::Options;

/// Label of namespaces from which metrics may be read, with [`METRICS_ENABLED`]; a habit of many operators.
const METRICS_LABEL: &str = "metrics";
/// Value of [`METRICS_LABEL`].
const METRICS_ENABLED: &str = "enabled";

/// What resolvers signal to; what the operator finds resolvers by, and who names a target by its Host reaches.
pub(super) fn service(part: Part, options: &Options) -> Service {
    let ports = match part {
        Part::Operator => vec![("internal", OPERATOR_INTERNAL_PORT)],
        Part::Resolver => vec![
            ("proxy", RESOLVER_PROXY_PORT),
            ("internal", RESOLVER_INTERNAL_PORT),
        ],
    };
    // Where pods have addresses of two families, the operator learns of both, to lead Services to them that have both.
    let families = (part == Part::Resolver).then_some("PreferDualStack");
    let named = |(name, port): (&str, u16)| ServicePort {
        name: Some(name.to_owned()),
        port: i32::from(port),
        target_port: Some(IntOrString::Int(i32::from(port))),
        protocol: Some("TCP".to_owned()),
        ..ServicePort::default()
    };
    Service {
        metadata: part.metadata(options),
        spec: Some(ServiceSpec {
            selector: Some(part.labels()),
            ports: Some(ports.into_iter().map(named).collect()),
            ip_family_policy: families.map(str::to_owned),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// Nodes are drained one after another. Of a part that is there once, it would forbid to drain its node at all.
pub(super) fn disruption_budget(part: Part, options: &Options) -> Option<PodDisruptionBudget> {
    (part.replicas(options) > 1).then(|| PodDisruptionBudget {
        metadata: part.metadata(options),
        spec: Some(PodDisruptionBudgetSpec {
            min_available: Some(IntOrString::Int(1)),
            selector: Some(part.selector()),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    })
}

/// Who may come in. The kubelet of a pod's own node always may, says Kubernetes; so probes need no rule where
/// their port has none to share.
pub(super) fn policy(part: Part, options: &Options) -> NetworkPolicy {
    let ingress = match part {
        Part::Operator => vec![
            from(
                vec![pods_of(Part::Resolver), metrics_readers()],
                vec![port(OPERATOR_INTERNAL_PORT)],
            ),
            from_anywhere(vec![port(OPERATOR_HEALTH_PORT)]),
        ],
        Part::Resolver => vec![
            from_anywhere(vec![port(RESOLVER_PROXY_PORT), allotted_ports()]),
            from(
                vec![pods_of(Part::Operator), metrics_readers()],
                vec![port(RESOLVER_INTERNAL_PORT)],
            ),
        ],
    };
    NetworkPolicy {
        metadata: part.metadata(options),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(part.selector()),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ingress: Some(ingress),
            ..NetworkPolicySpec::default()
        }),
    }
}

fn from(peers: Vec<NetworkPolicyPeer>, ports: Vec<NetworkPolicyPort>) -> NetworkPolicyIngressRule {
    NetworkPolicyIngressRule {
        from: Some(peers),
        ports: Some(ports),
    }
}

fn from_anywhere(ports: Vec<NetworkPolicyPort>) -> NetworkPolicyIngressRule {
    NetworkPolicyIngressRule {
        from: None,
        ports: Some(ports),
    }
}

/// In our own namespace.
fn pods_of(part: Part) -> NetworkPolicyPeer {
    NetworkPolicyPeer {
        pod_selector: Some(part.selector()),
        ..NetworkPolicyPeer::default()
    }
}

fn metrics_readers() -> NetworkPolicyPeer {
    let label = (METRICS_LABEL.to_owned(), METRICS_ENABLED.to_owned());
    NetworkPolicyPeer {
        namespace_selector: Some(LabelSelector {
            match_labels: Some(BTreeMap::from([label])),
            ..LabelSelector::default()
        }),
        ..NetworkPolicyPeer::default()
    }
}

fn port(port: u16) -> NetworkPolicyPort {
    NetworkPolicyPort {
        port: Some(IntOrString::Int(i32::from(port))),
        protocol: Some("TCP".to_owned()),
        ..NetworkPolicyPort::default()
    }
}

/// All that the operator may allot to Services.
fn allotted_ports() -> NetworkPolicyPort {
    NetworkPolicyPort {
        end_port: Some(i32::from(*RESOLVER_PORT_RANGE.end())),
        ..port(*RESOLVER_PORT_RANGE.start())
    }
}
