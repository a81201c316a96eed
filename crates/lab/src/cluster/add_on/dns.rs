//! CoreDNS as a pod behind the service address that every kubelet tells its pods.

use super::super::{Cluster, ClusterError, layout, network, sandbox_image};
use crate::tools::COREDNS;

const IMAGE: &str = "localhost/weir-lab/coredns:1";
/// Above 1024: the image's user is not root.
const PORT: u16 = 1053;

pub(super) fn start(cluster: &Cluster) -> Result<(), ClusterError> {
    let directory = COREDNS.directory(&cluster.cache);
    let image = directory.join("coredns.tar");
    sandbox_image::of_file_if_newer(IMAGE, &directory.join("coredns"), &image)?;
    cluster.load(&image)?;
    cluster.apply(&objects().to_string())?;
    network::run(cluster.kubectl().args([
        "--namespace=kube-system",
        "rollout",
        "status",
        "deployment/coredns",
        "--timeout=300s",
    ]))
}

fn objects() -> serde_json::Value {
    let corefile = format!(
        ".:{PORT} {{\n  errors\n  ready :8181\n  kubernetes cluster.local in-addr.arpa {{\n    ttl 5\n  }}\n}}\n"
    );
    let meta = |name: &str| serde_json::json!({"name": name, "namespace": "kube-system"});
    let reads = ["list", "watch"];
    serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta("coredns")},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "weir-lab:coredns"},
            "rules": [
                {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": reads},
                {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": reads},
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "weir-lab:coredns"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "weir-lab:coredns"},
            "subjects": [{"kind": "ServiceAccount", "name": "coredns", "namespace": "kube-system"}],
        },
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("coredns"), "data": {"Corefile": corefile}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta("coredns"),
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"k8s-app": "kube-dns"}},
                "template": {
                    "metadata": {"labels": {"k8s-app": "kube-dns"}},
                    "spec": {
                        "serviceAccountName": "coredns",
                        "dnsPolicy": "Default",
                        "priorityClassName": "system-cluster-critical",
                        "containers": [{
                            "name": "coredns",
                            "image": IMAGE,
                            "imagePullPolicy": "Never",
                            "args": ["-conf", "/etc/coredns/Corefile"],
                            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
                            "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": true}],
                        }],
                        "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
                    },
                },
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta("kube-dns"),
            "spec": {
                "clusterIP": layout::DNS,
                "selector": {"k8s-app": "kube-dns"},
                "ports": [
                    {"name": "dns", "port": 53, "targetPort": PORT, "protocol": "UDP"},
                    {"name": "dns-tcp", "port": 53, "targetPort": PORT, "protocol": "TCP"},
                ],
            },
        },
    ]})
}
