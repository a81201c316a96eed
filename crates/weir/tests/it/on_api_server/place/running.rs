//! The operator as it is installed: a process that has the printed rights and no others, with the policies in force.

use std::{
    fs,
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, UdpSocket},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use serde_json::{Value, json};
use weir_lab::{ApiServer, eventually};

use super::{
    super::{
        PATIENCE, kubectl,
        manifests::{comes_to_be_allowed, may},
        tried,
    },
    install, watch,
};
use crate::weir;

/// The operator, which ends with its test.
struct Running {
    process: Child,
    directory: tempfile::TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Running {
    /// Starts it in the name of its ServiceAccount. `changed` may put something in front of the command.
    fn start(
        k8s: &ApiServer,
        arguments: &[&str],
        changed: impl FnOnce(Command) -> Command,
    ) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let kubeconfig = directory.path().join("kubeconfig");
        let line = ["config", "view", "--raw", "--flatten", "-o", "json"];
        let config = kubectl(k8s, &line, "");
        let mut config: Value = serde_json::from_str(&config).expect("JSON");
        for user in config["users"].as_array_mut().expect("users") {
            user["user"]["as"] = json!("system:serviceaccount:weir:weir-operator");
        }
        fs::write(&kubeconfig, config.to_string()).expect("a file");
        let log = fs::File::create(log_in(directory.path())).expect("a file");
        let mut command = weir(&["operator", "--controllers=place"]);
        command
            .args(["--internal-port=0", "--health-probe-bind-address=0"])
            .args(arguments)
            .arg("--kubeconfig")
            .arg(&kubeconfig);
        let mut command = changed(command);
        let process = command.stdout(Stdio::null()).stderr(log).spawn();
        Self {
            process: process.expect("weir runs"),
            directory,
        }
    }

    /// What it has said so far.
    fn log(&self) -> String {
        fs::read_to_string(log_in(self.directory.path())).unwrap_or_default()
    }

    /// Waits until the node is fit for the watch `web`, which is ready and has its Deployment.
    async fn places(&self, k8s: &ApiServer, node: &str) {
        let what = "the watch is ready and its Deployment is there";
        eventually(PATIENCE, what, async || {
            let get = |what: &[&str]| {
                let all = [&["get", "-o", "json"], what].concat();
                let text = tried(k8s, &all)?;
                serde_json::from_str::<Value>(&text).map_err(|error| error.to_string())
            };
            let node = get(&["node", node])?;
            let labels = &node["metadata"]["labels"];
            let is_labelled = labels["web.traffic.example.com/unfit"] == "false"
                && labels["gone.traffic.example.com/unfit"].is_null();
            let watch = get(&["trafficwatch", "web", "-n", "shop"])?;
            let is_ready = watch["status"]["ready"] == true;
            get(&["deployment", "web", "-n", "shop"])?;
            let log = self.log();
            let is_so = is_labelled && is_ready;
            is_so.then_some(()).ok_or(format!("{labels} {watch} {log}"))
        })
        .await;
    }

    /// Nothing was forbidden so far.
    fn had_all_rights(&self) {
        let log = self.log();
        assert!(
            !log.contains("forbidden") && !log.contains("refused"),
            "{log}"
        );
    }
}

fn log_in(directory: &Path) -> std::path::PathBuf {
    directory.join("log")
}

/// An exporter of an idle node, for as long as the tests run.
fn exporter(address: impl Into<IpAddr>) -> SocketAddr {
    let listener = TcpListener::bind((address.into(), 0)).expect("an address");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let body = "node_network_transmit_bytes_total{device=\"eth0\"} 7\nnode_network_speed_bytes{device=\"eth0\"} 125000000\n";
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let _ = stream.read(&mut [0; 4096]);
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
        }
    });
    address
}

/// This machine's own address: an EndpointSlice may not lead to loopback. Nothing is sent.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    let connected = socket.connect("198.51.100.1:9");
    connected.expect("a network interface beside loopback");
    socket.local_addr().expect("an address").ip()
}

/// A ready node whose exporter would be at this address.
fn node(name: &str, address: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": { "gone.traffic.example.com/unfit": "true" } },
        "status": {
            "addresses": [{ "type": "InternalIP", "address": address }],
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    })
}

