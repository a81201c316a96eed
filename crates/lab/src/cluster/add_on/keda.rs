//! KEDA: its operator, which scales between 0 and 1 by itself, and its metrics adapter, which the autoscaler of
//! Kubernetes asks above 1.

use std::path::{Path, PathBuf};

use super::super::{Cluster, ClusterError, http, launch, layout};
use crate::{
    control_plane::flag,
    pki,
    tools::{KEDA, KEDA_ADAPTER},
};

pub(super) const OPERATOR: &str = "keda-operator";
pub(super) const ADAPTER: &str = "keda-adapter";
const NAMESPACE: &str = "keda";

const LOOPBACK: std::net::Ipv4Addr = std::net::Ipv4Addr::LOCALHOST;
const OPERATOR_METRICS: u16 = 18080;
const OPERATOR_HEALTH: u16 = 18081;
/// Where the operator tells the adapter what it measures.
const BETWEEN_THEM: &str = "127.0.0.1:9666";
const ADAPTER_PORT: u16 = 16443;

pub(super) fn start_operator(cluster: &Cluster) -> Result<(), ClusterError> {
    let namespace = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    cluster.apply(&namespace.to_string())?;
    let certificates = certificates(cluster)?;
    let program = KEDA.directory(&cluster.cache).join(OPERATOR);
    let launch = in_namespace(cluster, OPERATOR, &program).args([
        flag("cert-dir", &certificates.to_string_lossy()),
        flag("metrics-service-bind-address", BETWEEN_THEM),
        flag(
            "metrics-bind-address",
            &format!("{LOOPBACK}:{OPERATOR_METRICS}"),
        ),
        flag(
            "health-probe-bind-address",
            &format!("{LOOPBACK}:{OPERATOR_HEALTH}"),
        ),
    ]);
    let mut child = launch.start(&cluster.layout)?;
    launch::wait_until_ready(&cluster.layout, OPERATOR, &mut child, || {
        let ask = || http::is_ok(LOOPBACK, OPERATOR_HEALTH, "/readyz");
        cluster.network().inside(ask).unwrap_or(false)
    })
}

pub(super) fn start_adapter(cluster: &Cluster) -> Result<(), ClusterError> {
    cluster.apply(&adapter_objects().to_string())?;
    let certificates = certificates(cluster)?;
    let kubeconfig = cluster.kubeconfig();
    let state = cluster.layout.state_directory();
    let program = KEDA_ADAPTER.directory(&cluster.cache).join(ADAPTER);
    let launch = in_namespace(cluster, ADAPTER, &program).args([
        flag("secure-port", &ADAPTER_PORT.to_string()),
        flag("bind-address", &layout::CONTROL_PLANE.to_string()),
        flag("lister-kubeconfig", &kubeconfig.to_string_lossy()),
        flag("authentication-kubeconfig", &kubeconfig.to_string_lossy()),
        flag("authorization-kubeconfig", &kubeconfig.to_string_lossy()),
        flag("metrics-service-address", BETWEEN_THEM),
        flag(
            "client-ca-file",
            &pki::file(state, "ca.crt").to_string_lossy(),
        ),
        flag(
            "tls-cert-file",
            &certificates.join("tls.crt").to_string_lossy(),
        ),
        flag(
            "tls-private-key-file",
            &certificates.join("tls.key").to_string_lossy(),
        ),
        flag("cert-dir", &certificates.to_string_lossy()),
    ]);
    let mut child = launch.start(&cluster.layout)?;
    launch::wait_until_ready(&cluster.layout, ADAPTER, &mut child, || {
        cluster
            .get("/apis/external.metrics.k8s.io/v1beta1")
            .is_some()
    })
}

fn in_namespace(cluster: &Cluster, part: &str, program: &Path) -> launch::Launch {
    cluster
        .launch(part, program)
        .env("KUBECONFIG", cluster.kubeconfig().to_string_lossy())
        .env("KEDA_CLUSTER_OBJECT_NAMESPACE", NAMESPACE)
        .env("POD_NAMESPACE", NAMESPACE)
        // Empty: all of them.
        .env("WATCH_NAMESPACE", "")
}

fn certificates(cluster: &Cluster) -> Result<PathBuf, ClusterError> {
    let directory = cluster.layout.state_directory().join("keda-certificates");
    cluster.copy_certificates(&directory)?;
    Ok(directory)
}

/// The adapter is no pod: a service without selector points at the process.
fn adapter_objects() -> serde_json::Value {
    let name = "keda-metrics";
    serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": ADAPTER_PORT}]},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "ports": [{"name": "https", "port": ADAPTER_PORT, "protocol": "TCP"}],
            "endpoints": [{"addresses": [layout::CONTROL_PLANE], "conditions": {"ready": true}}],
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
            "spec": {
                "group": "external.metrics.k8s.io",
                "version": "v1beta1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": true,
                "service": {"name": name, "namespace": NAMESPACE},
            },
        },
    ]})
}
