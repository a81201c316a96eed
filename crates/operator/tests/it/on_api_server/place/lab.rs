//! What the tests of place stand on: nodes that are only objects, exporters on loopback that count what a test says, and an
//! operator that looks at nothing else.

use std::{
    fmt::{Display, Write},
    future::pending,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::{RawQuery, State},
    http::StatusCode,
    routing::get,
};
use clap::Parser;
use jiff::Timestamp;
use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::Node, events::v1::Event},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, MicroTime},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::JoinHandle,
    time::{sleep, timeout},
};
use weir_api::{
    crd,
    place::{TrafficWatch, names::FIELD_MANAGER},
};
use weir_lab::{ApiServer, Namespace, api_server};
use weir_operator::{
    role::{self, RoleError},
    settings::{OperatorArgs, Settings},
};
use weir_role::internal_port;

use super::{GIGABIT, PATIENCE};

/// The label by which an operator finds the nodes of its test.
const OF_TEST: &str = "weir.test/of";

pub(super) struct Lab {
    pub(super) server: ApiServer,
    pub(super) namespace: Namespace,
    /// Exporters of one test share a port and have an address each.
    port: u16,
    /// Keeps the port: who listens on all addresses is given another one.
    _port: TcpListener,
    first: Ipv4Addr,
    nodes: Mutex<Vec<String>>,
}

/// A node and its exporter.
pub(super) struct TestNode {
    pub(super) name: String,
    counters: Arc<Mutex<Counters>>,
    began: Instant,
}

#[derive(Debug)]
struct Counters {
    sent: u64,
    per_second: u64,
    since: Instant,
    requests: u64,
    refusals: u64,
    refuses_filter: bool,
    is_silent: bool,
}

pub(super) struct Operator {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), RoleError>>,
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: OperatorArgs,
}

impl Lab {
    pub(super) async fn new(prefix: &str) -> Self {
        let server = api_server().await;
        let api: Api<CustomResourceDefinition> = Api::all(server.client());
        let definition = crd::Kind::TrafficWatch.crd();
        let params = PatchParams::apply("test").force();
        let name = definition.name_any();
        let applied = api.patch(&name, &params, &Patch::Apply(&definition)).await;
        applied.unwrap();
        let namespace = server.namespace(prefix).await;
        let watches: Api<TrafficWatch> = namespace.api();
        namespace
            .eventually(PATIENCE, "the definition is established", async || {
                watches.list(&ListParams::default()).await.map(drop)
            })
            .await;
        // A port that is ours on one address is free on its neighbours, which nobody else uses.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let [high, low] = port.to_be_bytes();
        Self {
            server,
            namespace,
            port,
            _port: listener,
            first: Ipv4Addr::new(127, high.max(1), low, 1),
            nodes: Mutex::default(),
        }
    }

    /// A ready node of this test.
    pub(super) async fn node(&self, name: &str) -> TestNode {
        let name = format!("{}-{name}", self.namespace.name());
        let address = {
            let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
            nodes.push(name.clone());
            let [a, b, c, d] = self.first.octets();
            Ipv4Addr::new(a, b, c, d + u8::try_from(nodes.len()).unwrap())
        };
        let now = Instant::now();
        let counters = Arc::new(Mutex::new(Counters {
            sent: 1000,
            per_second: 0,
            since: now,
            requests: 0,
            refusals: 0,
            refuses_filter: false,
            is_silent: false,
        }));
        let listener = TcpListener::bind(SocketAddr::new(address.into(), self.port)).await;
        let listener = listener.expect("an address on loopback");
        let router = Router::new()
            .route("/metrics", get(tell))
            .with_state(Arc::clone(&counters));
        tokio::spawn(internal_port::serve(listener, router, pending()));
        let node: Node = serde_json::from_value(json!({
            "metadata": { "name": name, "labels": { OF_TEST: self.namespace.name() } },
            "status": {
                "addresses": [{ "type": "InternalIP", "address": address.to_string() }],
                "conditions": [{ "type": "Ready", "status": "True" }],
                "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "110" },
            },
        }))
        .unwrap();
        let api: Api<Node> = Api::all(self.server.client());
        api.create(&PostParams::default(), &node).await.unwrap();
        tokio::spawn(beat(self.server.client(), name.clone()));
        let node = TestNode {
            name,
            counters,
            began: now,
        };
        // The API server taints new nodes; a controller would take that away.
        self.patch(&node, &json!({ "spec": { "taints": null } }))
            .await;
        node
    }

