//! Where it all happens: a cluster of three nodes, and hold installed as `weir manifests` prints it.

use anyhow::Result;
use serde_json::{Value, json};
use weir_lab::cluster::{
    Options,
    add_on::AddOn,
    layout::{self, Node},
};

use crate::site::Site;

const NODES: u8 = 3;
/// How soon a trigger that says "idle" is heard.
const POLLING_INTERVAL: &str = "2s";

/// Takes the cluster or starts it, and installs. Without an operator only the resolvers must be ready.
pub(super) fn prepare(cluster: &str, with_operator: bool, is_dev: bool) -> Result<Site> {
    let options = Options {
        name: cluster.to_owned(),
        nodes: NODES,
        add_ons: vec![AddOn::Dns, AddOn::Prometheus],
    };
    let site = Site::take(&options, is_dev)?;
    let mut objects = site.printed("hold", &[])?;
    make_impatient(&mut objects);
    site.install(&objects)?;
    site.rolled_out("weir-resolver")?;
    if with_operator {
        site.rolled_out("weir-operator")?;
    }
    Ok(site)
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
