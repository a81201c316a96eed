//! Starts a cluster from nothing: the order of things, and what is said about it.

use std::{fs, os::unix::fs::DirBuilderExt, path::PathBuf, process::Child, time::Instant};

use super::{
    ClusterError, Step, cgroup, clear, containerd, control, kubelet,
    launch::wait_until_ready,
    layout::{self, Layout, Node},
    machine,
    network::{self, Network},
    packages, proxy, sandbox_image,
    state::State,
};
use crate::{
    cache::Cache,
    tools::{self, NodePrograms, Programs},
};

/// A start on its way.
pub(super) struct Start<'a> {
    pub(super) cache: &'a Cache,
    pub(super) layout: &'a Layout,
    pub(super) programs: Programs,
    pub(super) node_programs: NodePrograms,
    pub(super) nodes: u8,
    pub(super) tell: &'a mut dyn FnMut(Step),
}

impl Start<'_> {
    pub(super) fn run(&mut self) -> Result<State, ClusterError> {
        ensure_packages(packages::FOR_NODES, self.tell)?;
        let began = Instant::now();
        if clear::is_needed(self.layout) {
            self.step("clear away what is left of an older cluster", |start| {
                clear::clear(start.cache, start.layout)
            })?;
        }
        let images = self.step("images of pods' sandboxes and of the probe", Self::images)?;
        self.prepare()?;
        let control_plane = self.control_plane()?;
        let networks = self.step("nodes: networks, cgroups, containerd, images", |start| {
            start.containerds(&images)
        })?;
        let kubelets = self.step("nodes: kubelets start", |start| start.kubelets(&networks))?;
        self.step("nodes: ready", |start| start.wait_for_nodes(kubelets))?;
        self.step("kube-proxies: services can be reached", |start| {
            start.proxies(&control_plane, &networks)
        })?;
        let state = State {
            kubernetes: tools::KUBERNETES.version.to_owned(),
            nodes: self.nodes,
            add_ons: Vec::new(),
            started_in_milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        let written = state.write(self.layout.state_directory());
        written.map_err(|source| self.cannot_use(source))?;
        Ok(state)
    }

    fn step<T>(
        &mut self,
        what: &str,
        work: impl FnOnce(&mut Self) -> Result<T, ClusterError>,
    ) -> Result<T, ClusterError> {
        let began = Instant::now();
        (self.tell)(Step::Doing(what.to_owned()));
        let done = work(self)?;
        (self.tell)(Step::Done(what.to_owned(), began.elapsed()));
        Ok(done)
    }

    fn images(&mut self) -> Result<Vec<PathBuf>, ClusterError> {
        let pause = sandbox_image::PAUSE_PROGRAM;
        let probe = sandbox_image::PROBE_PROGRAM;
        Ok(vec![
            sandbox_image::of_program(self.cache, sandbox_image::PAUSE, pause)?,
            sandbox_image::of_program(self.cache, sandbox_image::PROBE, probe)?,
        ])
    }

    fn prepare(&mut self) -> Result<(), ClusterError> {
        machine::remember(self.cache).map_err(|source| self.cannot_use(source))?;
        // Root's alone: it will hold the keys of cluster-admin.
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(self.layout.state_directory());
        made.map_err(|source| self.cannot_use(source))?;
        control::write_certificates(self.layout, self.nodes)
    }

    fn control_plane(&mut self) -> Result<Network, ClusterError> {
        let network = network::create_for_control_plane(self.layout)?;
        let Self {
            layout,
            programs,
            node_programs,
            tell,
            ..
        } = self;
        let mut began = Instant::now();
        tell(Step::Doing("control plane".to_owned()));
        control::start(layout, &network, programs, node_programs, &mut |part| {
            tell(Step::Done(format!("{part}: ready"), began.elapsed()));
            began = Instant::now();
        })?;
        Ok(network)
    }

    fn containerds(&mut self, images: &[PathBuf]) -> Result<Vec<(Node, Network)>, ClusterError> {
        let mut started: Vec<(Node, Network, Child)> = Vec::new();
        for node in Node::first(self.nodes) {
            let network = network::create_for_node(self.layout, node, self.nodes)?;
            let cgroup = cgroup::create(&self.layout.node_cgroup(node));
            cgroup.map_err(|source| self.cannot_use(source))?;
            let child = containerd::start(self.layout, node, &network)?;
            started.push((node, network, child));
        }
        let mut networks = Vec::new();
        for (node, network, mut child) in started {
            let part = node.part(containerd::PART);
            wait_until_ready(self.layout, &part, &mut child, || {
                containerd::is_ready(self.layout, node)
            })?;
            for image in images {
                containerd::import(self.layout, node, image)?;
            }
            networks.push((node, network));
        }
        Ok(networks)
    }

    fn kubelets(
        &mut self,
        networks: &[(Node, Network)],
    ) -> Result<Vec<(Node, Child)>, ClusterError> {
        let start = |(node, network): &(Node, Network)| {
            let child = kubelet::start(self.layout, *node, network, &self.node_programs)?;
            Ok((*node, child))
        };
        networks.iter().map(start).collect()
    }

    fn wait_for_nodes(&mut self, kubelets: Vec<(Node, Child)>) -> Result<(), ClusterError> {
        let network = Network::at(self.layout.control_plane_network());
        for (node, mut child) in kubelets {
            let path = format!("/api/v1/nodes/{}", node.name());
            let ready = || {
                let mut kubectl = control::kubectl_inside(self.layout, &self.programs);
                kubectl.args(["get", "--raw", &path, "--request-timeout=5s"]);
                let asked = network.inside(|| kubectl.output());
                asked
                    .and_then(|output| output)
                    .is_ok_and(|output| kubelet::says_ready(&output.stdout))
            };
            wait_until_ready(self.layout, &node.part(kubelet::PART), &mut child, ready)?;
        }
        Ok(())
    }

    fn proxies(
        &mut self,
        control_plane: &Network,
        networks: &[(Node, Network)],
    ) -> Result<(), ClusterError> {
        let programs = &self.node_programs;
        let own = proxy::start_for_control_plane(self.layout, control_plane, programs)?;
        let mut started = vec![(
            proxy::PART.to_owned(),
            control_plane,
            layout::CONTROL_PLANE,
            own,
        )];
        for (node, network) in networks {
            let child = proxy::start_on_node(self.layout, *node, network, programs)?;
            started.push((node.part(proxy::PART), network, node.address(), child));
        }
        for (part, network, address, mut child) in started {
            let ready = || proxy::is_ready(network, address);
            wait_until_ready(self.layout, &part, &mut child, ready)?;
        }
        Ok(())
    }

    fn cannot_use(&self, source: std::io::Error) -> ClusterError {
        ClusterError::Directory {
            path: self.layout.state_directory().to_owned(),
            source,
        }
    }
}

/// Installs those of these packages that are missing, and says so.
pub(super) fn ensure_packages(
    wanted: &[packages::Package],
    tell: &mut dyn FnMut(Step),
) -> Result<(), ClusterError> {
    let missing = packages::missing(wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    let what = format!("install {} (apt-get)", names.join(" "));
    let began = Instant::now();
    tell(Step::Doing(what.clone()));
    packages::install(&missing)?;
    tell(Step::Done(what, began.elapsed()));
    Ok(())
}