    pub(super) async fn patch(&self, node: &TestNode, patch: &Value) {
        let api: Api<Node> = Api::all(self.server.client());
        let params = PatchParams::default();
        let patched = api.patch(&node.name, &params, &Patch::Merge(patch)).await;
        patched.unwrap();
    }

    pub(super) async fn read(&self, node: &TestNode) -> Node {
        let api: Api<Node> = Api::all(self.server.client());
        api.get(&node.name).await.unwrap()
    }

    /// When the operator last changed something on a node, and what it has there. Kubernetes writes to nodes as well.
    pub(super) async fn ours(&self, node: &TestNode) -> ManagedFieldsEntry {
        let entries = self.read(node).await.metadata.managed_fields;
        let mut entries = entries.unwrap_or_default().into_iter();
        let ours = entries.find(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER));
        ours.expect("something of the operator")
    }

    /// An operator for this test's namespace and nodes.
    pub(super) fn operator(&self, flags: &[&str]) -> Operator {
        let kubeconfig = self.server.kubeconfig().to_str().unwrap();
        let name = self.namespace.name();
        let port = format!("--node-exporter-port={}", self.port);
        let nodes = format!("--node-selector={OF_TEST}={name}");
        let line = [
            "operator",
            "--controllers=place",
            "--kubeconfig",
            kubeconfig,
            "--watch-namespace",
            name,
            "--operator-namespace",
            name,
            "--internal-port=0",
            "--health-probe-bind-address=0",
            &port,
            &nodes,
        ];
        let line = line.iter().chain(flags);
        let args = Line::try_parse_from(line).unwrap().args;
        let settings = Settings::new(args, &|_| None).unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(role::run_until(settings, async {
            let _ = stopped.await;
        }));
        Operator { stop, task }
    }

    /// A watch that is measured every five seconds.
    pub(super) async fn create(&self, name: &str, more: &Value) -> TrafficWatch {
        let mut spec = json!({
            "maxBandwidthPercent": "60",
            "interval": "5s",
            "nodeSelector": { OF_TEST: self.namespace.name() },
            "deployment": {
                "replicas": 3,
                "selector": { "matchLabels": { "app": name } },
                // As the original's schema left it.
                "template": { "metadata": {}, "spec": { "containers": [{ "name": "app", "image": "none" }] } },
            },
        });
        let own = spec.as_object_mut().unwrap();
        own.extend(more.as_object().unwrap().clone());
        let object: TrafficWatch = serde_json::from_value(json!({
            "apiVersion": "traffic.example.com/v1alpha1",
            "kind": "TrafficWatch",
            "metadata": { "name": name },
            "spec": spec,
        }))
        .unwrap();
        let api: Api<TrafficWatch> = self.namespace.api();
        api.create(&PostParams::default(), &object).await.unwrap()
    }

    pub(super) async fn edit(&self, name: &str, spec: &Value) {
        let api: Api<TrafficWatch> = self.namespace.api();
        let patch = Patch::Merge(json!({ "spec": spec }));
        let edited = api.patch(name, &PatchParams::default(), &patch).await;
        edited.unwrap();
    }

    pub(super) async fn until<T, E, F>(&self, what: &str, is_so: impl FnMut() -> F) -> T
    where
        E: Display,
        F: Future<Output = Result<T, E>>,
    {
        self.namespace.eventually(PATIENCE, what, is_so).await
    }

    pub(super) async fn until_label(
        &self,
        node: &TestNode,
        key: &str,
        value: Option<&str>,
        what: &str,
    ) {
        self.until(what, async || {
            let node = self.read(node).await;
            let found = node.labels().get(key).map(String::as_str);
            (found == value).then_some(()).ok_or(format!("{found:?}"))
        })
        .await;
    }

    pub(super) async fn until_condition(
        &self,
        watch: &str,
        kind: &str,
        reason: &str,
        message: &str,
    ) {
        let api: Api<TrafficWatch> = self.namespace.api();
        let what = format!("{watch} says {reason}");
        self.until(&what, async || {
            let object = api.get(watch).await.unwrap();
            let conditions = object.status.unwrap_or_default().conditions;
            let is_so = (conditions.iter()).any(|it| {
                it.type_ == kind
                    && it.status == "False"
                    && it.reason == reason
                    && it.message.contains(message)
            });
            is_so.then_some(()).ok_or(format!("{conditions:?}"))
        })
        .await;
    }

    /// Until an Event tells this with these words.
    pub(super) async fn until_event(&self, reason: &str, words: &str) {
        let api: Api<Event> = self.namespace.api();
        self.until(&format!("an Event says {reason}"), async || {
            let events = api.list(&ListParams::default()).await.unwrap();
            let is_it = |event: &Event| {
                let note = event.note.as_deref().unwrap_or_default();
                event.reason.as_deref() == Some(reason) && note.contains(words)
            };
            let notes: Vec<_> = events.iter().filter_map(|it| it.note.clone()).collect();
            let found = events.iter().any(is_it);
            found.then_some(()).ok_or(format!("{notes:?}"))
        })
        .await;
    }

    /// Nodes are in no namespace, so nobody else takes them away.
    pub(super) async fn clean_up(&self) {
        let nodes = std::mem::take(&mut *self.nodes.lock().unwrap_or_else(PoisonError::into_inner));
        let api: Api<Node> = Api::all(self.server.client());
        for node in nodes {
            api.delete(&node, &DeleteParams::default()).await.unwrap();
        }
    }
}

