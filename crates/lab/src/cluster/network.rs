//! The cluster's networks: one namespace for the control plane and its bridge, one for each node.
//!
//! ```text
//!   control-plane: 10.99.0.254 on the bridge weir0
//!        │ n1         │ n2         │ n3            (ends of cables, in the bridge)
//!   ┌────┴─────┐ ┌────┴─────┐ ┌────┴─────┐
//!   │ eth0     │ │ eth0     │ │ eth0     │         10.99.0.1, .2, .3
//!   │ pods:    │ │ pods:    │ │ pods:    │
//!   │ 10.88.1.*│ │ 10.88.2.*│ │ 10.88.3.*│
//!   └──────────┘ └──────────┘ └──────────┘
//! ```
//!
//! None of them has a default route or a cable to the machine's own namespace: nothing can leave, and two clusters may
//! have the same addresses. A namespace is a file below the run directory, not in `/run/netns`, which is others'.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::{
    ClusterError,
    layout::{self, Layout, Node},
};

const BRIDGE: &str = "weir0";
/// What a node calls its end of the cable.
pub const NODE_INTERFACE: &str = "eth0";

/// A network namespace that a file stands for.
#[derive(Clone, Debug)]
pub struct Network {
    file: PathBuf,
}

impl Network {
    /// The namespace of this file, which need not exist.
    pub fn at(file: PathBuf) -> Self {
        Self { file }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Does work inside, on a thread of its own; programs that it starts are inside as well.
    ///
    /// What is opened there stays there: a socket may be used anywhere afterwards.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        let namespace = File::open(&self.file)?;
        thread::scope(|scope| {
            let worker = scope.spawn(|| {
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
                Ok(work())
            });
            match worker.join() {
                Ok(done) => done,
                Err(panicked) => std::panic::resume_unwind(panicked),
            }
        })
    }

    /// A command that runs a program inside, for those who start it themselves.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        let mut net = std::ffi::OsString::from("--net=");
        net.push(&self.file);
        command.arg(net).arg(program);
        command
    }

    /// Is this thread inside?
    pub fn is_here(&self) -> bool {
        let id = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
        let here = id(Path::new("/proc/thread-self/ns/net"));
        here.is_some() && here == id(&self.file)
    }

    fn create(&self) -> Result<(), ClusterError> {
        let directory = |source| ClusterError::Directory {
            path: self.file.clone(),
            source,
        };
        if let Some(parent) = self.file.parent() {
            fs::create_dir_all(parent).map_err(directory)?;
        }
        File::create(&self.file).map_err(directory)?;
        let mut net = std::ffi::OsString::from("--net=");
        net.push(&self.file);
        run(Command::new("unshare").arg(net).arg("true"))?;
        self.ip(&["link", "set", "lo", "up"])
    }

    /// Runs `ip` inside.
    pub fn ip(&self, arguments: &[&str]) -> Result<(), ClusterError> {
        self.run("ip", arguments)
    }

    /// Runs a short program inside.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<(), ClusterError> {
        let mut command = Command::new(program);
        command.args(arguments);
        let ran = self.inside(|| run(&mut command));
        ran.map_err(|source| ClusterError::Directory {
            path: self.file.clone(),
            source,
        })?
    }
}

/// Runs a short program; its error is what it said.
pub(crate) fn run(command: &mut Command) -> Result<(), ClusterError> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|source| ClusterError::Run {
        program: command.get_program().into(),
        source,
    })?;
    if output.status.success() {
        return Ok(());
    }
    Err(ClusterError::Command {
        command: format!("{command:?}"),
        said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

/// The control plane's namespace with its bridge.
pub fn create_for_control_plane(layout: &Layout) -> Result<Network, ClusterError> {
    let network = Network::at(layout.control_plane_network());
    network.create()?;
    let address = format!("{}/24", layout::CONTROL_PLANE);
    network.ip(&["link", "add", BRIDGE, "type", "bridge"])?;
    network.ip(&["addr", "add", &address, "dev", BRIDGE])?;
    network.ip(&["link", "set", BRIDGE, "up"])?;
    // Without a route connect() fails before kube-proxy's rules are asked where the service is.
    network.ip(&["route", "add", layout::SERVICES, "dev", BRIDGE])?;
    Ok(network)
}

/// A node's namespace, its cable to the bridge, and routes to the pods of all `count` nodes.
pub fn create_for_node(layout: &Layout, node: Node, count: u8) -> Result<Network, ClusterError> {
    let control_plane = Network::at(layout.control_plane_network());
    let network = Network::at(layout.node_network(node));
    network.create()?;
    let cable = node.name();
    let far_end = control_plane.file.to_string_lossy().into_owned();
    network.ip(&[
        "link",
        "add",
        NODE_INTERFACE,
        "type",
        "veth",
        "peer",
        "name",
        &cable,
        "netns",
        &far_end,
    ])?;
    control_plane.ip(&["link", "set", &cable, "master", BRIDGE, "up"])?;
    let address = format!("{}/24", node.address());
    network.ip(&["addr", "add", &address, "dev", NODE_INTERFACE])?;
    network.ip(&["link", "set", NODE_INTERFACE, "up"])?;
    let forward = network.inside(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"));
    forward
        .and_then(|written| written)
        .map_err(|source| ClusterError::Directory {
            path: "/proc/sys/net/ipv4/ip_forward".into(),
            source,
        })?;
    for other in Node::first(count).filter(|other| *other != node) {
        let via = other.address().to_string();
        network.ip(&["route", "add", &other.pods(), "via", &via])?;
    }
    network.ip(&["route", "add", layout::SERVICES, "dev", NODE_INTERFACE])?;
    let via = node.address().to_string();
    control_plane.ip(&["route", "add", &node.pods(), "via", &via])?;
    Ok(network)
}
