//! A real Kubernetes cluster on this machine: a control plane and nodes in network namespaces, with add-ons.
//!
//! It needs root and Linux, and nothing from outside but packages of the distribution and Go modules. [`Cluster::up`]
//! makes it, [`Cluster::down`] removes it, however it ended; `docs/lab.md` has the picture.
//!
//! - [`layout`]: names, directories and addresses, all from the cluster's name;
//! - [`network`], [`cgroup`], [`mounts`], [`machine`], [`packages`]: what of the machine is used, and given back;
//! - [`launch`]: how a process is started and waited for;
//! - [`control`], [`containerd`], [`kubelet`], [`proxy`], [`sandbox_image`]: the parts;
//! - [`add_on`]: what users have beside Kubernetes;
//! - [`clear`]: removes it all.
//!
//! Unlike the server of [`crate::server`] a cluster has no keeper: it stays until it is taken down, and the next `up`
//! of the same name clears away what was killed.

pub mod add_on;
pub mod cgroup;
pub mod clear;
pub mod containerd;
pub mod control;
mod cri;
mod error;
pub mod http;
pub mod kubelet;
pub mod launch;
pub mod layout;
pub mod machine;
pub mod mounts;
pub mod network;
pub mod packages;
pub mod proxy;
pub mod sandbox_image;
mod start;
pub mod state;

use std::{
    ffi::OsStr,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

pub use self::error::ClusterError;
use self::{
    add_on::AddOn,
    layout::{Layout, Node},
    network::Network,
    start::Start,
    state::State,
};
use crate::{
    cache::Cache,
    control_plane, marks,
    tools::{self, NodePrograms, Programs},
};

/// The name of the cluster that people use by hand.
pub const BY_HAND: &str = "weir";
/// The name of the cluster that `cargo xtask test --cluster` uses.
pub const FOR_TESTS: &str = "weir-test";

/// How long a running API server may take to answer.
const PATIENCE: Duration = Duration::from_mins(1);
const GLANCE: Duration = Duration::from_millis(100);

/// What a cluster should be.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name: clusters of different names do not see each other.
    pub name: String,
    /// How many nodes.
    pub nodes: u8,
    /// What to start beside Kubernetes; on a cluster that is up, what it does not have yet.
    pub add_ons: Vec<AddOn>,
}

/// What `up` tells while it works.
#[derive(Clone, Debug)]
pub enum Step {
    /// This begins.
    Doing(String),
    /// This is done, so long after its beginning.
    Done(String, Duration),
}

/// A cluster that is up.
#[derive(Clone, Debug)]
pub struct Cluster {
    layout: Layout,
    programs: Programs,
    cache: Cache,
    state: State,
}

impl Cluster {
    /// Takes the cluster of this name if it is well, or clears away what is left of it and starts it.
    pub fn up(
        cache: &Cache,
        options: &Options,
        tell: &mut dyn FnMut(Step),
    ) -> Result<Self, ClusterError> {
        let layout = Layout::new(cache, &options.name)?;
        if !may_be_made() {
            return Err(ClusterError::NotRoot);
        }
        if options.nodes == 0 || options.nodes > layout::MOST_NODES {
            return Err(ClusterError::Nodes(options.nodes));
        }
        if let Some(tool) = tools::missing(tools::CLUSTER, cache).first() {
            return Err(ClusterError::NotBuilt(tool.to_string()));
        }
        let _alone = lock(cache, &layout)?;
        if let Some(mut running) = Self::open(cache, &options.name)? {
            if running.state.nodes != options.nodes {
                return Err(ClusterError::OtherSize {
                    name: options.name.clone(),
                    running: running.state.nodes,
                    wanted: options.nodes,
                });
            }
            running.add(&options.add_ons, tell)?;
            return Ok(running);
        }
        let mut start = Start {
            cache,
            layout: &layout,
            programs: Programs::of(cache),
            node_programs: NodePrograms::of(cache),
            nodes: options.nodes,
            tell,
        };
        let state = start.run()?;
        let mut cluster = Self {
            programs: start.programs,
            cache: cache.clone(),
            layout,
            state,
        };
        cluster.add(&options.add_ons, tell)?;
        Ok(cluster)
    }

    /// The cluster of this name, if it was up once; it may not be well.
    pub fn find(cache: &Cache, name: &str) -> Result<Option<Self>, ClusterError> {
        let layout = Layout::new(cache, name)?;
        let state = State::read(layout.state_directory());
        Ok(state.map(|state| Self {
            layout,
            programs: Programs::of(cache),
            cache: cache.clone(),
            state,
        }))
    }

    /// The cluster of this name, if it is up and well.
    pub fn open(cache: &Cache, name: &str) -> Result<Option<Self>, ClusterError> {
        Ok(Self::find(cache, name)?.filter(Self::is_well))
    }

    /// Do all parts run, and does the API server answer?
    ///
    /// One that runs is given time to answer: on a busy machine it may be slow, and others may be using it.
    pub fn is_well(&self) -> bool {
        if self.state.kubernetes != tools::KUBERNETES.version {
            return false;
        }
        let deadline = Instant::now() + PATIENCE;
        while self.all_parts_run() && Instant::now() < deadline {
            if self.answers("/readyz") {
                return true;
            }
            std::thread::sleep(GLANCE);
        }
        false
    }

