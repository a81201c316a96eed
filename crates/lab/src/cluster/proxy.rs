//! kube-proxy, in nftables mode: one on each node, and one for the control plane's namespace, so that tests and add-ons
//! there reach services as a pod does.

use std::{fs, net::Ipv4Addr, process::Child};

use super::{
    ClusterError, control, http,
    launch::Launch,
    layout::{self, Layout, Node},
    network::Network,
};
use crate::{control_plane::flag, pki, tools::NodePrograms};

/// Its name among the parts of a node, and alone that of the control plane's.
pub const PART: &str = "kube-proxy";
const HEALTH_PORT: u16 = 10256;

/// Starts a node's kube-proxy.
pub fn start_on_node(
    layout: &Layout,
    node: Node,
    network: &Network,
    programs: &NodePrograms,
) -> Result<Child, ClusterError> {
    let launch = launch(
        layout,
        node.part(PART),
        node.address(),
        node,
        network,
        programs,
    )?;
    launch.in_cgroup(layout.node_cgroup(node)).start(layout)
}

/// Starts the one of the control plane's namespace.
pub fn start_for_control_plane(
    layout: &Layout,
    network: &Network,
    programs: &NodePrograms,
) -> Result<Child, ClusterError> {
    // It says that it is on a node that exists: for one that does not it would wait 30 s.
    let node = Node(1);
    launch(
        layout,
        PART.to_owned(),
        layout::CONTROL_PLANE,
        node,
        network,
        programs,
    )?
    .start(layout)
}

/// Are the rules in place?
pub fn is_ready(network: &Network, address: Ipv4Addr) -> bool {
    let ask = || http::is_ok(address, HEALTH_PORT, "/livez");
    network.inside(ask).unwrap_or(false)
}

fn launch(
    layout: &Layout,
    part: String,
    address: Ipv4Addr,
    node: Node,
    network: &Network,
    programs: &NodePrograms,
) -> Result<Launch, ClusterError> {
    let file = layout.state_directory().join(format!("{part}.json"));
    let kubeconfig = pki::kubeconfig_of(layout.state_directory(), control::PROXY);
    let configuration = serde_json::json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "bindAddress": address,
        "clusterCIDR": layout::PODS,
        "nodePortAddresses": ["primary"],
        "clientConnection": {"kubeconfig": kubeconfig},
        // The machine's limit is the machine's.
        "conntrack": {"maxPerCore": 0},
        "oomScoreAdj": 0,
    });
    fs::write(&file, configuration.to_string()).map_err(|source| ClusterError::Directory {
        path: file.clone(),
        source,
    })?;
    Ok(
        Launch::new(part, programs.kube_proxy.clone(), network).args([
            flag("config", &file.to_string_lossy()),
            flag("hostname-override", &node.name()),
        ]),
    )
}
