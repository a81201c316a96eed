//! The kubelet of a node.

use std::{fs, process::Child};

use super::{
    ClusterError,
    launch::Launch,
    layout::{self, Layout, Node},
    network::Network,
};
use crate::{control_plane::flag, pki, tools::NodePrograms};

/// Its name among the parts of a node.
pub const PART: &str = "kubelet";

/// Starts a node's kubelet.
pub fn start(
    layout: &Layout,
    node: Node,
    network: &Network,
    programs: &NodePrograms,
) -> Result<Child, ClusterError> {
    let directory = layout.node_directory(node);
    let cannot_write = |source| ClusterError::Directory {
        path: directory.clone(),
        source,
    };
    let resolv_conf = format!("nameserver {}\n", layout::DNS);
    fs::write(directory.join("resolv.conf"), resolv_conf).map_err(cannot_write)?;
    let file = directory.join("kubelet.json");
    fs::write(&file, configuration(layout, node)).map_err(cannot_write)?;

    let kubeconfig = pki::kubeconfig_of(layout.state_directory(), &node.name());
    Launch::new(node.part(PART), programs.kubelet.clone(), network)
        .args([
            flag("config", &file.to_string_lossy()),
            flag("kubeconfig", &kubeconfig.to_string_lossy()),
            flag("root-dir", &directory.join("kubelet").to_string_lossy()),
            flag("cert-dir", &directory.join("kubelet/pki").to_string_lossy()),
            flag("hostname-override", &node.name()),
            flag("node-ip", &node.address().to_string()),
            // What it counts of pods (cAdvisor in it) it is told by containerd, which it looks for in one place otherwise: without
            // this it does not know which counters of the network are whose.
            flag(
                "containerd",
                &layout.containerd_socket(node).to_string_lossy(),
            ),
        ])
        .in_cgroup(layout.node_cgroup(node))
        .start(layout)
}

/// Does this node, as the API server has it, say that it is ready?
pub fn says_ready(node: &[u8]) -> bool {
    let node: serde_json::Value = serde_json::from_slice(node).unwrap_or_default();
    let conditions = node["status"]["conditions"].as_array();
    conditions.is_some_and(|conditions| {
        conditions
            .iter()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    })
}

fn configuration(layout: &Layout, node: Node) -> String {
    let directory = layout.node_directory(node);
    let state = layout.state_directory();
    serde_json::json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address(),
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": pki::file(state, "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": pki::file(state, &format!("{}.crt", node.name())),
        "tlsPrivateKeyFile": pki::file(state, &format!("{}.key", node.name())),
        "containerRuntimeEndpoint": format!("unix://{}", layout.containerd_socket(node).display()),
        // There is no systemd here, and cgroup v1 is good enough.
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", layout.node_cgroup(node).display()),
        "failCgroupV1": false,
        "failSwapOn": false,
        // Root may lack the right to lower it.
        "oomScoreAdj": 0,
        "clusterDNS": [layout::DNS],
        "clusterDomain": "cluster.local",
        "resolvConf": directory.join("resolv.conf"),
        "podLogsDir": directory.join("pod-logs"),
        "volumePluginDir": directory.join("volume-plugins"),
        // All nodes share the machine's disk: none must evict pods because it fills up for another reason.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_ready_when_its_condition_says_so() {
        let node = |status: &str| {
            format!(
                r#"{{"status":{{"conditions":[{{"type":"DiskPressure","status":"True"}},
                   {{"type":"Ready","status":"{status}"}}]}}}}"#
            )
        };
        assert!(says_ready(node("True").as_bytes()));
        assert!(!says_ready(node("Unknown").as_bytes()));
        assert!(!says_ready(b"{}"));
        assert!(!says_ready(b"no such node"));
    }
}
