//! What is asleep, as objects: a Deployment at zero, its Service and an ElastiService each, as large as people's are, and
//! the empty EndpointSlices that Kubernetes makes for a Service without pods.

use std::{net::SocketAddr, ops::Range};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::prometheus;
use crate::bench::scale::{api::Api, hands};

/// So many namespaces have about the same number of services each.
const NAMESPACES: usize = 20;
const JSON: &str = "application/json";
/// What kubectl leaves at each object that it has applied: the object once more, as a text.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const OBJECTS: &str = "/apis/elasti.truefoundry.com/v1alpha1";

pub(super) fn create_namespaces(api: &Api) -> Result<()> {
    (0..NAMESPACES).try_for_each(|number| {
        let namespace = json!({ "metadata": { "name": namespace(number) } });
        api.send("POST", "/api/v1/namespaces", JSON, &namespace)
    })
}

pub(super) fn create(api: &Api, numbers: Range<usize>) -> Result<()> {
    hands::each(numbers, |number| {
        let namespace = namespace(number);
        let at = |group: &str, resource: &str| format!("{group}/namespaces/{namespace}/{resource}");
        let slices = at("/apis/discovery.k8s.io/v1", "endpointslices");
        let public = name(number);
        // The second one is that of the private Service.
        for service in [&public, &format!("{public}-beside")] {
            api.send("POST", &slices, JSON, &empty_slice(service))?;
        }
        for (path, object) in [
            (at("/apis/apps/v1", "deployments"), deployment(&public)),
            (at("/api/v1", "services"), service(&public)),
            (at(OBJECTS, "elastiservices"), elasti_service(&public)),
        ] {
            let sent = api.send("POST", &path, JSON, &applied(object));
            sent.with_context(|| format!("{public} at {path}"))?;
        }
        Ok(())
    })
}

/// Each asks one of the queries; many ask the same.
pub(super) fn add_triggers(api: &Api, services: usize, prometheus: SocketAddr) -> Result<()> {
    hands::each(0..services, |number| {
        let (namespace, name) = (namespace(number), name(number));
        let path = format!("{OBJECTS}/namespaces/{namespace}/elastiservices/{name}");
        let trigger = json!({
            "type": "prometheus",
            "metadata": {
                "serverAddress": format!("http://{prometheus}"),
                "query": prometheus::query(number),
                "threshold": "0.5",
            },
        });
        let change = json!({ "spec": { "triggers": [trigger] } });
        api.send("PATCH", &path, "application/merge-patch+json", &change)
    })
}

/// How many are asleep and held, as their present spec says.
pub(super) fn held(api: &Api) -> Result<usize> {
    let mut held = 0;
    for number in 0..NAMESPACES {
        let namespace = namespace(number);
        let list = api.get_json(&format!("{OBJECTS}/namespaces/{namespace}/elastiservices"))?;
        let items = list["items"].as_array().into_iter().flatten();
        held += items.filter(|object| is_held(object)).count();
    }
    Ok(held)
}

fn is_held(object: &Value) -> bool {
    let status = &object["status"];
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let is_ready = conditions.any(|it| it["type"] == "Ready" && it["status"] == "True");
    is_ready
        && status["phase"] == "Asleep"
        && status["observedGeneration"] == object["metadata"]["generation"]
}

fn namespace(number: usize) -> String {
    format!("team-{:02}", number % NAMESPACES)
}

fn name(number: usize) -> String {
    format!("service-{number:05}")
}

/// As `kubectl apply` would have made it.
fn applied(mut object: Value) -> Value {
    let text = object.to_string();
    object["metadata"]["annotations"][LAST_APPLIED] = text.into();
    object
}

fn labels(name: &str) -> Value {
    json!({
        "app.kubernetes.io/component": "backend",
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/part-of": "shop",
    })
}

fn selector(name: &str) -> Value {
    json!({ "app.kubernetes.io/component": "backend", "app.kubernetes.io/instance": name })
}

fn deployment(name: &str) -> Value {
    let environment: Vec<Value> = (0..12)
        .map(|number| json!({ "name": format!("SETTING_{number}"), "value": format!("the value of {number}") }))
        .collect();
    let probe =
        |path: &str| json!({ "httpGet": { "path": path, "port": "http" }, "periodSeconds": 10 });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name, "labels": labels(name) },
        "spec": {
            "replicas": 0,
            "selector": { "matchLabels": selector(name) },
            "template": {
                "metadata": { "labels": labels(name) },
                "spec": {
                    "serviceAccountName": name,
                    "securityContext": { "runAsNonRoot": true },
                    "containers": [{
                        "name": "app",
                        "image": format!("registry.example/team/{name}:1.2.3"),
                        "ports": [{ "name": "http", "containerPort": 8080 }],
                        "env": environment,
                        "resources": { "requests": { "cpu": "100m", "memory": "128Mi" }, "limits": { "memory": "256Mi" } },
                        "readinessProbe": probe("/ready"),
                        "livenessProbe": probe("/live"),
                        "lifecycle": { "preStop": { "sleep": { "seconds": 5 } } },
                        "volumeMounts": [{ "name": "settings", "mountPath": "/settings" }],
                    }],
                    "volumes": [{ "name": "settings", "configMap": { "name": name } }],
                },
            },
        },
    })
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": name, "labels": labels(name) },
        "spec": {
            "selector": selector(name),
            "ports": [{ "name": "http", "port": 80, "targetPort": "http" }],
        },
    })
}

fn elasti_service(name: &str) -> Value {
    json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1",
        "kind": "ElastiService",
        "metadata": { "name": name, "labels": labels(name) },
        "spec": {
            "service": name,
            "minTargetReplicas": 1,
            "cooldownPeriod": 300,
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": name },
        },
    })
}

fn empty_slice(service: &str) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": format!("{service}-x7k2p"),
            "labels": {
                "kubernetes.io/service-name": service,
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            },
        },
        "addressType": "IPv4",
        "endpoints": [],
        "ports": [],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_held_as_its_spec_says_counts() {
        let object = |ready: &str, phase: &str, observed: u32| {
            json!({
                "metadata": { "generation": 2 },
                "status": {
                    "phase": phase,
                    "observedGeneration": observed,
                    "conditions": [{ "type": "Accepted", "status": "True" }, { "type": "Ready", "status": ready }],
                },
            })
        };
        assert!(is_held(&object("True", "Asleep", 2)));
        assert!(!is_held(&object("False", "Asleep", 2)));
        assert!(!is_held(&object("True", "Waking", 2)));
        assert!(!is_held(&object("True", "Asleep", 1)));
        assert!(!is_held(&json!({ "metadata": { "generation": 1 } })));
    }
}
