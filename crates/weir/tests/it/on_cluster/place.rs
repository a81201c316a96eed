//! Place on real nodes: traffic that flows from one node to another, measured by node_exporter as it is installed, and
//! pods that keep off the node that sends too much.

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde_json::{Value, json};
use weir_api::place::names::unfit_label_key;
use weir_lab::{Namespace, TestCluster, cache::Cache, tools::NODE_EXPORTER};

use super::{
    install::{self, APP_IMAGE},
    objects::{Kind, Objects},
};
use crate::output_of;

const NAMESPACE: &str = "weir-place";
const EXPORTERS: &str = "weir-place-exporter";
const EXPORTER_IMAGE: &str = "localhost/node-exporter:place-test";
/// A few readings of five seconds each, a pod that starts, and a busy machine.
const PATIENCE: Duration = Duration::from_mins(4);
/// What the nodes' interfaces are said to carry, in bits a second. They are virtual, and could do more.
const CAPACITY: u64 = 80_000_000;
/// Answers of a mebibyte each second: some 67 Mbit/s, which a machine with other things to do can send as well.
const ANSWERS: u32 = 8;

/// Place, installed until it is dropped.
struct Place {
    cluster: TestCluster,
    namespace: Namespace,
    objects: Objects,
}

impl Place {
    async fn installed(name: &str) -> Self {
        let cluster = weir_lab::cluster().await;
        let image = install::installed(&cluster).await;
        let namespace = cluster.namespace(name).await;
        let objects = Objects::new(cluster.client(), namespace.name());
        // From here on it is taken back, whatever happens.
        let place = Self {
            cluster: cluster.clone(),
            namespace,
            objects,
        };
        let install = tokio::task::spawn_blocking(move || install_place(&cluster, image));
        install.await.expect("place is installed");
        place
    }

    /// The label of the watch: the namespace's, so that one which an earlier run has left is not met.
    fn label(&self) -> &str {
        self.namespace.name()
    }

    /// The state of each node, as its label has it; none if the API server takes too long to say.
    fn labels(&self) -> Option<BTreeMap<String, String>> {
        let nodes = self.cluster.get("/api/v1/nodes")?;
        let nodes: Value = serde_json::from_slice(&nodes).expect("JSON");
        let nodes = nodes["items"].as_array().expect("a list").iter();
        let key = unfit_label_key(self.label());
        let states = nodes.filter_map(|node| {
            let state = node["metadata"]["labels"][&key].as_str()?;
            Some((
                node["metadata"]["name"].as_str()?.to_owned(),
                state.to_owned(),
            ))
        });
        Some(states.collect())
    }

    async fn until_labels(&self, what: &str, unfit: &[&str]) {
        let expected: BTreeMap<String, String> = ["n1", "n2", "n3"]
            .into_iter()
            .map(|node| (node.to_owned(), unfit.contains(&node).to_string()))
            .collect();
        let look = || async {
            let labels = self.labels();
            if labels.as_ref() == Some(&expected) {
                return Ok(());
            }
            let watch = self.objects.find(Kind::TrafficWatch, "web").await;
            let status = watch.map(|watch| watch["status"].to_string());
            Err(format!("{labels:?}, {status:?}"))
        };
        self.namespace.eventually(PATIENCE, what, look).await;
    }

    /// The nodes of the pods that are there and do not go, once there are so many and all run.
    async fn nodes_of(&self, app: &str, count: usize) -> Vec<String> {
        let look = || async {
            let pods = self.objects.list(Kind::Pod, &format!("app={app}")).await;
            let nodes: Vec<String> = pods
                .iter()
                .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
                .filter(|pod| pod["status"]["phase"] == "Running")
                .filter_map(|pod| pod["spec"]["nodeName"].as_str())
                .map(str::to_owned)
                .collect();
            if nodes.len() == count {
                Ok(nodes)
            } else {
                Err(format!("{nodes:?} of {}", pods.len()))
            }
        };
        let what = format!("{count} pods of {app} run");
        self.namespace.eventually(PATIENCE, &what, look).await
    }

