//! node_exporter on each node, with the node's own network devices.

use super::super::{Cluster, ClusterError, http, launch, launch::Launch};
use crate::{control_plane::flag, tools::NODE_EXPORTER};

pub(super) const PART: &str = "node-exporter";
/// The usual one, on each node's address.
pub(super) const PORT: u16 = 9100;

pub(super) fn start(cluster: &Cluster) -> Result<(), ClusterError> {
    let program = NODE_EXPORTER
        .directory(&cluster.cache)
        .join("node_exporter");
    for node in cluster.nodes() {
        let network = cluster.node_network(node);
        let mut launch = Launch::new(node.part(PART), program.clone(), &network).args([
            flag("web.listen-address", &format!("{}:{PORT}", node.address())),
            flag("log.level", "warn"),
        ]);
        // With the machine's /sys it would report the machine's devices.
        launch.own_sys = true;
        let mut child = launch.start(&cluster.layout)?;
        launch::wait_until_ready(&cluster.layout, &node.part(PART), &mut child, || {
            let ask = || http::is_ok(node.address(), PORT, "/metrics");
            network.inside(ask).unwrap_or(false)
        })?;
    }
    Ok(())
}
