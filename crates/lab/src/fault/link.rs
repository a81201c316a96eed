//! A node's cable is cut, loses packets, or lets none through for a port: rules of nftables at its two ends.
//!
//! Packets are dropped where they arrive, before anything else sees them, ARP included: senders notice nothing, as with
//! a real cable. What a node and its own pods say to each other does not go through the cable, and goes on.

use crate::cluster::{
    Cluster, ClusterError,
    layout::Node,
    network::{NODE_INTERFACE, Network},
};

const TABLE: &str = "weir_fault";

/// Which packets a fault is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the node to all others.
    FromNode,
    /// From all others to the node.
    ToNode,
    /// Both.
    Both,
}

/// A cable that is cut, or loses packets.
#[derive(Debug)]
#[must_use = "the cable is mended when this is dropped"]
pub struct Cut {
    /// Where the rules are, and in which table.
    ends: Vec<(Network, String)>,
}

/// Cuts a node off from the control plane and from all other nodes until the value is dropped.
pub fn partition(cluster: &Cluster, node: Node) -> Result<Cut, ClusterError> {
    spoil(cluster, node, Direction::Both, "drop")
}

/// Loses this share of a node's packets, in per cent and at random, until the value is dropped.
pub fn loss(
    cluster: &Cluster,
    node: Node,
    direction: Direction,
    per_cent: u8,
) -> Result<Cut, ClusterError> {
    let rule = format!("numgen random mod 100 < {} drop", per_cent.min(100));
    spoil(cluster, node, direction, &rule)
}

/// Drops what comes to a node from elsewhere for this TCP port, as a NetworkPolicy does, until the value is dropped. Its
/// kubelet still reaches its pods.
pub fn shut(cluster: &Cluster, node: Node, port: u16) -> Result<Cut, ClusterError> {
    let rule = format!("tcp dport {port} drop");
    spoil(cluster, node, Direction::ToNode, &rule)
}

fn spoil(
    cluster: &Cluster,
    node: Node,
    direction: Direction,
    rule: &str,
) -> Result<Cut, ClusterError> {
    // In the control plane's namespace the node's end of the cable is called as the node; one table for each.
    let far_end = (
        cluster.network(),
        format!("{TABLE}_{}", node.name()),
        node.name(),
    );
    let near_end = (
        cluster.node_network(node),
        TABLE.to_owned(),
        NODE_INTERFACE.to_owned(),
    );
    let meant = match direction {
        Direction::FromNode => vec![far_end],
        Direction::ToNode => vec![near_end],
        Direction::Both => vec![far_end, near_end],
    };
    // Filled as rules are made: should one fail, those before it are dropped.
    let mut cut = Cut { ends: Vec::new() };
    for (network, table, interface) in meant {
        let rules = format!(
            "add table netdev {table}\n\
             add chain netdev {table} arriving {{ type filter hook ingress device \"{interface}\" priority 0 ; }}\n\
             add rule netdev {table} arriving counter {rule}\n"
        );
        network.run("nft", &[&rules])?;
        cut.ends.push((network, table));
    }
    Ok(cut)
}

impl Cut {
    /// Mends the cable.
    pub fn mend(mut self) -> Result<(), ClusterError> {
        self.remove()
    }

    fn remove(&mut self) -> Result<(), ClusterError> {
        let mut outcome = Ok(());
        for (network, table) in self.ends.drain(..) {
            outcome = outcome.and(network.run("nft", &["delete", "table", "netdev", &table]));
        }
        outcome
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}