    /// Removes the cluster of this name with all it has made; says whether there was anything.
    pub fn down(cache: &Cache, name: &str) -> Result<bool, ClusterError> {
        let layout = Layout::new(cache, name)?;
        if !may_be_made() {
            return Err(ClusterError::NotRoot);
        }
        if !clear::is_needed(&layout) {
            return Ok(false);
        }
        let _alone = lock(cache, &layout)?;
        clear::clear(cache, &layout)?;
        Ok(true)
    }

    /// The cluster whose network this process was started in, see [`Cluster::command`]; not asked whether it is well.
    pub fn around_us(cache: &Cache) -> Result<Option<Self>, ClusterError> {
        let Some(directory) = std::env::var_os(STATE_DIRECTORY).filter(|path| !path.is_empty())
        else {
            return Ok(None);
        };
        let layout = Layout::of(directory.into())?;
        let state = State::read(layout.state_directory())
            .ok_or_else(|| ClusterError::NotUp(layout.name().to_owned()))?;
        Ok(Some(Self {
            layout,
            programs: Programs::of(cache),
            cache: cache.clone(),
            state,
        }))
    }

    /// Where programs for it are built.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Its names, directories and addresses.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Its nodes.
    pub fn nodes(&self) -> Vec<Node> {
        Node::first(self.state.nodes).collect()
    }

    /// What was written down about it.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The kubeconfig of cluster-admin, of use inside the control plane's network namespace alone.
    pub fn kubeconfig(&self) -> PathBuf {
        control::kubeconfig(&self.layout)
    }

    /// The control plane's network namespace.
    pub fn network(&self) -> Network {
        Network::at(self.layout.control_plane_network())
    }

    /// A node's network namespace.
    pub fn node_network(&self, node: Node) -> Network {
        Network::at(self.layout.node_network(node))
    }

    /// A program in the control plane's network namespace, with what it needs to find the cluster.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.network().command(program);
        command
            .env("KUBECONFIG", self.kubeconfig())
            .env(
                "KUBECACHEDIR",
                self.layout.state_directory().join("kubectl-cache"),
            )
            .env(STATE_DIRECTORY, self.layout.state_directory());
        command
    }

    /// kubectl as cluster-admin, ready for arguments.
    pub fn kubectl(&self) -> Command {
        self.command(&self.programs.kubectl)
    }

    /// What the API server says at this path, if it says so with success.
    pub fn get(&self, path: &str) -> Option<Vec<u8>> {
        let mut kubectl = self.kubectl();
        kubectl.args(["get", "--raw", path, "--request-timeout=5s"]);
        let output = kubectl.stdin(Stdio::null()).output().ok()?;
        output.status.success().then_some(output.stdout)
    }

    /// Brings an image from a tar onto every node.
    pub fn load(&self, image: &Path) -> Result<(), ClusterError> {
        for node in self.nodes() {
            containerd::import(&self.layout, node, image)?;
        }
        Ok(())
    }

    /// The names of all processes that run.
    pub fn parts(&self) -> Vec<String> {
        let mut parts: Vec<String> = marks::of(self.layout.state_directory())
            .into_iter()
            .map(|process| process.part)
            .collect();
        parts.sort();
        parts.dedup();
        parts
    }

    /// Memory that its processes and containers have in use, in bytes: shared pages count for each.
    pub fn resident_memory(&self) -> u64 {
        let marked = marks::of(self.layout.state_directory());
        let mut all = cgroup::processes(&self.layout.cgroup());
        all.extend(marked.iter().map(|process| process.pid));
        all.into_iter().map(resident_memory).sum()
    }

    fn answers(&self, path: &str) -> bool {
        let kubectl = || control::kubectl_inside(&self.layout, &self.programs);
        self.network()
            .inside(|| control_plane::answers(kubectl(), path))
            .unwrap_or(false)
    }

    fn all_parts_run(&self) -> bool {
        let running = self.parts();
        let mut wanted: Vec<String> = control_plane::PARTS.map(str::to_owned).to_vec();
        wanted.extend([control::SCHEDULER, proxy::PART].map(str::to_owned));
        for node in self.nodes() {
            wanted
                .extend([containerd::PART, kubelet::PART, proxy::PART].map(|part| node.part(part)));
        }
        wanted.iter().all(|part| running.contains(part))
    }
}

/// Is this process root's? Without that there are no namespaces, cgroups and mounts to be had.
pub fn may_be_made() -> bool {
    rustix::process::geteuid().is_root()
}

/// Names the state directory of the cluster whose network a process is in; [`Cluster::command`] sets it.
pub const STATE_DIRECTORY: &str = "WEIR_LAB_CLUSTER";

fn resident_memory(pid: i32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Held while a cluster is made or removed; the kernel releases it, however we end.
fn lock(cache: &Cache, layout: &Layout) -> Result<File, ClusterError> {
    let path = cache.clusters().join(format!("{}.lock", layout.name()));
    let locked = fs::create_dir_all(cache.clusters())
        .and_then(|()| File::create(&path))
        .and_then(|file| file.lock().map(|()| file));
    locked.map_err(|source| ClusterError::Directory { path, source })
}
