//! Where everything of a cluster is: names, directories, addresses. Values alone; nothing here does anything.
//!
//! All of it follows from the cluster's name, so that [`super::clear`] finds what an `up` that was killed has left,
//! even if that had no time to write anything down.

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

use super::ClusterError;
use crate::cache::Cache;

/// The control plane's address: API server, tests, add-ons that are plain processes.
pub const CONTROL_PLANE: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 254);
/// Where the API server listens.
pub const API_SERVER_PORT: u16 = 6443;
/// Services have their addresses in here.
pub const SERVICES: &str = "10.96.0.0/16";
/// The address of the service that pods ask for names.
pub const DNS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);
/// The first address of [`SERVICES`]: the API server, as pods call it.
pub const KUBERNETES_SERVICE: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
/// Pods have their addresses in here; each node has a /24 of it.
pub const PODS: &str = "10.88.0.0/16";
/// More nodes than this do not fit the addresses.
pub const MOST_NODES: u8 = 200;

/// The clusters' place for sockets: their paths may have 107 bytes, too few for a home directory.
const RUN: &str = "/run/weir-lab";
const LONGEST_NAME: usize = 20;

/// The places of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    name: String,
    state_directory: PathBuf,
}

/// A node by its number, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node(pub u8);

impl Layout {
    /// The places of the cluster of this name; it need not exist.
    pub fn new(cache: &Cache, name: &str) -> Result<Self, ClusterError> {
        let layout = Self::of(cache.clusters().join(name))?;
        // With an empty name, or with one that is a path, the directory would be another one's.
        if layout.name == name {
            Ok(layout)
        } else {
            Err(ClusterError::Name(name.to_owned()))
        }
    }

    /// The places of the cluster with this state directory, whose last component is its name.
    pub fn of(state_directory: PathBuf) -> Result<Self, ClusterError> {
        let name = state_directory
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(fits) {
            return Err(ClusterError::Name(name));
        }
        Ok(Self {
            name,
            state_directory,
        })
    }

    /// The cluster's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Certificates, logs, data.
    pub fn state_directory(&self) -> &Path {
        &self.state_directory
    }

    /// Sockets and network namespaces.
    pub fn run_directory(&self) -> PathBuf {
        Path::new(RUN).join(&self.name)
    }

    /// What all clusters have their run directories in.
    pub fn all_run_directories() -> &'static Path {
        Path::new(RUN)
    }

    /// The cgroup that all nodes are in, below the root of each hierarchy.
    pub fn cgroup(&self) -> PathBuf {
        PathBuf::from(format!("weir-lab-{}", self.name))
    }

    /// The file that stands for the control plane's network namespace.
    pub fn control_plane_network(&self) -> PathBuf {
        self.run_directory().join("net/control-plane")
    }

    /// The file that stands for a node's network namespace.
    pub fn node_network(&self, node: Node) -> PathBuf {
        self.run_directory().join("net").join(node.name())
    }

    /// A node's own data.
    pub fn node_directory(&self, node: Node) -> PathBuf {
        self.state_directory.join(node.name())
    }

    /// A node's own sockets.
    pub fn node_run_directory(&self, node: Node) -> PathBuf {
        self.run_directory().join(node.name())
    }

    /// Where a node's containerd is spoken to.
    pub fn containerd_socket(&self, node: Node) -> PathBuf {
        self.node_run_directory(node).join("containerd.sock")
    }

    /// A node's own cgroup.
    pub fn node_cgroup(&self, node: Node) -> PathBuf {
        self.cgroup().join(node.name())
    }

    /// What CNI calls a node's pod network; CNI has one directory for all on this machine.
    pub fn pod_network(&self, node: Node) -> String {
        format!("weir-lab-{}-{}", self.name, node.name())
    }
}

impl Node {
    /// The nodes of a cluster with so many.
    pub fn first(count: u8) -> impl Iterator<Item = Self> {
        (1..=count).map(Self)
    }

    /// `n1`, `n2`, …: in Kubernetes and everywhere else.
    pub fn name(self) -> String {
        format!("n{}", self.0)
    }

    /// Its address on the bridge.
    pub fn address(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 99, 0, self.0)
    }

    /// The addresses of its pods.
    pub fn pods(self) -> String {
        format!("10.88.{}.0/24", self.0)
    }

    /// What one of its parts is called: `n1-kubelet`.
    pub fn part(self, part: &str) -> String {
        format!("{}-{part}", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain_because_they_end_up_in_paths_of_sockets() {
        let cache = Cache::at("/c");
        assert!(Layout::new(&cache, "weir-2").is_ok());
        for bad in [
            "",
            ".",
            "a/b",
            "../weir",
            "Weir",
            "a b",
            "a_b",
            "a-name-longer-than-twenty",
        ] {
            assert!(Layout::new(&cache, bad).is_err(), "{bad}");
        }
        let longest = Layout::new(&cache, &"x".repeat(LONGEST_NAME)).unwrap();
        let socket = longest.containerd_socket(Node(MOST_NODES));
        assert!(socket.as_os_str().len() < 90, "{}", socket.display());
    }

    #[test]
    fn nodes_are_counted_from_one_and_have_addresses_of_their_number() {
        let nodes: Vec<Node> = Node::first(3).collect();
        assert_eq!(nodes, [Node(1), Node(2), Node(3)]);
        assert_eq!(nodes[1].address(), Ipv4Addr::new(10, 99, 0, 2));
        assert_eq!(nodes[1].pods(), "10.88.2.0/24");
        assert_eq!(nodes[2].part("kubelet"), "n3-kubelet");
    }
}
