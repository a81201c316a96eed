//! How the pods of both parts run: apart from each other, as nobody in particular, with a root that cannot be written.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment},
        core::v1::{
            Affinity, Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction,
            ObjectFieldSelector, PodAffinityTerm, PodAntiAffinity, PodSecurityContext, PodSpec,
            PodTemplateSpec, Probe, ResourceRequirements, SeccompProfile, TopologySpreadConstraint,
            WeightedPodAffinityTerm,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity, apis::meta::v1::ObjectMeta, util::intstr::IntOrString,
    },
};
use weir_api::hold::{
    defaults::RESOLVER_MAX_UNAVAILABLE,
    names::http::{HEALTH_PATH, METRICS_PATH, READY_PATH},
};

use super::part::Part;
use crate::{Options, security};

/// Label of nodes: which one it is. Every kubelet sets it.
const NODE_LABEL: &str = "kubernetes.io/hostname";
/// Label of nodes: the zone, where there are zones.
const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// What one part's pods are told, and how they are looked at.
pub(super) struct Command {
    /// What the container is called.
    pub(super) name: &'static str,
    /// After the program's name.
    pub(super) arguments: Vec<String>,
    /// Variables with their values.
    pub(super) environment: Vec<(&'static str, String)>,
    /// Ports by name, for people to read.
    pub(super) ports: Vec<(&'static str, u16)>,
    /// Where the kubelet asks.
    pub(super) health_port: u16,
    /// Where Prometheus asks.
    pub(super) metrics_port: u16,
    /// How long a pod may take to end.
    pub(super) grace_seconds: Option<i64>,
    /// What the scheduler sets aside: CPU and memory.
    pub(super) requests: [&'static str; 2],
}

/// The old one goes when the new one is ready.
pub(super) fn deployment(part: Part, options: &Options, commands: Vec<Command>) -> Deployment {
    let rolling = RollingUpdateDeployment {
        max_unavailable: Some(IntOrString::Int(RESOLVER_MAX_UNAVAILABLE)),
        max_surge: Some(IntOrString::Int(1)),
    };
    Deployment {
        metadata: part.metadata(options),
        spec: Some(DeploymentSpec {
            replicas: Some(i32::from(part.replicas(options))),
            selector: part.selector(),
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(rolling),
            }),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(part.labels()),
                    annotations: commands
                        .first()
                        .map(|command| scraped(command.metrics_port)),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod(part, options, commands)),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

fn scraped(port: u16) -> BTreeMap<String, String> {
    [
        ("scrape", "true".to_owned()),
        ("port", port.to_string()),
        ("path", METRICS_PATH.to_owned()),
    ]
    .map(|(key, value)| (format!("prometheus.io/{key}"), value))
    .into()
}

fn pod(part: Part, options: &Options, commands: Vec<Command>) -> PodSpec {
    PodSpec {
        service_account_name: Some(part.name().to_owned()),
        automount_service_account_token: Some(true),
        // Kubernetes would set a variable for each Service nearby, and one called elasti-operator would set ours.
        enable_service_links: Some(false),
        termination_grace_period_seconds: commands.iter().find_map(|command| command.grace_seconds),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        topology_spread_constraints: Some(vec![on_nodes_apart(part)]),
        affinity: Some(in_zones_apart(part)),
        containers: commands
            .into_iter()
            .map(|command| container(options, command))
            .collect(),
        ..PodSpec::default()
    }
}

/// If it can be: one node is enough to begin with.
fn on_nodes_apart(part: Part) -> TopologySpreadConstraint {
    TopologySpreadConstraint {
        max_skew: 1,
        topology_key: NODE_LABEL.to_owned(),
        when_unsatisfiable: "ScheduleAnyway".to_owned(),
        label_selector: Some(part.selector()),
        match_label_keys: Some(this_version()),
        ..TopologySpreadConstraint::default()
    }
}

/// A second constraint on spreading would do this, too. But to a node that lacks the label of one of them, none of them
/// applies; and where there are no zones, that is every node.
fn in_zones_apart(part: Part) -> Affinity {
    let others = PodAffinityTerm {
        label_selector: Some(part.selector()),
        match_label_keys: Some(this_version()),
        topology_key: ZONE_LABEL.to_owned(),
        ..PodAffinityTerm::default()
    };
    Affinity {
        pod_anti_affinity: Some(PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(vec![
                WeightedPodAffinityTerm {
                    weight: 100,
                    pod_affinity_term: others,
                },
            ]),
            ..PodAntiAffinity::default()
        }),
        ..Affinity::default()
    }
}

/// While a new version is rolled out, the old one's pods do not count.
fn this_version() -> Vec<String> {
    vec!["pod-template-hash".to_owned()]
}

fn container(options: &Options, command: Command) -> Container {
    let Command {
        name,
        arguments,
        environment,
        ports,
        health_port,
        metrics_port: _,
        grace_seconds: _,
        requests: [cpu, memory],
    } = command;
    let mut all = vec![
        from_field("POD_NAME", "metadata.name"),
        from_field("POD_NAMESPACE", "metadata.namespace"),
    ];
    all.extend(environment.into_iter().map(|(name, value)| EnvVar {
        name: name.to_owned(),
        value: Some(value),
        ..EnvVar::default()
    }));
    let named = |(name, port): (&str, u16)| ContainerPort {
        name: Some(name.to_owned()),
        container_port: i32::from(port),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    };
    let requests = [("cpu", cpu), ("memory", memory)]
        .map(|(what, much)| (what.to_owned(), Quantity(much.to_owned())));
    Container {
        name: name.to_owned(),
        image: Some(options.image.clone()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        args: Some(arguments),
        env: Some(all),
        ports: Some(ports.into_iter().map(named).collect()),
        liveness_probe: Some(Probe {
            // Only one that hangs for a minute: to end a resolver costs what it holds.
            period_seconds: Some(10),
            failure_threshold: Some(6),
            ..asks(HEALTH_PATH, health_port)
        }),
        readiness_probe: Some(Probe {
            period_seconds: Some(2),
            failure_threshold: Some(3),
            ..asks(READY_PATH, health_port)
        }),
        resources: Some(ResourceRequirements {
            requests: Some(requests.into()),
            ..ResourceRequirements::default()
        }),
        security_context: Some(security::no_rights()),
        ..Container::default()
    }
}

fn asks(path: &str, port: u16) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::Int(i32::from(port)),
            ..HTTPGetAction::default()
        }),
        timeout_seconds: Some(5),
        ..Probe::default()
    }
}

fn from_field(name: &str, path: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: path.to_owned(),
                api_version: Some("v1".to_owned()),
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}

/// `--watch-namespace` for each; both parts add our own by themselves.
pub(super) fn watch_flags(options: &Options) -> impl Iterator<Item = String> {
    options
        .watched()
        .into_iter()
        .flatten()
        .map(|namespace| format!("--watch-namespace={namespace}"))
}
