//! The container runtime of a node: containerd with runc, images, and CNI's bridge for the pods' network.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
};

use super::{
    ClusterError, cri,
    launch::Launch,
    layout::{Layout, Node},
    network::{self, Network},
    sandbox_image,
};

/// Its name among the parts of a node.
pub const PART: &str = "containerd";
/// Where Debian and most others put CNI's programs.
pub const CNI_PROGRAMS: [&str; 3] = ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"];

/// Starts a node's containerd.
pub fn start(layout: &Layout, node: Node, network: &Network) -> Result<Child, ClusterError> {
    let directory = layout.node_directory(node);
    let write = |path: PathBuf, text: String| {
        let parent = path.parent().map_or(Ok(()), fs::create_dir_all);
        parent
            .and_then(|()| fs::write(&path, text))
            .map_err(|source| ClusterError::Directory { path, source })
    };
    write(
        directory.join("net.d/10-pods.conflist"),
        pod_network(layout, node),
    )?;
    write(
        directory.join("containerd.toml"),
        configuration(layout, node),
    )?;
    Launch::new(node.part(PART), "containerd".into(), network)
        .args([
            "--config".into(),
            directory.join("containerd.toml").to_string_lossy(),
            "--log-level".into(),
            "warn".into(),
        ])
        .in_cgroup(layout.node_cgroup(node))
        .start(layout)
}

/// Does it answer kubelets?
pub fn is_ready(layout: &Layout, node: Node) -> bool {
    cri::answers(&layout.containerd_socket(node)).unwrap_or(false)
}

/// Brings an image from a tar onto a node.
pub fn import(layout: &Layout, node: Node, image: &Path) -> Result<(), ClusterError> {
    network::run(ctr(layout, node).args(["images", "import"]).arg(image))
}

/// `ctr`, which speaks to a node's containerd, ready for arguments.
pub fn ctr(layout: &Layout, node: Node) -> Command {
    let mut command = Command::new("ctr");
    command.arg("--address").arg(layout.containerd_socket(node));
    command.args(["--namespace", "k8s.io"]);
    command
}

/// Where CNI's programs are on this machine.
pub fn cni_programs() -> Option<&'static Path> {
    let mut places = CNI_PROGRAMS.iter().map(Path::new);
    places.find(|place| place.join("bridge").is_file())
}

fn pod_network(layout: &Layout, node: Node) -> String {
    serde_json::json!({
        "cniVersion": "0.4.0",
        "name": layout.pod_network(node),
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": true,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": layout.node_directory(node).join("ipam"),
                    "ranges": [[{"subnet": node.pods()}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
    .to_string()
}

/// Differs from the defaults in where things are, in what this machine lacks (snapshotters; the right to lower an OOM
/// score; systemd), and in that pods' namespaces stay out of /run/netns, which is others'.
fn configuration(layout: &Layout, node: Node) -> String {
    let directory = layout.node_directory(node);
    let run = layout.node_run_directory(node);
    // Rust quotes these paths as TOML does.
    let path = |path: PathBuf| format!("{:?}", path.to_string_lossy());
    let cni = cni_programs().unwrap_or(Path::new(CNI_PROGRAMS[0]));
    format!(
        r#"version = 2
root = {root}
state = {state}
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = {socket}
[plugins."io.containerd.internal.v1.opt"]
  path = {opt}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{sandbox}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = {cni}
    conf_dir = {net}
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = {runc}
      SystemdCgroup = false
"#,
        root = path(directory.join("containerd")),
        state = path(run.clone()),
        socket = path(layout.containerd_socket(node)),
        opt = path(directory.join("opt")),
        sandbox = sandbox_image::PAUSE,
        cni = path(cni.to_owned()),
        net = path(directory.join("net.d")),
        runc = path(run.join("runc")),
    )
}
