//! The control plane of a cluster: the parts of [`crate::control_plane`] in a network namespace, and the scheduler.

use std::{path::PathBuf, process::Command};

use super::{
    ClusterError, http,
    launch::{self, Launch},
    layout::{self, Layout, Node},
    network::Network,
};
use crate::{
    control_plane::{self, Reach, flag},
    pki::{self, Subject},
    ports::Ports,
    server,
    tools::{NodePrograms, Programs},
};

/// The user that kube-proxies act as.
pub const PROXY: &str = "kube-proxy";
/// The scheduler, as a part and as a user.
pub const SCHEDULER: &str = "kube-scheduler";
const SCHEDULER_PORT: u16 = 10259;

/// In a namespace of their own the usual ports are always free.
const PORTS: Ports = Ports {
    etcd: 2379,
    etcd_peer: 2380,
    api_server: layout::API_SERVER_PORT,
};

/// Makes all certificates and kubeconfigs that a cluster of so many nodes will ever need.
pub fn write_certificates(layout: &Layout, nodes: u8) -> Result<(), ClusterError> {
    let mut subjects = pki::control_plane_subjects();
    for subject in &mut subjects {
        subject.addresses = vec![layout::CONTROL_PLANE, layout::KUBERNETES_SERVICE];
    }
    subjects.extend([
        Subject::new(SCHEDULER, "system:kube-scheduler"),
        Subject::new(PROXY, "system:kube-proxy"),
        // With this one the API server speaks to kubelets.
        Subject::new("kubelet-client", "apiserver-kubelet-client").in_group("system:masters"),
        // For add-ons and webhooks that serve HTTPS from the control plane's namespace.
        Subject::new("serving", "serving").at(layout::CONTROL_PLANE),
    ]);
    let names: Vec<String> = Node::first(nodes).map(Node::name).collect();
    for node in Node::first(nodes) {
        let user = format!("system:node:{}", node.name());
        let subject = Subject::new(node.name(), user).in_group("system:nodes");
        subjects.push(subject.at(node.address()));
    }
    let mut users = vec!["admin", "kube-controller-manager", SCHEDULER, PROXY];
    users.extend(names.iter().map(String::as_str));
    let url = format!("https://{}:{}", layout::CONTROL_PLANE, PORTS.api_server);
    pki::write_all(layout.state_directory(), &subjects, &users, &url)?;
    Ok(())
}

/// The kubeconfig of cluster-admin.
pub fn kubeconfig(layout: &Layout) -> PathBuf {
    pki::admin_kubeconfig(layout.state_directory())
}

/// kubectl as cluster-admin, for a thread that is inside the control plane's namespace.
pub fn kubectl_inside(layout: &Layout, programs: &Programs) -> Command {
    server::kubectl(&programs.kubectl, &kubeconfig(layout))
}

/// Starts etcd, the API server, the controller manager and the scheduler; `ready` hears of each.
pub fn start(
    layout: &Layout,
    network: &Network,
    programs: &Programs,
    node_programs: &NodePrograms,
    ready: &mut dyn FnMut(&str),
) -> Result<(), ClusterError> {
    let reach = Reach::Nodes(layout::CONTROL_PLANE);
    let parts = control_plane::parts(programs, layout.state_directory(), PORTS, reach, &[]);
    for part in parts {
        let launch = Launch::new(part.name, part.program.clone(), network).args(part.arguments);
        let mut child = launch.start(layout)?;
        launch::wait_until_ready(layout, part.name, &mut child, || {
            let is_so = || part.ready.is_so(|| kubectl_inside(layout, programs));
            network.inside(is_so).unwrap_or(false)
        })?;
        ready(part.name);
    }
    start_scheduler(layout, network, node_programs)?;
    ready(SCHEDULER);
    Ok(())
}

fn start_scheduler(
    layout: &Layout,
    network: &Network,
    programs: &NodePrograms,
) -> Result<(), ClusterError> {
    let kubeconfig = pki::kubeconfig_of(layout.state_directory(), SCHEDULER);
    let launch = Launch::new(SCHEDULER, programs.kube_scheduler.clone(), network).args([
        flag("kubeconfig", &kubeconfig.to_string_lossy()),
        flag("leader-elect", "false"),
        flag("bind-address", "127.0.0.1"),
    ]);
    let mut child = launch.start(layout)?;
    // It serves TLS only, and listens once its caches are being filled: that is as ready as it needs to be,
    // because a pod that comes earlier waits in its queue.
    launch::wait_until_ready(layout, SCHEDULER, &mut child, || {
        let listens = || http::listens(std::net::Ipv4Addr::LOCALHOST, SCHEDULER_PORT);
        network.inside(listens).unwrap_or(false)
    })
}
