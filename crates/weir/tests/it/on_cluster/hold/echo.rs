//! What is put to sleep: the lab's server behind an ordinary Service, and the ElastiService for it.

use serde_json::{Value, json};

use super::{install::APP_IMAGE, objects::Kind};

/// Where the server listens.
pub(super) const PORT: u16 = 8080;

/// A workload with its Service and ElastiService; all three have the same name.
#[derive(Clone, Debug)]
pub(super) struct Echo {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// For the server, after `echo`.
    pub(super) arguments: Vec<&'static str>,
    /// How long it may take to start, where the kubelet is to wait for that.
    pub(super) startup_seconds: Option<u32>,
    /// The node that it runs on, where that matters.
    pub(super) node: Option<String>,
}

impl Echo {
    /// A Deployment of this name.
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Deployment,
            arguments: Vec::new(),
            startup_seconds: None,
            node: None,
        }
    }

    /// Of another kind.
    pub(super) fn of_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// One replica.
    pub(super) fn workload(&self) -> Value {
        let labels = json!({"app": self.name});
        let mut spec = json!({
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 5, "containers": [self.container()]},
            },
        });
        match self.kind {
            Kind::StatefulSet => spec["serviceName"] = self.name.into(),
            Kind::Rollout => spec["strategy"] = json!({"canary": {}}),
            _ => {}
        }
        if let Some(node) = &self.node {
            spec["template"]["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
        }
        json!({"spec": spec})
    }

    fn container(&self) -> Value {
        let mut arguments = vec!["echo"];
        arguments.extend(&self.arguments);
        let probe = json!({"path": "/ready", "port": PORT});
        let mut container = json!({
            "name": "echo",
            "image": APP_IMAGE,
            "imagePullPolicy": "Never",
            "args": arguments,
            "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "readinessProbe": {"httpGet": probe, "periodSeconds": 1},
        });
        if let Some(seconds) = self.startup_seconds {
            container["startupProbe"] =
                json!({"httpGet": probe, "periodSeconds": 1, "failureThreshold": seconds});
        }
        container
    }

    /// An ordinary one, with one port.
    pub(super) fn service(&self) -> Value {
        json!({"spec": {
            "selector": {"app": self.name},
            "ports": [{"name": "http", "port": 80, "targetPort": PORT}],
        }})
    }

    /// Without triggers: it is held, and nobody but its users puts it to sleep.
    pub(super) fn elasti(&self) -> Value {
        json!({"spec": {
            "service": self.name,
            "scaleTargetRef": {
                "apiVersion": self.kind.api_version(), "kind": self.kind.name(), "name": self.name,
            },
            "cooldownPeriod": 1,
        }})
    }
}
