//! Where it all happens: a cluster of three nodes, our images on each of them, and hold installed as `weir manifests` prints it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use weir_lab::{
    cache::Cache,
    cluster::{
        Cluster, Options,
        add_on::AddOn,
        layout::{self, Node},
    },
    image::program,
};

use super::kube;
use crate::program::{LAB_APP, Program, WEIR};

/// The cluster's name; `cargo xtask cluster --name weir-e2e …` looks at it.
const NAME: &str = "weir-e2e";
const NODES: u8 = 3;
const WEIR_IMAGE: &str = "localhost/weir:dev";
/// The server and the clients.
pub(super) const APP_IMAGE: &str = "localhost/lab-app:dev";
/// Where Weir is installed.
pub(super) const NAMESPACE: &str = "weir";
/// How soon a trigger that says "idle" is heard.
const POLLING_INTERVAL: &str = "2s";
const PATIENCE: Duration = Duration::from_mins(3);

/// The cluster, with everything in it.
pub(super) struct Site {
    pub(super) cluster: Cluster,
    cache: Cache,
    was_up: bool,
}

impl Site {
    /// Takes the cluster or starts it, and installs. Without an operator only the resolvers must be ready.
    pub(super) fn prepare(with_operator: bool, is_dev: bool) -> Result<Self> {
        let build = |program: Program| {
            if is_dev {
                program.build_for_tests()
            } else {
                program.build()
            }
        };
        let programs = [(WEIR_IMAGE, build(WEIR)?), (APP_IMAGE, build(LAB_APP)?)];
        let cache = Cache::of_environment()?;
        let was_up = Cluster::open(&cache, NAME)?.is_some();
        let options = Options {
            name: NAME.to_owned(),
            nodes: NODES,
            add_ons: vec![AddOn::Dns, AddOn::Prometheus],
        };
        let cluster = crate::cluster::take(&cache, &options)?;
        let site = Self {
            cluster,
            cache,
            was_up,
        };
        for (tag, program) in &programs {
            site.load(tag, program)?;
        }
        site.install(&programs[0].1, with_operator)?;
        Ok(site)
    }

    fn load(&self, tag: &str, program: &Path) -> Result<()> {
        println!("  loading {tag} …");
        let gathered = program::gather(tag, program, &[])?;
        let file = tempfile(tag);
        fs::write(&file, gathered.image.pack()?.tar)
            .with_context(|| format!("cannot write {}", file.display()))?;
        let loaded = self.cluster.load(&file);
        // It is of no use any more, whatever came of it.
        let _ = fs::remove_file(&file);
        Ok(loaded?)
    }

    fn install(&self, weir: &Path, with_operator: bool) -> Result<()> {
        println!("  installing what `weir manifests --only hold` prints …");
        let mut command = Command::new(weir);
        command.args(["manifests", "--only", "hold", "--format", "json"]);
        let output = command.args(["--image", WEIR_IMAGE]).output();
        let output = output.with_context(|| format!("cannot run {}", weir.display()))?;
        if !output.status.success() {
            bail!(
                "weir manifests: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        let mut objects: Value = serde_json::from_slice(&output.stdout)?;
        make_impatient(&mut objects);
        self.cluster.apply(&objects.to_string())?;
        // A tag that stays the same does not restart what ran before.
        if self.was_up {
            kube::run(
                &self.cluster,
                &["-n", NAMESPACE, "rollout", "restart", "deployment"],
            )?;
        }
        self.rolled_out("weir-resolver")?;
        if with_operator {
            self.rolled_out("weir-operator")?;
        }
        Ok(())
    }

    /// Waits until all pods of a Deployment are ready.
    pub(super) fn rolled_out(&self, deployment: &str) -> Result<()> {
        let timeout = format!("--timeout={}s", PATIENCE.as_secs());
        let deployment = format!("deployment/{deployment}");
        let arguments = ["-n", NAMESPACE, "rollout", "status", &deployment, &timeout];
        kube::run(&self.cluster, &arguments).map(drop)
    }

    /// Takes the cluster down, unless it was there before.
    pub(super) fn leave(&self) -> Result<()> {
        if !self.was_up {
            Cluster::down(&self.cache, NAME)?;
        }
        Ok(())
    }

    pub(super) fn say_how_to_look() {
        println!("\nThe cluster is left as it is for you to look at:");
        println!("  cargo xtask cluster --name {NAME} kubectl get pods -A");
        println!("  cargo xtask cluster --name {NAME} down");
    }
}

/// The node that is lost when one is; no client and no target is there, or their end would be counted as ours.
pub(super) fn node_to_lose() -> Node {
    Node(NODES)
}

/// An affinity that keeps pods off [`node_to_lose`].
pub(super) fn off_the_node_to_lose() -> Value {
    let elsewhere = json!({
        "key": "kubernetes.io/hostname", "operator": "NotIn", "values": [node_to_lose().name()],
    });
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [elsewhere]}],
    }}})
}

/// Where Prometheus is asked.
pub(super) fn prometheus() -> String {
    format!("http://{}:9090", layout::CONTROL_PLANE)
}

fn tempfile(tag: &str) -> PathBuf {
    let name = tag.replace(['/', ':'], "-");
    std::env::temp_dir().join(format!("weir-e2e-{}-{name}.tar", std::process::id()))
}

/// Triggers are asked every half minute by default, and nobody wants to wait for that a hundred times.
fn make_impatient(objects: &mut Value) {
    let items = objects["items"].as_array_mut().into_iter().flatten();
    let operators =
        items.filter(|it| it["kind"] == "Deployment" && it["metadata"]["name"] == "weir-operator");
    for operator in operators {
        let environment = operator.pointer_mut("/spec/template/spec/containers/0/env");
        if let Some(all) = environment.and_then(Value::as_array_mut) {
            all.push(json!({"name": "POLLING_INTERVAL", "value": POLLING_INTERVAL}));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_operator_is_told_to_poll_more_often() {
        let deployment = |name: &str| {
            json!({"kind": "Deployment", "metadata": {"name": name},
                "spec": {"template": {"spec": {"containers": [{"env": []}]}}}})
        };
        let mut objects = json!({"items": [{"kind": "Service"}, deployment("weir-resolver"), deployment("weir-operator")]});
        make_impatient(&mut objects);
        let environment = |index: usize| {
            let path = format!("/items/{index}/spec/template/spec/containers/0/env");
            objects.pointer(&path).unwrap().as_array().unwrap().len()
        };
        assert_eq!((environment(1), environment(2)), (0, 1));
    }
}
