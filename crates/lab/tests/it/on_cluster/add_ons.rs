//! Each add-on does what people have it for.

use std::process::Command;

use serde_json::{Value, json};
use weir_lab::cluster::{
    Cluster,
    add_on::{prometheus, rabbitmq},
    http, layout,
};

use super::probes;

#[tokio::test]
async fn a_pod_resolves_the_name_of_a_service() {
    let (cluster, namespace) = probes::start("dns").await;
    probes::deploy(&cluster, &namespace, "app", 1);
    let pods = probes::ready_pods(&cluster, &namespace, "app", 1);
    let address = probes::service_address(&cluster, &namespace, "app").to_string();
    for name in [
        "app".to_owned(),
        format!("app.{namespace}.svc.cluster.local"),
    ] {
        probes::eventually(&format!("a pod resolves {name}"), || {
            let path = format!("/resolve/{name}");
            let answer = http::get(pods[0].1, probes::PORT, &path).map_err(|e| e.to_string())?;
            if answer.body.trim() == address {
                Ok(())
            } else {
                Err(format!("{answer:?}"))
            }
        });
    }
    let unknown = http::get(pods[0].1, probes::PORT, "/resolve/nobody").unwrap();
    assert_eq!(unknown.status, 502, "{unknown:?}");
}

#[tokio::test]
async fn prometheus_answers_a_query_about_a_pod() {
    let (cluster, namespace) = probes::start("prometheus").await;
    probes::deploy(&cluster, &namespace, "app", 1);
    let pods = probes::ready_pods(&cluster, &namespace, "app", 1);
    let path =
        format!("/api/v1/query?query=probe_requests_total%7Bnamespace%3D%22{namespace}%22%7D");
    let labels = probes::eventually("prometheus has scraped the pod", || {
        let answer = http::get(layout::CONTROL_PLANE, prometheus::PORT, &path);
        let body = answer.map_err(|error| error.to_string())?.body;
        let body: Value = serde_json::from_str(&body).map_err(|error| error.to_string())?;
        let labels = body["data"]["result"][0]["metric"].clone();
        if labels.is_object() {
            Ok(labels)
        } else {
            Err(body.to_string())
        }
    });
    assert_eq!(labels["node"], pods[0].0.as_str());
    assert_eq!(
        labels["instance"],
        format!("{}:{}", pods[0].1, probes::PORT)
    );
}

fn rabbit(method: &str, path: &str, body: &Value) -> Value {
    let headers = [rabbitmq::GUEST, ("Content-Type", "application/json")];
    let port = rabbitmq::MANAGEMENT_PORT;
    let answer = http::send(
        layout::CONTROL_PLANE,
        port,
        method,
        path,
        &headers,
        &body.to_string(),
    );
    let answer = answer.unwrap();
    assert!(answer.status < 300, "{method} {path}: {answer:?}");
    serde_json::from_str(&answer.body).unwrap_or_default()
}

