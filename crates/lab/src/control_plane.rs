//! The command lines of etcd, kube-apiserver and kube-controller-manager, and how each shows that it is ready.
//!
//! Everything listens on 127.0.0.1 alone, or where a [`mod@crate::cluster`] has nodes of its own. Admission, RBAC, service accounts and feature gates are as in any
//! cluster; only durability is given up, since the data goes with the server. [`crate::server`] starts these
//! in order; [`crate::pki`] has made the files that they name.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use crate::{pki, ports::Ports, tools::Programs};

/// One process of the control plane.
#[derive(Debug)]
pub struct Part {
    /// Its name in marks, logs and messages.
    pub name: &'static str,
    /// What to run.
    pub program: PathBuf,
    /// With what arguments.
    pub arguments: Vec<String>,
    /// How to see that it is ready.
    pub ready: Ready,
}

/// How a part shows that it is ready.
#[derive(Debug)]
pub enum Ready {
    /// `GET /health` on this port, without TLS.
    Health(u16),
    /// Something listens on the port, and then the API server answers this path with success.
    Api(u16, &'static str),
}

/// The names of all parts, in the order of their start.
pub const PARTS: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];

/// Who must be able to reach the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Programs on this machine: it listens on 127.0.0.1.
    Loopback,
    /// The nodes of a network namespace, in which this is the API server's address.
    Nodes(Ipv4Addr),
}

/// Controllers of kube-controller-manager that do not run, by the names that it gives them.
pub type Without = &'static [&'static str];

/// The parts of a control plane in this state directory, in the order of their start.
pub fn parts(
    programs: &Programs,
    state_directory: &Path,
    ports: Ports,
    reach: Reach,
    without: Without,
) -> [Part; 3] {
    [
        etcd(programs, state_directory, ports),
        api_server(programs, state_directory, ports, reach),
        controller_manager(programs, state_directory, ports, without),
    ]
}

fn etcd(programs: &Programs, state_directory: &Path, ports: Ports) -> Part {
    let clients = format!("http://127.0.0.1:{}", ports.etcd);
    let peers = format!("http://127.0.0.1:{}", ports.etcd_peer);
    Part {
        name: PARTS[0],
        program: programs.etcd.clone(),
        arguments: vec![
            flag("data-dir", &state_directory.join("etcd").to_string_lossy()),
            flag("listen-client-urls", &clients),
            flag("advertise-client-urls", &clients),
            flag("listen-peer-urls", &peers),
            flag("initial-advertise-peer-urls", &peers),
            flag("initial-cluster", &format!("default={peers}")),
            "--unsafe-no-fsync".to_owned(),
            flag("log-level", "warn"),
        ],
        ready: Ready::Health(ports.etcd),
    }
}

fn api_server(programs: &Programs, state_directory: &Path, ports: Ports, reach: Reach) -> Part {
    let file = |name: &str| {
        pki::file(state_directory, name)
            .to_string_lossy()
            .into_owned()
    };
    let mut arguments = match reach {
        Reach::Loopback => vec![
            flag("bind-address", "127.0.0.1"),
            flag("advertise-address", "127.0.0.1"),
            // The endpoint of the service `kubernetes` may not be a loopback address.
            flag("endpoint-reconciler-type", "none"),
        ],
        Reach::Nodes(address) => vec![
            flag("bind-address", "0.0.0.0"),
            flag("advertise-address", &address.to_string()),
            // With these it speaks to kubelets, for logs and exec.
            flag("kubelet-client-certificate", &file("kubelet-client.crt")),
            flag("kubelet-client-key", &file("kubelet-client.key")),
            flag("kubelet-certificate-authority", &file("ca.crt")),
            flag("kubelet-preferred-address-types", "InternalIP"),
        ],
    };
    arguments.extend([
        flag("etcd-servers", &format!("http://127.0.0.1:{}", ports.etcd)),
        flag("secure-port", &ports.api_server.to_string()),
        flag("service-cluster-ip-range", cluster_ips(reach)),
        flag("authorization-mode", "Node,RBAC"),
        flag("enable-admission-plugins", "NodeRestriction"),
        flag("allow-privileged", "true"),
        flag("tls-cert-file", &file("kube-apiserver.crt")),
        flag("tls-private-key-file", &file("kube-apiserver.key")),
        flag("client-ca-file", &file("ca.crt")),
        flag("service-account-issuer", "https://kubernetes.default.svc"),
        flag("service-account-key-file", &file("service-accounts.pub")),
        flag(
            "service-account-signing-key-file",
            &file("service-accounts.key"),
        ),
        flag("requestheader-client-ca-file", &file("ca.crt")),
        flag("requestheader-allowed-names", "front-proxy"),
        flag("requestheader-username-headers", "X-Remote-User"),
        flag("requestheader-group-headers", "X-Remote-Group"),
        flag("requestheader-extra-headers-prefix", "X-Remote-Extra-"),
        flag("proxy-client-cert-file", &file("front-proxy.crt")),
        flag("proxy-client-key-file", &file("front-proxy.key")),
        flag("enable-aggregator-routing", "true"),
    ]);
    Part {
        name: PARTS[1],
        program: programs.kube_apiserver.clone(),
        arguments,
        ready: Ready::Api(ports.api_server, "/readyz"),
    }
}

