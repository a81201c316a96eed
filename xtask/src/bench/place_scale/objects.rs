//! The cluster that is measured, as objects: nodes with an address each, watches that all measure differently.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::INTERVAL;
use crate::bench::scale::{NAMESPACE, api::Api, hands};

/// What every node's interface carries, in bytes per second: ten gigabits.
pub(super) const CAPACITY: u64 = 1_250_000_000;
/// Label of the nodes whose labels are watched while rounds are timed.
pub(super) const PROBE: &str = "bench.weir/probe";
/// Where the watches are.
const WATCHES: &str = "/apis/traffic.example.com/v1alpha1/namespaces/bench/trafficwatches";
/// What is excluded where nothing is said.
const EXCLUDED: [&str; 25] = [
    "lo",
    "veth*",
    "cni*",
    "cali*",
    "cilium*",
    "lxc*",
    "eni*",
    "azv*",
    "gke*",
    "flannel*",
    "docker*",
    "br-*",
    "virbr*",
    "ovn*",
    "ovs*",
    "genev*",
    "vxlan*",
    "tun*",
    "tap*",
    "tunl*",
    "wg*",
    "kube-*",
    "nodelocaldns",
    "dummy*",
    "ifb*",
];
/// One node of so many is a probe.
const APART: usize = 500;

pub(super) fn node_name(number: usize) -> String {
    format!("n{number:05}")
}

/// 10.98.0.1 and so on.
pub(super) fn address(number: usize) -> Ipv4Addr {
    let [high, low] = u16::try_from(number + 1).unwrap_or(u16::MAX).to_be_bytes();
    Ipv4Addr::new(10, 98, high, low)
}

pub(super) fn number_of(address: Ipv4Addr) -> Option<usize> {
    let [_, _, high, low] = address.octets();
    usize::from(u16::from_be_bytes([high, low])).checked_sub(1)
}

/// Evenly over all, the last one included: nodes are asked in the order of their names.
pub(super) fn is_probe(number: usize, nodes: usize) -> bool {
    (nodes - 1 - number).is_multiple_of(APART.min(nodes / 5).max(1))
}

pub(super) fn label(watch: usize) -> String {
    format!("w{watch:02}.traffic.example.com/unfit")
}

pub(super) fn create_nodes(api: &Api, nodes: usize) -> Result<()> {
    hands::each(0..nodes, |number| {
        let node = node(number, nodes);
        api.send("POST", "/api/v1/nodes", "application/json", &node)?;
        // The API server taints new nodes; nobody else here takes that away.
        let path = format!("/api/v1/nodes/{}", node_name(number));
        let without = json!({ "spec": { "taints": null } });
        api.send("PATCH", &path, "application/merge-patch+json", &without)
    })
}

/// As large as nodes are: kubelets write some dozen labels, annotations and images.
fn node(number: usize, nodes: usize) -> Value {
    let name = node_name(number);
    let images: Vec<Value> = (0..20)
        .map(|image| {
            let digest = format!("{image:064x}");
            json!({ "names": [format!("registry.example/team/app-{image}@sha256:{digest}")], "sizeBytes": 50_000_000 })
        })
        .collect();
    let mut node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/region": "r1",
                "topology.kubernetes.io/zone": format!("r1-{}", number % 3),
                "node.kubernetes.io/instance-type": "large",
            },
        },
        "status": {
            "addresses": [{ "type": "InternalIP", "address": address(number).to_string() }],
            "conditions": [{ "type": "Ready", "status": "True" }],
            "allocatable": { "cpu": "32", "memory": "128Gi", "pods": "110" },
            "capacity": { "cpu": "32", "memory": "128Gi", "pods": "110" },
            "images": images,
        },
    });
    if is_probe(number, nodes) {
        node["metadata"]["labels"][PROBE] = json!("yes");
    }
    node
}

pub(super) fn create_watches(api: &Api, watches: usize) -> Result<()> {
    (0..watches).try_for_each(|number| {
        api.send("POST", WATCHES, "application/json", &watch(number))
            .with_context(|| format!("TrafficWatch {number}"))
    })
}

/// No two of them measure alike, so that nothing is measured once for several.
fn watch(number: usize) -> Value {
    let direction = ["transmit", "max"][number % 2];
    let mut exclude: Vec<String> = EXCLUDED.iter().map(|&name| name.to_owned()).collect();
    exclude.push(format!("x{number}*"));
    let name = format!("w{number:02}");
    json!({
        "apiVersion": "traffic.example.com/v1alpha1",
        "kind": "TrafficWatch",
        "metadata": { "name": name },
        "spec": {
            "maxBandwidthPercent": "60",
            "interval": format!("{}s", INTERVAL.as_secs()),
            "direction": direction,
            "samples": { "unfit": 1, "fit": 1 },
            "maxSampleAge": format!("{}s", 180 + number),
            "interfaces": { "exclude": exclude },
            "deployment": {
                // Pods are nothing that place measures.
                "replicas": 0,
                "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "app", "image": "none" }] },
                },
            },
        },
    })
}

/// Whether every watch has begun and has its Deployment.
pub(super) fn are_placed(api: &Api, watches: usize) -> Result<bool> {
    let list = api.get_json(WATCHES)?;
    let items = list["items"].as_array().into_iter().flatten();
    let ready = items.filter(|item| item["status"]["ready"] == true).count();
    let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments");
    let list = api.get_json(&path)?;
    let deployments = list["items"].as_array().map_or(0, Vec::len);
    Ok(ready == watches && deployments == watches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_numbers_belong_together() {
        for number in [0, 1, 254, 255, 256, 4999] {
            assert_eq!(number_of(address(number)), Some(number));
        }
        assert_eq!(number_of(Ipv4Addr::new(10, 98, 0, 0)), None);
    }

    #[test]
    fn the_last_node_is_a_probe() {
        for nodes in [500, 5000] {
            assert!(is_probe(nodes - 1, nodes));
            let probes = (0..nodes).filter(|number| is_probe(*number, nodes)).count();
            assert!((5..=10).contains(&probes), "{probes}");
        }
    }
}