impl TestNode {
    /// It sends so many bytes per second from now on.
    pub(super) fn send(&self, per_second: u64) {
        self.with(|counters| {
            counters.count();
            counters.per_second = per_second;
        });
    }

    /// It answers that it cannot, until it is told to speak.
    pub(super) fn is_silent(&self, is_silent: bool) {
        self.with(|counters| counters.is_silent = is_silent);
    }

    /// It answers 400 to who asks for some collectors alone.
    pub(super) fn refuses_filter(&self) {
        self.with(|counters| counters.refuses_filter = true);
    }

    pub(super) fn requests(&self) -> u64 {
        self.with(|counters| counters.requests)
    }

    pub(super) fn refusals(&self) -> u64 {
        self.with(|counters| counters.refusals)
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn with<T>(&self, change: impl FnOnce(&mut Counters) -> T) -> T {
        change(&mut self.counters.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Counters {
    fn count(&mut self) {
        let now = Instant::now();
        let sent = now.duration_since(self.since).as_micros() * u128::from(self.per_second);
        self.sent += u64::try_from(sent / 1_000_000).unwrap();
        self.since = now;
    }
}

/// Renews the node's Lease for ever, as a kubelet does: else Kubernetes takes the node for lost within a minute. The Node
/// itself is not written by it.
async fn beat(client: Client, node: String) {
    let api: Api<Lease> = Api::namespaced(client, "kube-node-lease");
    let params = PatchParams::apply("test").force();
    loop {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": node },
            "spec": {
                "holderIdentity": node, "leaseDurationSeconds": 40,
                "renewTime": MicroTime(Timestamp::now()),
            },
        });
        // A beat that is missed is followed by another.
        let _ = api.patch(&node, &params, &Patch::Apply(&lease)).await;
        sleep(Duration::from_secs(5)).await;
    }
}

async fn tell(
    State(counters): State<Arc<Mutex<Counters>>>,
    RawQuery(query): RawQuery,
) -> (StatusCode, String) {
    let mut counters = counters.lock().unwrap_or_else(PoisonError::into_inner);
    counters.requests += 1;
    if counters.is_silent {
        return (StatusCode::SERVICE_UNAVAILABLE, "not yet".to_owned());
    }
    if counters.refuses_filter && query.is_some() {
        counters.refusals += 1;
        return (StatusCode::BAD_REQUEST, "disabled collector".to_owned());
    }
    counters.count();
    let mut body = String::from("# TYPE node_network_transmit_bytes_total counter\n");
    for (name, value) in [
        ("node_network_transmit_bytes_total", counters.sent),
        ("node_network_receive_bytes_total", 0),
        ("node_network_speed_bytes", GIGABIT),
    ] {
        writeln!(body, "{name}{{device=\"eth0\"}} {value}").unwrap();
        writeln!(body, "{name}{{device=\"lo\"}} {value}").unwrap();
    }
    (StatusCode::OK, body)
}

impl Operator {
    pub(super) async fn stop(self) {
        self.stop.send(()).unwrap();
        let ended = timeout(PATIENCE, self.task).await;
        ended.expect("it ends when it is told").unwrap().unwrap();
    }
}