    /// A workload of one pod that runs the lab's server on this node.
    async fn run(&self, name: &str, node: &str, arguments: &Value) {
        let mut spec = deployment(name, 1, arguments);
        spec["template"]["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
        let deployment = json!({"spec": spec});
        self.objects
            .apply(Kind::Deployment, name, &deployment)
            .await;
        self.nodes_of(name, 1).await;
    }

    /// Where the one pod of a workload is reached.
    async fn address(&self, app: &str) -> String {
        let pods = self.objects.list(Kind::Pod, &format!("app={app}")).await;
        let address = pods.first().and_then(|pod| pod["status"]["podIP"].as_str());
        address.expect("an address").to_owned()
    }
}

impl Drop for Place {
    /// After a panic as well: it would go on measuring while others are measured.
    fn drop(&mut self) {
        let mut delete = self.cluster.kubectl();
        delete.args(["delete", "namespace", NAMESPACE, EXPORTERS, "--wait=false"]);
        assert!(delete.output().is_ok_and(|output| output.status.success()));
    }
}

fn install_place(cluster: &TestCluster, image: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = Cache::of_environment().expect("a cache");
    let exporter = NODE_EXPORTER.directory(&cache).join("node_exporter");
    install::load(
        cluster,
        EXPORTER_IMAGE,
        Path::new(&exporter),
        directory.path(),
    );
    let objects = output_of(&[
        "manifests",
        "--only=place",
        "--format=json",
        "--operator-replicas=1",
        "--namespace",
        NAMESPACE,
        "--image",
        image,
        "--node-exporter-namespace",
        EXPORTERS,
        "--node-exporter-image",
        EXPORTER_IMAGE,
    ]);
    cluster.apply(&objects).expect("it is applied");
    install::is_rolled_out(cluster, NAMESPACE, "weir-operator");
}

fn deployment(name: &str, replicas: u32, arguments: &Value) -> Value {
    let labels = json!({"app": name});
    json!({
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": "app", "image": APP_IMAGE, "imagePullPolicy": "Never", "args": arguments,
                }],
            },
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_keep_off_a_node_that_sends_too_much_until_it_does_not() {
    let place = Place::installed("place").await;
    place.run("source", "n1", &json!(["echo"])).await;
    let watch = json!({"spec": {
        "maxBandwidthPercent": "50",
        "label": place.label(),
        "clearPercent": "30",
        "interval": "5s",
        "minDwell": "0s",
        "interfaces": {"include": ["eth0"]},
        "capacities": [{"bitsPerSecond": CAPACITY}],
        "deployment": deployment("web", 3, &json!(["echo"])),
    }});
    place.objects.apply(Kind::TrafficWatch, "web", &watch).await;
    place.until_labels("all nodes are fit", &[]).await;
    place.nodes_of("web", 3).await;

    let from = place.address("source").await;
    let rate = ANSWERS.to_string();
    let load = json!([
        "load",
        format!("http://{from}:8080/bytes/1048576"),
        "--rate",
        rate,
        "--duration",
        "60m",
        "--connections",
        "8",
        "--threads",
        "1",
    ]);
    place.run("drain", "n2", &load).await;
    place
        .until_labels("the node that sends is full", &["n1"])
        .await;
    let change = json!({"spec": {"deployment": {"replicas": 9}}});
    let running = place.nodes_of("web", 3).await;
    let there = running.iter().filter(|node| *node == "n1").count();
    place
        .objects
        .patch(Kind::TrafficWatch, "web", &change)
        .await;
    let nodes = place.nodes_of("web", 9).await;
    let now_there = nodes.iter().filter(|node| *node == "n1").count();
    assert_eq!(now_there, there, "new pods keep off: {nodes:?}");

    place.objects.delete(Kind::Deployment, "drain").await;
    place
        .until_labels("it is fit when the traffic is over", &[])
        .await;
    place.objects.delete(Kind::TrafficWatch, "web").await;
    let look = || async {
        let labels = place.labels();
        let is_gone = place
            .objects
            .find(Kind::TrafficWatch, "web")
            .await
            .is_none();
        (labels.as_ref().is_some_and(BTreeMap::is_empty) && is_gone)
            .then_some(())
            .ok_or_else(|| format!("{labels:?}"))
    };
    let what = "nothing is left on nodes";
    place.namespace.eventually(PATIENCE, what, look).await;
    place.objects.delete_all().await;
}
