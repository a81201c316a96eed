//! A node that gets no new pods, or loses those that it has: what administrators do to nodes every day.

use crate::cluster::{Cluster, ClusterError, layout::Node, network};

/// A node that gets no new pods.
#[derive(Debug)]
#[must_use = "the node gets pods again when this is dropped"]
pub struct Cordoned<'a> {
    cluster: &'a Cluster,
    node: Node,
    ended: bool,
}

/// Keeps new pods off a node until the value is dropped.
pub fn cordon(cluster: &Cluster, node: Node) -> Result<Cordoned<'_>, ClusterError> {
    kubectl(cluster, &["cordon", &node.name()])?;
    Ok(Cordoned {
        cluster,
        node,
        ended: false,
    })
}

/// Keeps new pods off a node and evicts those that it has, but for those of DaemonSets.
///
/// Returns when they have gone. What PodDisruptionBudgets forbid is waited for as long as they say, up to `seconds`.
pub fn drain(cluster: &Cluster, node: Node, seconds: u32) -> Result<Cordoned<'_>, ClusterError> {
    let cordoned = cordon(cluster, node)?;
    let timeout = format!("--timeout={seconds}s");
    let name = node.name();
    let drain = [
        "drain",
        &name,
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        "--force",
        &timeout,
    ];
    kubectl(cluster, &drain)?;
    Ok(cordoned)
}

impl Cordoned<'_> {
    /// Lets it have pods again.
    pub fn uncordon(mut self) -> Result<(), ClusterError> {
        self.ended = true;
        kubectl(self.cluster, &["uncordon", &self.node.name()])
    }
}

impl Drop for Cordoned<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let _ = kubectl(self.cluster, &["uncordon", &self.node.name()]);
        }
    }
}

fn kubectl(cluster: &Cluster, arguments: &[&str]) -> Result<(), ClusterError> {
    network::run(cluster.kubectl().args(arguments))
}
