//! Pods of the lab's own probe image, and how tests look at them.

use std::{
    fmt::Debug,
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use weir_lab::{
    TestCluster,
    cluster::{Cluster, http, kubelet, sandbox_image},
};

/// The port that a probe serves on.
pub(super) const PORT: u16 = 8080;
/// What anything in a quiet cluster does in seconds may take on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_mins(3);

/// Waits until this gives something, or fails with what it gave last.
pub(super) fn eventually<T, E: Debug>(what: &str, mut look: impl FnMut() -> Result<T, E>) -> T {
    within(PATIENCE, what, &mut look)
}

pub(super) fn within<T, E: Debug>(
    patience: Duration,
    what: &str,
    mut look: impl FnMut() -> Result<T, E>,
) -> T {
    let deadline = Instant::now() + patience;
    loop {
        match look() {
            Ok(found) => return found,
            Err(last) if Instant::now() >= deadline => {
                panic!("{what}: not within {patience:?}; last seen: {last:?}")
            }
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// A pod template for a probe, which Prometheus scrapes.
pub(super) fn template(name: &str) -> Value {
    json!({
        "metadata": {
            "labels": {"app": name},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": PORT.to_string()},
        },
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "topologySpreadConstraints": [{
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                // One on each node that takes pods: some tests need to know where they are.
                "whenUnsatisfiable": "DoNotSchedule",
                "nodeTaintsPolicy": "Honor",
                "labelSelector": {"matchLabels": {"app": name}},
            }],
            "containers": [{
                "name": "probe",
                "image": sandbox_image::PROBE,
                "imagePullPolicy": "Never",
                "readinessProbe": {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1},
            }],
        },
    })
}

/// A Deployment of probes and a Service before them, both of this name.
pub(super) fn deploy(cluster: &Cluster, namespace: &str, name: &str, replicas: u32) {
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": template(name),
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": PORT}]},
        },
    ]});
    cluster.apply(&objects.to_string()).unwrap();
}

/// Waits until so many pods with this label are ready, and returns where they run: node and address.
pub(super) fn ready_pods(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    count: usize,
) -> Vec<(String, Ipv4Addr)> {
    let path = format!("/api/v1/namespaces/{namespace}/pods?labelSelector=app%3D{name}");
    eventually(&format!("{count} pods of {name} are ready"), || {
        let list = json_at(cluster, &path);
        let pods = list["items"].as_array().cloned().unwrap_or_default();
        let is_ready = |pod: &&Value| {
            let conditions = pod["status"]["conditions"].as_array();
            pod["metadata"]["deletionTimestamp"].is_null()
                && conditions.is_some_and(|all| {
                    all.iter()
                        .any(|c| c["type"] == "Ready" && c["status"] == "True")
                })
        };
        let ready: Vec<(String, Ipv4Addr)> = pods
            .iter()
            .filter(is_ready)
            .map(|pod| {
                let node = pod["spec"]["nodeName"].as_str().unwrap().to_owned();
                (
                    node,
                    pod["status"]["podIP"].as_str().unwrap().parse().unwrap(),
                )
            })
            .collect();
        if ready.len() == count {
            Ok(ready)
        } else {
            Err(list["items"].clone())
        }
    })
}

/// The address of a Service.
pub(super) fn service_address(cluster: &Cluster, namespace: &str, name: &str) -> Ipv4Addr {
    let service = json_at(
        cluster,
        &format!("/api/v1/namespaces/{namespace}/services/{name}"),
    );
    service["spec"]["clusterIP"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap()
}

/// What the API server says at this path; null if it does not.
pub(super) fn json_at(cluster: &Cluster, path: &str) -> Value {
    let said = cluster.get(path).unwrap_or_default();
    serde_json::from_slice(&said).unwrap_or_default()
}

/// Does a request to this address come through?
pub(super) fn reaches(address: Ipv4Addr, port: u16) -> Result<String, String> {
    let answer = http::get(address, port, "/").map_err(|error| error.to_string())?;
    if answer.status == 200 {
        Ok(answer.body)
    } else {
        Err(format!("{answer:?}"))
    }
}

/// Waits until all nodes are ready and take pods: an earlier test may have done something to one of them.
pub(super) fn all_nodes_are_well(cluster: &Cluster) {
    for node in cluster.nodes() {
        let path = format!("/api/v1/nodes/{}", node.name());
        eventually(&format!("{} is well", node.name()), || {
            let object = cluster.get(&path).unwrap_or_default();
            let node: Value = serde_json::from_slice(&object).unwrap_or_default();
            let taints = &node["spec"]["taints"];
            if kubelet::says_ready(&object) && taints.as_array().is_none_or(Vec::is_empty) {
                Ok(())
            } else {
                Err(node)
            }
        });
    }
}

/// The cluster with all its nodes, and a namespace in it.
pub(super) async fn start(prefix: &str) -> (TestCluster, String) {
    let cluster = weir_lab::cluster().await;
    all_nodes_are_well(&cluster);
    let namespace = cluster.namespace(prefix).await.name().to_owned();
    (cluster, namespace)
}