/// Of one family, unless something asks for both: then Services of both families can be made where no node has to lead to them.
fn cluster_ips(reach: Reach) -> &'static str {
    match reach {
        Reach::Loopback => "10.96.0.0/16,fd00:10:96::/112",
        Reach::Nodes(_) => "10.96.0.0/16",
    }
}

fn controller_manager(
    programs: &Programs,
    state_directory: &Path,
    ports: Ports,
    without: Without,
) -> Part {
    let file = |name: &str| {
        pki::file(state_directory, name)
            .to_string_lossy()
            .into_owned()
    };
    let kubeconfig = pki::controller_manager_kubeconfig(state_directory);
    Part {
        name: PARTS[2],
        program: programs.kube_controller_manager.clone(),
        arguments: vec![
            flag("kubeconfig", &kubeconfig.to_string_lossy()),
            flag("leader-elect", "false"),
            flag("controllers", &controllers(without)),
            // It serves nothing that a test would ask for: one port less that may be taken.
            flag("secure-port", "0"),
            flag(
                "service-account-private-key-file",
                &file("service-accounts.key"),
            ),
            flag("root-ca-file", &file("ca.crt")),
            flag("cluster-signing-cert-file", &file("ca.crt")),
            flag("cluster-signing-key-file", &file("ca.key")),
            flag("use-service-account-credentials", "true"),
            // With the default of 20 per second the first service account comes 5 s later.
            flag("kube-api-qps", "200"),
            flag("kube-api-burst", "400"),
        ],
        // The account shows that the controllers run; pods cannot be made without it.
        ready: Ready::Api(
            ports.api_server,
            "/api/v1/namespaces/default/serviceaccounts/default",
        ),
    }
}

fn controllers(without: Without) -> String {
    let without = without.iter().map(|name| format!(",-{name}"));
    format!("*{}", without.collect::<String>())
}

pub(crate) fn flag(name: &str, value: &str) -> String {
    format!("--{name}={value}")
}

impl Ready {
    /// Is it ready now?
    pub fn is_so(&self, kubectl: impl FnOnce() -> Command) -> bool {
        match *self {
            Self::Health(port) => healthy(port).unwrap_or(false),
            // To connect costs nothing; to start kubectl costs time that the server needs just now.
            Self::Api(port, path) => connect(port).is_ok() && answers(kubectl(), path),
        }
    }
}

/// Does the API server that this kubectl knows answer this path with success?
pub fn answers(mut kubectl: Command, path: &str) -> bool {
    kubectl.args(["get", "--raw", path, "--request-timeout=5s"]);
    let asked = kubectl
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

fn connect(port: u16) -> std::io::Result<TcpStream> {
    let address = (Ipv4Addr::LOCALHOST, port).into();
    TcpStream::connect_timeout(&address, Duration::from_secs(1))
}

fn healthy(port: u16) -> std::io::Result<bool> {
    let mut stream = connect(port)?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.write_all(b"GET /health HTTP/1.0\r\nHost: etcd\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.contains(r#""health":"true""#))
}
