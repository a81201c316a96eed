//! A node's cable carries less: `tc`'s token bucket on the node's end of it, for what the node sends.
//!
//! What does not fit waits in a queue of [`QUEUE`], as in a real card's, and is dropped when that is full. The interface
//! goes on saying the speed that it always said, and its counters count what went out.

use crate::cluster::{
    Cluster, ClusterError,
    layout::Node,
    network::{NODE_INTERFACE, Network},
};

/// How long bytes wait at most: about a thousand packets at 200 Mbit/s.
const QUEUE: &str = "50ms";
/// What goes out at once: some packets as large as the kernel makes them inside.
const BURST: &str = "256kb";

/// A cable that carries less than it could.
#[derive(Debug)]
#[must_use = "the cable carries all again when this is dropped"]
pub struct Shaped {
    network: Network,
    ended: bool,
}

/// Has a node send no more than this until the value is dropped.
pub fn limit(cluster: &Cluster, node: Node, bits_per_second: u64) -> Result<Shaped, ClusterError> {
    let network = cluster.node_network(node);
    let rate = format!("{bits_per_second}bit");
    let qdisc = ["qdisc", "replace", "dev", NODE_INTERFACE, "root", "tbf"];
    let bucket = ["rate", &rate, "burst", BURST, "latency", QUEUE];
    network.run("tc", &[&qdisc[..], &bucket[..]].concat())?;
    Ok(Shaped {
        network,
        ended: false,
    })
}

impl Shaped {
    /// Lets it carry all again.
    pub fn end(mut self) -> Result<(), ClusterError> {
        self.ended = true;
        self.remove()
    }

    fn remove(&self) -> Result<(), ClusterError> {
        let delete = ["qdisc", "delete", "dev", NODE_INTERFACE, "root"];
        self.network.run("tc", &delete)
    }
}

impl Drop for Shaped {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.remove();
        }
    }
}