#[tokio::test]
async fn rabbitmq_takes_a_message_and_gives_it_back() {
    let (_cluster, queue) = probes::start("rabbitmq").await;
    rabbit(
        "PUT",
        &format!("/api/queues/%2f/{queue}"),
        &json!({"durable": false}),
    );
    let published = rabbit(
        "POST",
        "/api/exchanges/%2f/amq.default/publish",
        &json!({"properties": {}, "routing_key": queue, "payload": "water", "payload_encoding": "string"}),
    );
    assert_eq!(published["routed"], true);
    let taken = rabbit(
        "POST",
        &format!("/api/queues/%2f/{queue}/get"),
        &json!({"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}),
    );
    assert_eq!(taken[0]["payload"], "water");
    rabbit("DELETE", &format!("/api/queues/%2f/{queue}"), &json!({}));
}

/// A ScaledObject that follows what a query of Prometheus says.
fn scaled_object(cluster: &Cluster, namespace: &str, query: &str) {
    let server = format!("http://{}:{}", layout::CONTROL_PLANE, prometheus::PORT);
    let object = json!({
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "app", "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"name": "app"},
            "pollingInterval": 1,
            "cooldownPeriod": 2,
            "minReplicaCount": 0,
            "maxReplicaCount": 3,
            "triggers": [{
                "type": "prometheus",
                "metadata": {"serverAddress": server, "query": query, "threshold": "1"},
            }],
        },
    });
    cluster.apply(&object.to_string()).unwrap();
}

#[tokio::test]
async fn a_scaled_object_scales_a_deployment_up_and_down() {
    let (cluster, namespace) = probes::start("keda").await;
    probes::deploy(&cluster, &namespace, "app", 0);
    scaled_object(&cluster, &namespace, "vector(1)");
    probes::ready_pods(&cluster, &namespace, "app", 1);
    scaled_object(&cluster, &namespace, "vector(0)");
    probes::ready_pods(&cluster, &namespace, "app", 0);
}

#[tokio::test]
async fn a_rollout_scales_through_its_scale_subresource() {
    let (cluster, namespace) = probes::start("rollouts").await;
    let rollout = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "app", "namespace": namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "app"}},
            "strategy": {"canary": {"steps": [{"setWeight": 50}]}},
            "template": probes::template("app"),
        },
    });
    cluster.apply(&rollout.to_string()).unwrap();
    probes::ready_pods(&cluster, &namespace, "app", 1);
    for replicas in [3, 0, 1] {
        // kubectl scale writes nothing but the subresource.
        let count = format!("--replicas={replicas}");
        let scale = [
            "-n",
            &namespace,
            "scale",
            "rollouts.argoproj.io/app",
            &count,
        ];
        let scaled = cluster.kubectl().args(scale).output().unwrap();
        assert!(scaled.status.success(), "{scaled:?}");
        probes::ready_pods(&cluster, &namespace, "app", replicas);
    }
    let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/rollouts/app/scale");
    let scale = probes::json_at(&cluster, &path);
    assert_eq!(scale["spec"]["replicas"], 1);
    assert_eq!(scale["status"]["selector"], "app=app");
}

#[tokio::test]
async fn objects_of_istio_and_of_the_gateway_api_can_be_made() {
    let (cluster, namespace) = probes::start("crds").await;
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "networking.istio.io/v1",
            "kind": "VirtualService",
            "metadata": {"name": "app", "namespace": namespace},
            "spec": {"hosts": ["app"], "http": [{"route": [{"destination": {"host": "app"}, "weight": 100}]}]},
        },
        {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": {"name": "app", "namespace": namespace},
            "spec": {"rules": [{"backendRefs": [{"name": "app", "port": 80}]}]},
        },
    ]});
    cluster.apply(&objects.to_string()).unwrap();
    let bad = objects
        .to_string()
        .replace("\"weight\":100", "\"weight\":\"heavy\"");
    assert!(cluster.apply(&bad).is_err(), "the schema is the real one");
}

#[tokio::test]
async fn node_exporter_tells_of_each_nodes_own_cable() {
    let cluster = weir_lab::cluster().await;
    for node in cluster.nodes() {
        let metrics = http::get(node.address(), 9100, "/metrics").unwrap().body;
        let eth0 = metrics
            .lines()
            .find(|line| line.starts_with("node_network_receive_bytes_total{device=\"eth0\"}"));
        assert!(eth0.is_some(), "{}", node.name());
        let speed = metrics
            .lines()
            .find_map(|line| line.strip_prefix("node_network_speed_bytes{device=\"eth0\"} "));
        assert_eq!(
            speed,
            Some("1.25e+09"),
            "{}: not the node's own /sys",
            node.name()
        );
    }
    let running = Command::new("mount").output().unwrap();
    let mounts = String::from_utf8(running.stdout).unwrap();
    assert_eq!(mounts.matches(" on /sys type sysfs").count(), 1, "{mounts}");
}