#[tokio::test]
async fn the_operator_does_all_with_the_rights_that_it_has() {
    let k8s = weir_lab::fresh_api_server().await;
    install(&k8s, &[]).await;
    let exporter = exporter([127, 77, 77, 77]);
    kubectl(&k8s, &["create", "namespace", "shop"], "");
    let node = node("a", &exporter.ip().to_string());
    kubectl(&k8s, &["create", "-f", "-"], &node.to_string());
    kubectl(&k8s, &["create", "-f", "-"], &watch("web", "taint"));
    let port = format!("--node-exporter-port={}", exporter.port());
    let arguments = ["--allow-taints", "--annotate-nodes", &port];
    let operator = Running::start(&k8s, &arguments, |command| command);
    operator.places(&k8s, "a").await;
    let line = [
        "delete",
        "trafficwatch",
        "web",
        "-n",
        "shop",
        "--timeout=60s",
    ];
    kubectl(&k8s, &line, "");
    let node = kubectl(&k8s, &["get", "node", "a", "-o", "json"], "");
    assert!(!node.contains("traffic.example.com/unfit"), "{node}");
    operator.had_all_rights();
}

/// Endpoints are readable where somebody else's exporters are, and nowhere else.
#[tokio::test]
async fn with_exporters_of_somebody_else_their_namespace_is_enough() {
    let service = "--node-exporter-service=monitoring/exporters:metrics";
    let k8s = weir_lab::fresh_api_server().await;
    for namespace in ["monitoring", "shop"] {
        kubectl(&k8s, &["create", "namespace", namespace], "");
    }
    install(&k8s, &[service]).await;
    let list = |namespace| ["list", "endpointslices.discovery.k8s.io", "-n", namespace];
    comes_to_be_allowed(&k8s, "operator", &list("monitoring")).await;
    for elsewhere in ["shop", "weir", "default"] {
        assert!(!may(&k8s, "operator", &list(elsewhere)), "{elsewhere}");
    }

    let exporter = exporter(own_address());
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": "exporters-x1", "namespace": "monitoring",
            "labels": { "kubernetes.io/service-name": "exporters" },
        },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [exporter.ip()], "nodeName": "a" }],
        "ports": [{ "name": "metrics", "port": exporter.port() }],
    });
    kubectl(&k8s, &["create", "-f", "-"], &slice.to_string());
    // Nobody answers on the node itself.
    let node = node("a", "127.77.77.79");
    kubectl(&k8s, &["create", "-f", "-"], &node.to_string());
    kubectl(&k8s, &["create", "-f", "-"], &watch("web", "label"));
    let operator = Running::start(&k8s, &[service], |command| command);
    operator.places(&k8s, "a").await;
    operator.had_all_rights();
}

/// More exporters that say nothing than files may be open: they are asked one after the other, and the others too.
#[tokio::test]
async fn silent_exporters_do_not_use_up_all_open_files() {
    const SILENT: usize = 300;
    let k8s = weir_lab::fresh_api_server().await;
    install(&k8s, &[]).await;
    kubectl(&k8s, &["create", "namespace", "shop"], "");
    let exporter = exporter([127, 77, 77, 77]);
    // Connections come to be, and nobody takes them.
    let silent = TcpListener::bind(("127.77.77.78", exporter.port())).expect("a port");
    let mut nodes: Vec<Value> = (0..SILENT)
        .map(|number| node(&format!("silent-{number:03}"), "127.77.77.78"))
        .collect();
    // Asked last, as nodes are asked in the order of their names at first.
    nodes.push(node("well", &exporter.ip().to_string()));
    let nodes = json!({ "apiVersion": "v1", "kind": "List", "items": nodes });
    kubectl(&k8s, &["create", "-f", "-"], &nodes.to_string());
    kubectl(&k8s, &["create", "-f", "-"], &watch("web", "label"));
    let port = format!("--node-exporter-port={}", exporter.port());
    let operator = Running::start(&k8s, &[&port], |command| {
        let mut limited = Command::new("prlimit");
        limited.args(["--nofile=64:256", "--"]);
        limited.arg(command.get_program()).args(command.get_args());
        limited
    });
    operator.places(&k8s, "well").await;
    let log = operator.log();
    assert!(log.contains("no answer within"), "{log}");
    assert!(!log.contains("open files"), "{log}");
    drop(silent);
}
