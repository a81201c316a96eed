//! What is put to sleep: the lab's server behind a ClusterIP Service, in a namespace of its own for each run.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::site::{off_the_node_to_lose, prometheus};
use crate::{
    kube,
    site::{APP_IMAGE, Site},
};

/// Deployment, Service and ElastiService.
pub(super) const NAME: &str = "echo";
pub(super) const PORT: u16 = 8080;
/// As short as it may be: the next cycle should not wait for it.
const COOLDOWN_SECONDS: u32 = 5;
const PATIENCE: Duration = Duration::from_mins(2);

/// The target of a run.
pub(super) struct Target {
    pub(super) namespace: String,
}

/// Who puts it to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Somebody scales it to zero.
    ByHand,
    /// A trigger says that it is idle.
    ByTrigger,
}

impl Target {
    /// Makes it and waits until it is up.
    pub(super) fn deploy(site: &Site) -> Result<Self> {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "seconds since 1970"
        )]
        let namespace = format!("hold-{}", kube::now() as u64);
        let target = Self { namespace };
        site.cluster.apply(&target.objects().to_string())?;
        target.rolled_out(site)?;
        Ok(target)
    }

    /// Waits until all its pods are new and ready.
    pub(super) fn rolled_out(&self, site: &Site) -> Result<()> {
        kube::rolled_out(&site.cluster, &self.namespace, NAME, PATIENCE)
    }

    /// From now on Weir holds it, and waits until it does.
    pub(super) fn hold(&self, site: &Site) -> Result<()> {
        self.set_idle(site, false)?;
        kube::until(
            PATIENCE,
            "the operator reports on the ElastiService",
            || {
                let name = ["-n", &self.namespace, "elastiservice", NAME];
                let found = kube::get(&site.cluster, &name)?;
                let mode = &found["status"]["mode"];
                ensure!(*mode == "serve", "its mode is {mode}");
                Ok(())
            },
        )
    }

    /// With a trigger that says it is idle, whatever clients do; or without any.
    pub(super) fn set_idle(&self, site: &Site, is_idle: bool) -> Result<()> {
        Ok(site.cluster.apply(&self.elasti(is_idle).to_string())?)
    }

    /// A wake takes until its own probe succeeds, which is some time after it runs, and is asked as often as this. To be
    /// called while it is at zero: it stays there.
    pub(super) fn start_late(&self, site: &Site, delay: &str, period_seconds: u32) -> Result<()> {
        let mut container = container();
        container["args"] = json!(["echo", "--ready-delay", delay]);
        container["readinessProbe"]["periodSeconds"] = period_seconds.into();
        let patch = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
        let deployment = format!("deployment/{NAME}");
        let patch = patch.to_string();
        let line = ["-n", &self.namespace, "patch", &deployment, "-p", &patch];
        kube::run(&site.cluster, &line).map(drop)
    }

    /// Somebody scales it to zero.
    pub(super) fn scale_to_zero(&self, site: &Site) -> Result<()> {
        let deployment = format!("deployment/{NAME}");
        let scale = ["-n", &self.namespace, "scale", &deployment, "--replicas=0"];
        kube::run(&site.cluster, &scale).map(drop)
    }

    /// Clients come this way.
    pub(super) fn url(&self) -> String {
        format!("http://{NAME}.{}.svc.cluster.local/mirror", self.namespace)
    }

    fn objects(&self) -> Value {
        let labels = json!({"app": NAME});
        let metadata = json!({"name": NAME, "namespace": self.namespace});
        json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}},
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": metadata,
                "spec": {
                    "selector": {"matchLabels": labels},
                    "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {
                            "affinity": off_the_node_to_lose(),
                            "containers": [container()],
                        },
                    },
                },
            },
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": metadata,
                "spec": {"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": PORT}]},
            },
        ]})
    }

    fn elasti(&self, is_idle: bool) -> Value {
        // Every pod that is scraped shows that Prometheus is up: it is no pod itself here.
        let trigger = json!({"type": "prometheus", "metadata": {
            "serverAddress": prometheus(), "query": "vector(0)", "threshold": "1", "uptimeFilter": "job=\"pods\"",
        }});
        json!({
            "apiVersion": "elasti.truefoundry.com/v1alpha1",
            "kind": "ElastiService",
            "metadata": {"name": NAME, "namespace": self.namespace},
            "spec": {
                "service": NAME,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
                "cooldownPeriod": COOLDOWN_SECONDS,
                "triggers": if is_idle { vec![trigger] } else { Vec::new() },
            },
        })
    }
}

fn container() -> Value {
    json!({
        "name": NAME,
        "image": APP_IMAGE,
        "imagePullPolicy": "Never",
        "args": ["echo"],
        "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": PORT}, "periodSeconds": 1},
        "lifecycle": {"preStop": {"sleep": {"seconds": 3}}},
    })
}
