//! node_exporter on every node. It must see the host's interfaces, so it uses the host's network, which even the *baseline*
//! level of Pod Security forbids: hence a namespace of its own. Else it has nothing: no token, no files of the host, no
//! rights, and it listens on the node's own address alone.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, RollingUpdateDaemonSet},
        core::v1::{
            Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction, Namespace,
            ObjectFieldSelector, PodSecurityContext, PodSpec, PodTemplateSpec, Probe,
            ResourceRequirements, SeccompProfile, Service, ServiceAccount, ServicePort,
            ServiceSpec, Toleration,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};
use weir_api::place::names::{NODE_EXPORTER, POD_SECURITY_ENFORCE_LABEL, POD_SECURITY_PRIVILEGED};

use crate::{
    Object, PlaceOptions,
    hold::part::{COMPONENT_LABEL, NAME_LABEL, PRODUCT},
    security,
};

const COMPONENT: &str = "node-exporter";
/// Anybody but root; the usual number of nobody.
const NOBODY: i64 = 65534;
const PORT_NAME: &str = "metrics";

pub(super) fn objects(place: &PlaceOptions) -> [Object; 4] {
    [
        Object::from(namespace(place)),
        Object::from(ServiceAccount {
            metadata: metadata(place),
            automount_service_account_token: Some(false),
            ..ServiceAccount::default()
        }),
        Object::from(daemon_set(place)),
        Object::from(service(place)),
    ]
}

fn namespace(place: &PlaceOptions) -> Namespace {
    let mut labels = labels();
    let level = POD_SECURITY_PRIVILEGED.to_owned();
    labels.insert(POD_SECURITY_ENFORCE_LABEL.to_owned(), level);
    Namespace {
        metadata: ObjectMeta {
            name: Some(place.exporter_namespace.clone()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    }
}

fn daemon_set(place: &PlaceOptions) -> DaemonSet {
    DaemonSet {
        metadata: metadata(place),
        spec: Some(DaemonSetSpec {
            selector: LabelSelector {
                match_labels: Some(labels()),
                ..LabelSelector::default()
            },
            update_strategy: Some(DaemonSetUpdateStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateDaemonSet {
                    max_unavailable: Some(IntOrString::String("10%".to_owned())),
                    ..RollingUpdateDaemonSet::default()
                }),
            }),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels()),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod(place)),
            },
            ..DaemonSetSpec::default()
        }),
        ..DaemonSet::default()
    }
}

fn pod(place: &PlaceOptions) -> PodSpec {
    PodSpec {
        service_account_name: Some(NODE_EXPORTER.to_owned()),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        host_network: Some(true),
        node_selector: Some([("kubernetes.io/os".to_owned(), "linux".to_owned())].into()),
        // A full or sick node is the one that must be measured.
        tolerations: Some(vec![Toleration {
            operator: Some("Exists".to_owned()),
            ..Toleration::default()
        }]),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(NOBODY),
            run_as_group: Some(NOBODY),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        containers: vec![container(place)],
        ..PodSpec::default()
    }
}

fn container(place: &PlaceOptions) -> Container {
    let port = place.exporter_port;
    let asks = Probe {
        http_get: Some(HTTPGetAction {
            path: Some("/".to_owned()),
            port: IntOrString::Int(i32::from(port)),
            ..HTTPGetAction::default()
        }),
        timeout_seconds: Some(5),
        period_seconds: Some(10),
        failure_threshold: Some(6),
        ..Probe::default()
    };
    let requests = [("cpu", "10m"), ("memory", "24Mi")]
        .map(|(what, much)| (what.to_owned(), Quantity(much.to_owned())));
    Container {
        name: COMPONENT.to_owned(),
        image: Some(place.exporter_image.clone()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        args: Some(vec![
            // In brackets, which an IPv6 address needs and an IPv4 address may have.
            format!("--web.listen-address=[$(NODE_IP)]:{port}"),
            "--collector.disable-defaults".to_owned(),
            "--collector.netdev".to_owned(),
            "--collector.netclass".to_owned(),
        ]),
        env: Some(vec![EnvVar {
            name: "NODE_IP".to_owned(),
            value_from: Some(EnvVarSource {
                field_ref: Some(ObjectFieldSelector {
                    field_path: "status.hostIP".to_owned(),
                    api_version: Some("v1".to_owned()),
                }),
                ..EnvVarSource::default()
            }),
            ..EnvVar::default()
        }]),
        ports: Some(vec![ContainerPort {
            name: Some(PORT_NAME.to_owned()),
            container_port: i32::from(port),
            host_port: Some(i32::from(port)),
            protocol: Some("TCP".to_owned()),
            ..ContainerPort::default()
        }]),
        liveness_probe: Some(asks.clone()),
        readiness_probe: Some(asks),
        resources: Some(ResourceRequirements {
            requests: Some(requests.into()),
            ..ResourceRequirements::default()
        }),
        security_context: Some(security::no_rights()),
        ..Container::default()
    }
}

/// Without an address of its own: whoever else wants the figures finds every exporter by it.
fn service(place: &PlaceOptions) -> Service {
    let port = i32::from(place.exporter_port);
    Service {
        metadata: metadata(place),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            selector: Some(labels()),
            ports: Some(vec![ServicePort {
                name: Some(PORT_NAME.to_owned()),
                port,
                target_port: Some(IntOrString::Int(port)),
                protocol: Some("TCP".to_owned()),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

fn metadata(place: &PlaceOptions) -> ObjectMeta {
    ObjectMeta {
        name: Some(NODE_EXPORTER.to_owned()),
        namespace: Some(place.exporter_namespace.clone()),
        labels: Some(labels()),
        ..ObjectMeta::default()
    }
}

fn labels() -> BTreeMap<String, String> {
    [(NAME_LABEL, PRODUCT), (COMPONENT_LABEL, COMPONENT)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}
