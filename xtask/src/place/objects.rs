//! What is put into the cluster: a service of the lab's servers, the TrafficWatch that places it, and traffic that has
//! nothing to do with it. Values alone.

use serde_json::{Value, json};
use weir_lab::cluster::layout::Node;

use crate::site::APP_IMAGE;

/// Who fills an interface, and who takes that.
pub(crate) const SENDER: &str = "sender";
pub(crate) const TAKER: &str = "taker";
const TAKER_PORT: u16 = 9001;
/// The service's own port.
const PORT: u16 = 8080;

/// Takes what the sender sends.
pub(crate) fn taker(namespace: &str, node: Node) -> Value {
    let mut object = deployment(TAKER, namespace, &spec(TAKER, 1, &container(&["discard"])));
    object["spec"]["template"]["spec"]["nodeSelector"] = pinned(node);
    object
}

/// Sends as much as goes through the node's interface, once it has a replica. It gives way as TCP does: each connection has its
/// share of a full link.
pub(crate) fn sender(namespace: &str, node: Node, to: &str, connections: u32) -> Value {
    let to = format!("{to}:{TAKER_PORT}");
    let connections = connections.to_string();
    let arguments = ["generate", &to, "--connections", &connections];
    let mut object = deployment(SENDER, namespace, &spec(SENDER, 0, &container(&arguments)));
    object["spec"]["template"]["spec"]["nodeSelector"] = pinned(node);
    object
}

/// A Deployment's spec: servers that answer until they have gone from all lists.
pub(crate) fn server_spec(name: &str, replicas: u32) -> Value {
    // Longer than it takes a client to use each of its connections once more.
    let mut server = container(&["echo", "--linger", "3s"]);
    server["readinessProbe"] =
        json!({"httpGet": {"path": "/ready", "port": PORT}, "periodSeconds": 1});
    server["lifecycle"] = json!({"preStop": {"sleep": {"seconds": 3}}});
    let mut spec = spec(name, replicas, &server);
    spec["template"]["spec"]["terminationGracePeriodSeconds"] = json!(30);
    spec
}

/// The Deployment by itself, as it is without Weir.
pub(crate) fn deployment(name: &str, namespace: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    })
}

/// The same placed by a TrafficWatch, whose other fields are given. Its label has the name of the namespace.
pub(crate) fn watch(name: &str, namespace: &str, deployment: &Value, fields: &Value) -> Value {
    let mut spec = fields.clone();
    spec["deployment"] = deployment.clone();
    spec["label"] = json!(label(name, namespace));
    json!({
        "apiVersion": "traffic.example.com/v1alpha1",
        "kind": "TrafficWatch",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    })
}

/// What the watch's nodes are labelled with, before the dot.
fn label(name: &str, namespace: &str) -> String {
    format!("{namespace}-{name}")
}

/// The key of that label.
pub(crate) fn key(name: &str, namespace: &str) -> String {
    format!("{}.traffic.example.com/unfit", label(name, namespace))
}

/// Where the service is asked.
pub(crate) fn service(name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": PORT}]},
    })
}

/// So many of its pods must be there, whoever evicts.
pub(crate) fn budget(name: &str, namespace: &str, least: u32) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": name}}},
    })
}

fn spec(name: &str, replicas: u32, container: &Value) -> Value {
    let labels = json!({"app": name});
    json!({
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"terminationGracePeriodSeconds": 2, "containers": [container]},
        },
    })
}

fn container(arguments: &[&str]) -> Value {
    json!({
        "name": "app",
        "image": APP_IMAGE,
        "imagePullPolicy": "Never",
        "args": arguments,
        "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    })
}

fn pinned(node: Node) -> Value {
    json!({"kubernetes.io/hostname": node.name()})
}
