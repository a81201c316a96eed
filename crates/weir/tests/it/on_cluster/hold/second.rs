//! A second installation beside the usual one, for a test that needs settings of its own. It watches that test's namespace
//! and no other.
//!
//! Meanwhile the usual operators rest: they watch everything, and two would fight over one object.

use std::collections::BTreeSet;

use serde_json::Value;
use weir_lab::TestCluster;

use super::install;

/// How many operators there usually are.
const OPERATORS: &str = "2";

/// What is different from the usual one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settings {
    /// Flags of the operator.
    pub(super) operator: &'static [&'static str],
    /// Flags of the resolver, of which there is one.
    pub(super) resolver: &'static [&'static str],
    /// What is said to `weir manifests` as well.
    pub(super) manifests: &'static [&'static str],
}

/// It, until it is dropped; then the usual operators work again.
pub(super) struct Second {
    cluster: TestCluster,
    /// Where it is.
    pub(super) namespace: String,
    /// The kinds of its objects.
    pub(super) kinds: BTreeSet<String>,
}

impl Second {
    /// Installs it for this namespace.
    pub(super) async fn installed(
        cluster: &TestCluster,
        watched: &str,
        settings: Settings,
    ) -> Self {
        let image = install::installed(cluster).await;
        let cluster = cluster.clone();
        let watched = watched.to_owned();
        let install =
            tokio::task::spawn_blocking(move || install_second(cluster, image, &watched, settings));
        install.await.expect("a second Weir is installed")
    }
}

impl Drop for Second {
    /// After a panic as well: the next test needs the usual one.
    fn drop(&mut self) {
        let mut delete = self.cluster.kubectl();
        delete.args(["delete", "namespace", &self.namespace, "--wait=false"]);
        let deleted = delete.output();
        scale_operators(&self.cluster, OPERATORS);
        install::is_rolled_out(&self.cluster, install::NAMESPACE, "weir-operator");
        assert!(deleted.is_ok_and(|it| it.status.success()));
    }
}

fn install_second(cluster: TestCluster, image: &str, watched: &str, settings: Settings) -> Second {
    let namespace = format!("{watched}-weir");
    let arguments = [
        "--crds=false",
        "--operator-replicas=1",
        "--resolver-replicas=1",
        // What is limited is limited in each process.
        "--resolver-siblings=false",
        "--namespace",
        &namespace,
        "--watch-namespace",
        watched,
    ];
    let mut objects = install::printed(image, &[&arguments, settings.manifests].concat());
    add_flags(&mut objects, "weir-operator", settings.operator);
    add_flags(&mut objects, "weir-resolver", settings.resolver);
    let items = objects["items"].as_array().expect("a list");
    let kinds = items.iter().filter_map(|it| it["kind"].as_str());
    // From here on it is taken back, whatever happens.
    let second = Second {
        kinds: kinds.map(str::to_owned).collect(),
        cluster,
        namespace,
    };
    let cluster = &second.cluster;
    cluster.apply(&objects.to_string()).expect("it is applied");
    scale_operators(cluster, "0");
    for deployment in ["weir-resolver", "weir-operator"] {
        install::is_rolled_out(cluster, &second.namespace, deployment);
    }
    let mut wait = cluster.kubectl();
    wait.args(["-n", install::NAMESPACE, "wait", "pod", "--for=delete"]);
    wait.args(["-l", "app.kubernetes.io/component=operator"]);
    let output = wait.arg("--timeout=300s").output().expect("kubectl runs");
    assert!(output.status.success(), "operators are there: {output:?}");
    second
}

fn add_flags(objects: &mut Value, deployment: &str, flags: &[&str]) {
    let items = objects["items"].as_array_mut().into_iter().flatten();
    let meant =
        items.filter(|it| it["kind"] == "Deployment" && it["metadata"]["name"] == deployment);
    for deployment in meant {
        let arguments = deployment.pointer_mut("/spec/template/spec/containers/0/args");
        let arguments = arguments.and_then(Value::as_array_mut);
        let flags = flags.iter().map(|&flag| flag.into());
        arguments.expect("arguments").extend(flags);
    }
}

/// The usual ones.
fn scale_operators(cluster: &TestCluster, replicas: &str) {
    let mut scale = cluster.kubectl();
    scale.args(["-n", install::NAMESPACE, "scale", "deployment"]);
    scale.args(["weir-operator", "--replicas", replicas]);
    let output = scale.output().expect("kubectl runs");
    assert!(output.status.success(), "{output:?}");
}
