//! Weir's own programs as `weir manifests` installs them, run beside the API server: no node is there to do it. Each has the account
//! and the rights that were printed for it, and nothing more.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    path::PathBuf,
    process::{Child, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use weir_lab::{ApiServer, eventually, ports};

use super::{PATIENCE, kubectl};
use crate::weir;

/// One that runs, until it is dropped.
pub(super) struct Program {
    process: Child,
    log: Arc<Mutex<Vec<Value>>>,
}

impl Program {
    pub(super) fn start(arguments: &[String]) -> Self {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut process = weir(&[&["--log-format", "json"], &arguments[..]].concat())
            .env("POD_NAMESPACE", "weir")
            .stderr(Stdio::piped())
            .spawn()
            .expect("weir runs");
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = BufReader::new(process.stderr.take().expect("a pipe")).lines();
        let written = Arc::clone(&log);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                written.lock().expect("the log").push(line);
            }
        });
        Self { process, log }
    }

    /// The first line of its log with these words in it.
    pub(super) async fn says(&self, words: &str) -> Value {
        eventually(PATIENCE, &format!("it says: {words}"), async || {
            let log = self.log.lock().expect("the log");
            let found = log.iter().find(|line| line.to_string().contains(words));
            found.cloned().ok_or_else(|| last(&log))
        })
        .await
    }

    /// All that it was not allowed to do.
    pub(super) fn was_forbidden(&self) -> Vec<Value> {
        let log = self.log.lock().expect("the log");
        let is_so = |line: &&Value| {
            let line = line.to_string().to_lowercase();
            line.contains("forbidden") || line.contains("may not be")
        };
        log.iter().filter(is_so).cloned().collect()
    }

    /// What it said last, for who looks at a failure.
    pub(super) fn log(&self) -> String {
        last(&self.log.lock().expect("the log"))
    }
}

fn last(log: &[Value]) -> String {
    let lines = log.iter().rev().take(20).rev();
    lines.map(Value::to_string).collect::<Vec<_>>().join("\n")
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended already: as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A token of this part, and a kubeconfig with it.
pub(super) fn account(k8s: &ApiServer, part: &str, directory: &std::path::Path) -> [PathBuf; 2] {
    let line = ["-n", "weir", "create", "token", part, "--duration=1h"];
    let token = kubectl(k8s, &line, "").trim().to_owned();
    let text = fs::read_to_string(k8s.kubeconfig()).expect("a kubeconfig");
    let mut config: Value = serde_saphyr::from_str(&text).expect("YAML");
    config["users"][0]["user"] = json!({"token": token});
    let [tokens, configs] = ["token", "yaml"].map(|it| directory.join(format!("{part}.{it}")));
    fs::write(&tokens, token).expect("written");
    fs::write(&configs, config.to_string()).expect("written");
    [tokens, configs]
}

/// The ports of a resolver that runs beside others on this machine.
pub(super) struct Ports {
    pub(super) internal: u16,
    pub(super) proxy: u16,
    /// The first of some in a row.
    pub(super) first: u16,
}

impl Ports {
    pub(super) fn free() -> Self {
        // One after another, from a part of the range that is this process' own.
        let [internal, proxy, first] = [ports::free(), ports::free(), ports::free()];
        Self {
            internal,
            proxy,
            first,
        }
    }

    pub(super) fn range(&self) -> String {
        format!("{}-{}", self.first, self.first + 9)
    }
}

/// An address of this machine that an EndpointSlice may lead to. Nothing is sent for it.
pub(super) fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    let connected = socket.connect("198.51.100.1:9");
    connected.expect("a network interface beside loopback");
    socket.local_addr().expect("an address").ip()
}

/// A pod's server: it answers each connection once. Its port.
pub(super) fn server() -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut said = [0; 4096];
            // A client that has gone is nobody's trouble here.
            let _ = stream.read(&mut said);
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nawake",
            );
        }
    });
    port
}

