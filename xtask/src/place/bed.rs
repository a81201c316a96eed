//! A cluster of three nodes with place installed as `weir manifests` prints it, and a namespace for one run.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use weir_lab::{
    cluster::{Options, layout::Node},
    fault::{Shaped, shape},
    tools::NODE_EXPORTER,
};

use super::objects;
use crate::{kube, site::Site, tools};

/// The cluster's name; `cargo xtask cluster --name weir-place …` looks at it.
const NAME: &str = "weir-place";
const NODES: u8 = 3;
/// The node whose interface is filled, and the one that takes what it sends.
pub(crate) const FULL: Node = Node(1);
pub(crate) const TAKING: Node = Node(2);
const EXPORTER_IMAGE: &str = "localhost/node-exporter:dev";
const PATIENCE: Duration = Duration::from_mins(2);

/// The cluster, and where this run has its objects.
pub(crate) struct Bed {
    pub(crate) site: Site,
    /// Of this run alone; nodes' labels have its name as well.
    pub(crate) namespace: String,
    /// Interfaces carry all again when it is over.
    shaped: Vec<Shaped>,
}

impl Bed {
    /// Takes the cluster or starts it, installs place, and deploys the sender, which does not send yet.
    pub(crate) fn prepare(is_dev: bool, sender_connections: u32) -> Result<Self> {
        let options = Options {
            name: NAME.to_owned(),
            nodes: NODES,
            add_ons: Vec::new(),
        };
        let site = Site::take(&options, is_dev)?;
        tools::ensure(&[&NODE_EXPORTER], site.cache())?;
        let exporter = NODE_EXPORTER.directory(site.cache()).join("node_exporter");
        site.load(EXPORTER_IMAGE, &exporter)?;
        let objects = site.printed("place", &["--node-exporter-image", EXPORTER_IMAGE])?;
        site.install(&objects)?;
        site.rolled_out("weir-operator")?;
        let namespace = format!("place-{:.0}", kube::now());
        let bed = Self {
            site,
            namespace,
            shaped: Vec::new(),
        };
        bed.apply(&[json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bed.namespace},
        })])?;
        bed.apply(&[objects::taker(&bed.namespace, TAKING)])?;
        let address = bed.address(objects::TAKER)?;
        let sender = objects::sender(&bed.namespace, FULL, &address, sender_connections);
        bed.apply(&[sender])?;
        Ok(bed)
    }

    /// Has a node send no more than this, as long as the bed is there.
    pub(crate) fn shape(&mut self, node: Node, bits_per_second: u64) -> Result<()> {
        let shaped = shape::limit(&self.site.cluster, node, bits_per_second)?;
        self.shaped.push(shaped);
        Ok(())
    }

    /// All nodes.
    pub(crate) fn nodes(&self) -> Vec<Node> {
        self.site.cluster.nodes()
    }

    /// Begins or ends to fill [`FULL`]'s interface. Returns when that was asked for; [`super::nic`] sees when it is so.
    pub(crate) fn fill(&self, is_on: bool) -> Result<()> {
        let replicas = if is_on {
            "--replicas=1"
        } else {
            "--replicas=0"
        };
        let sender = format!("deployment/{}", objects::SENDER);
        self.kubectl(&["scale", &sender, replicas]).map(drop)
    }

    pub(crate) fn apply(&self, objects: &[Value]) -> Result<()> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        Ok(self.site.cluster.apply(&list.to_string())?)
    }

    /// kubectl in this run's namespace.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let namespace = ["-n", &self.namespace];
        kube::run(&self.site.cluster, &[&namespace[..], arguments].concat())
    }

    /// An object of this run's namespace, or a list.
    pub(crate) fn get(&self, arguments: &[&str]) -> Result<Value> {
        let namespace = ["-n", &self.namespace];
        kube::get(&self.site.cluster, &[&namespace[..], arguments].concat())
    }

    /// Waits until a Deployment is there and all its pods are ready.
    pub(crate) fn rolled_out(&self, deployment: &str) -> Result<()> {
        kube::until(PATIENCE, "the Deployment is there", || {
            self.get(&["deployment", deployment])
        })?;
        kube::rolled_out(&self.site.cluster, &self.namespace, deployment, PATIENCE)
    }

    /// The nodes of an application's pods that run and do not go.
    pub(crate) fn nodes_of(&self, app: &str) -> Result<Vec<String>> {
        let pods = self.get(&["pods", &format!("-lapp={app}")])?;
        let pods = pods["items"].as_array().cloned().unwrap_or_default();
        let stays = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
        let node = |pod: &Value| pod["spec"]["nodeName"].as_str().map(str::to_owned);
        Ok(pods.iter().filter(stays).filter_map(node).collect())
    }

    /// The address of an application's one pod, once it has one.
    fn address(&self, app: &str) -> Result<String> {
        kube::until(PATIENCE, "the pod has an address", || {
            let pods = self.get(&["pods", &format!("-lapp={app}")])?;
            let address = pods.pointer("/items/0/status/podIP");
            let address = address.and_then(Value::as_str);
            address.map(str::to_owned).context("it has none yet")
        })
    }

    /// Where clients reach a Service.
    pub(crate) fn service(&self, name: &str) -> Result<String> {
        let service = self.get(&["service", name])?;
        let address = service["spec"]["clusterIP"].as_str();
        Ok(address.context("the Service has no address")?.to_owned())
    }

    /// Removes a watch and what belongs to it, and waits until nothing of it is left, labels included.
    pub(crate) fn remove(&self, watch: &str) -> Result<()> {
        self.kubectl(&["delete", "trafficwatch", watch, "--timeout=60s"])?;
        self.gone(watch)
    }

    /// Waits until an application has no pods any more.
    pub(crate) fn gone(&self, app: &str) -> Result<()> {
        kube::until(PATIENCE, "its pods are gone", || {
            let pods = self.get(&["pods", &format!("-lapp={app}")])?;
            let count = pods["items"].as_array().map_or(0, Vec::len);
            ensure!(count == 0, "{count} are there");
            Ok(())
        })
    }

    /// Takes the cluster down, or says how to look at it.
    pub(crate) fn end(self, keep: bool) -> Result<()> {
        let Self { site, shaped, .. } = self;
        drop(shaped);
        if keep {
            site.say_how_to_look();
            return Ok(());
        }
        site.leave()
    }
}