/// Asks for `/` and waits for all of the answer, for as long as a test waits at all.
pub(super) fn ask(address: SocketAddr) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut stream = TcpStream::connect(address).expect("a connection");
        let patience = Some(PATIENCE + Duration::from_mins(1));
        stream.set_read_timeout(patience).expect("a time limit");
        let request = b"GET / HTTP/1.1\r\nhost: any\r\nconnection: close\r\n\r\n";
        stream.write_all(request).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    })
}

/// As people do, and old controllers: not by a server-side apply.
pub(super) fn apply(k8s: &ApiServer, namespace: &str, object: &Value) {
    kubectl(
        k8s,
        &["-n", namespace, "apply", "-f", "-"],
        &object.to_string(),
    );
}

/// A slice as the EndpointSlice controller would write it for a ready pod.
pub(super) fn pods(service: &str, port: u16) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": format!("{service}-pods"), "labels": {
            "kubernetes.io/service-name": service,
            "endpointslice.kubernetes.io/managed-by": "test",
        }},
        "addressType": "IPv4",
        "endpoints": [{
            "addresses": [own_address().to_string()],
            "conditions": {"ready": true, "serving": true, "terminating": false},
        }],
        "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
    })
}

/// What this Deployment is told, in the first of its containers.
pub(super) fn arguments_of(k8s: &ApiServer, deployment: &str) -> Vec<String> {
    let line = ["-n", "weir", "get", "deployment", deployment, "-o", "json"];
    let deployment: Value = serde_json::from_str(&kubectl(k8s, &line, "")).expect("JSON");
    let told = deployment.pointer("/spec/template/spec/containers/0/args");
    let told = told.and_then(Value::as_array).expect("arguments").iter();
    told.filter_map(|it| it.as_str().map(str::to_owned))
        .collect()
}

/// Where Weir runs in this test.
pub(super) struct Site {
    pub(super) ports: Ports,
    pub(super) directory: tempfile::TempDir,
}

impl Site {
    /// The resolvers' Service leads to this machine, as it would lead to their pods.
    pub(super) fn new(k8s: &ApiServer) -> Self {
        let slice = pods("weir-resolver", 8012);
        apply(k8s, "weir", &slice);
        Self {
            ports: Ports::free(),
            directory: tempfile::tempdir().expect("a directory"),
        }
    }

    /// With what its Deployment is told, and what is different where there is no pod.
    pub(super) fn operator(&self, k8s: &ApiServer) -> Program {
        let mut arguments = arguments_of(k8s, "weir-operator");
        let [_, kubeconfig] = account(k8s, "weir-operator", self.directory.path());
        let Ports {
            internal, proxy, ..
        } = self.ports;
        arguments.extend([
            format!("--kubeconfig={}", kubeconfig.display()),
            "--operator-namespace=weir".to_owned(),
            "--resolver-namespace=weir".to_owned(),
            "--internal-port=0".to_owned(),
            "--health-probe-bind-address=0".to_owned(),
            format!("--resolver-port={internal}"),
            format!("--resolver-proxy-port={proxy}"),
            format!("--port-range={}", self.ports.range()),
            // No kubelet makes a pod ready, for which a deletion waits as long as requests are held.
            "--hold-timeout=1s".to_owned(),
            "--fail-open-after=1h".to_owned(),
            "--sync-period=1s".to_owned(),
        ]);
        Program::start(&arguments)
    }

    pub(super) async fn resolver(&self, k8s: &ApiServer, operator: &Program) -> Program {
        let listens = operator.says("the operator listens").await;
        let listens: SocketAddr = listens["internal"]
            .as_str()
            .and_then(|it| it.parse().ok())
            .expect("an address");
        let [token, kubeconfig] = account(k8s, "weir-resolver", self.directory.path());
        let Ports {
            internal, proxy, ..
        } = self.ports;
        let mut arguments = vec![
            "resolver".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--operator-url=http://127.0.0.1:{}", listens.port()),
            format!("--token-file={}", token.display()),
            format!("--internal-port={internal}"),
            format!("--proxy-port={proxy}"),
            "--sync-period=1s".to_owned(),
        ];
        let watches = arguments_of(k8s, "weir-resolver").into_iter();
        arguments.extend(watches.filter(|it| it.starts_with("--watch-namespace")));
        Program::start(&arguments)
    }
}
