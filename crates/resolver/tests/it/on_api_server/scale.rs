//! Resolvers that run, and no operator: what sleeps is woken all the same, where that is allowed; and nothing else is touched.

use clap::Parser;
use k8s_openapi::api::apps::v1::Deployment;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};
use weir_lab::{ApiServer, ports::free as free_port};
use weir_resolver::{
    role,
    settings::{ResolverArgs, Settings},
};

use super::*;

const PAUSED: &str = "autoscaling.keda.sh/paused";
const PAUSED_REPLICAS: &str = "autoscaling.keda.sh/paused-replicas";
const PAUSED_BY: &str = "elasti.truefoundry.com/paused-by";

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: ResolverArgs,
}

/// Where a resolver listens.
#[derive(Clone, Copy)]
struct Ports {
    proxy: u16,
    internal: u16,
}

/// A resolver of one namespace, whose operator is nowhere.
fn resolver(k8s: &ApiServer, namespace: &Namespace, more: &[&str]) -> (Settings, Ports) {
    let ports = Ports {
        proxy: free_port(),
        internal: free_port(),
    };
    let typed = [
        "resolver".to_owned(),
        format!("--proxy-port={}", ports.proxy),
        format!("--internal-port={}", ports.internal),
        format!("--watch-namespace={}", namespace.name()),
        format!("--kubeconfig={}", k8s.kubeconfig().display()),
        format!("--operator-url=http://127.0.0.1:{}", free_port()),
    ];
    let more = more.iter().map(|&flag| flag.to_owned());
    let cli = Cli::try_parse_from(typed.into_iter().chain(more)).expect("flags");
    let settings = Settings::new(cli.args, &|_| None).expect("settings");
    (settings, ports)
}

async fn get(port: u16, host: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Asks a resolver again and again until its answer has all of this in it.
async fn until(port: u16, path: &str, expected: &[&str]) {
    let what = format!("{path} has {expected:?}");
    weir_lab::eventually(PATIENCE, &what, || async {
        match get(port, "a", path).await {
            Ok(answer) if expected.iter().all(|it| answer.contains(it)) => Ok(()),
            Ok(answer) => Err(answer),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
}

/// KEDA's, as far as we look at it.
async fn install_scaled_objects(client: &Client) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let names = json!({
        "kind": "ScaledObject", "listKind": "ScaledObjectList",
        "plural": "scaledobjects", "singular": "scaledobject",
    });
    let crd = json!({
        "metadata": {"name": "scaledobjects.keda.sh"},
        "spec": {
            "group": "keda.sh", "scope": "Namespaced", "names": names,
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": anything},
            }],
        },
    });
    create(&crds, crd).await;
    weir_lab::eventually(PATIENCE, "ScaledObjects are served", || async {
        let all: Api<DynamicObject> = Api::all_with(client.clone(), &scaled_objects());
        all.list(&ListParams::default()).await.map(drop)
    })
    .await;
}

fn scaled_objects() -> ApiResource {
    let kind = GroupVersionKind::gvk("keda.sh", "v1alpha1", "ScaledObject");
    ApiResource::from_gvk_with_plural(&kind, "scaledobjects")
}

/// A namespace with targets.
struct Bed {
    namespace: Namespace,
}

impl Bed {
    /// A target with so many replicas, held by an ElastiService in this mode, which wakes it to two.
    async fn holds(&self, name: &str, replicas: i32, mode: &str, autoscaler: bool) {
        let service =
            json!({"metadata": {"name": name}, "spec": {"ports": [{"name": "http", "port": 80}]}});
        create(&self.namespace.api::<Service>(), service).await;
        let labels = json!({"app": name});
        let deployment = json!({
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "app", "image": "none"}]},
                },
            },
        });
        create(&self.namespace.api::<Deployment>(), deployment).await;
        let mut elasti = json!({
            "metadata": {"name": format!("held-{name}")},
            "spec": {
                "service": name,
                "minTargetReplicas": 2,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            },
        });
        if autoscaler {
            elasti["spec"]["autoscaler"] = json!({"type": "keda", "name": name});
        }
        let objects: Api<ElastiService> = self.namespace.api();
        create(&objects, elasti).await;
        let status = json!({"status": {"mode": mode}});
        let (patch, plain) = (Patch::Merge(&status), PatchParams::default());
        let name = format!("held-{name}");
        let patched = objects.patch_status(&name, &plain, &patch).await;
        patched.expect("a status");
    }

    fn scalers(&self) -> Api<DynamicObject> {
        let client = self.namespace.client();
        Api::namespaced_with(client, self.namespace.name(), &scaled_objects())
    }

    async fn pauses(&self, name: &str, annotations: Value) {
        let object = json!({
            "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"scaleTargetRef": {"name": name}},
        });
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        let made = self.scalers().create(&PostParams::default(), &object).await;
        made.expect("the API server takes it");
    }

    async fn annotations(&self, name: &str) -> Value {
        let scaler = self.scalers().get(name).await.expect("a ScaledObject");
        json!(scaler.annotations())
    }

    /// How many replicas a target is to have, and how often it was asked to have others.
    async fn replicas(&self, name: &str) -> (i32, i64) {
        let found = self.namespace.api::<Deployment>().get(name).await;
        let found = found.expect("a Deployment");
        let replicas = found.spec.and_then(|spec| spec.replicas).expect("replicas");
        (
            replicas,
            found.metadata.generation.expect("a generation") - 1,
        )
    }

    async fn comes_to_have(&self, name: &str, replicas: i32) {
        let what = format!("{name} has {replicas}");
        weir_lab::eventually(PATIENCE, &what, || async {
            match self.replicas(name).await {
                (found, _) if found == replicas => Ok(()),
                found => Err(format!("{found:?}")),
            }
        })
        .await;
    }

    /// Requests to all of these are held by this resolver.
    async fn ask(&self, ports: Ports, names: &[&str]) -> JoinSet<()> {
        let mut held = JoinSet::new();
        for name in names {
            let host = format!("{name}.{}", self.namespace.name());
            held.spawn(async move {
                let answer = get(ports.proxy, &host, "/").await;
                panic!("it is held, but: {answer:?}");
            });
        }
        let held_names: Vec<String> = names
            .iter()
            .map(|name| format!("{}/{name}", self.namespace.name()))
            .collect();
        let held_names: Vec<&str> = held_names.iter().map(String::as_str).collect();
        until(ports.internal, "/debug/held", &held_names).await;
        held
    }

    /// This resolver knows all of these.
    async fn knows(&self, ports: Ports, names: &[&str]) {
        let services: Vec<String> = names
            .iter()
            .map(|name| format!("\"service\":\"{name}\""))
            .collect();
        let services: Vec<&str> = services.iter().map(String::as_str).collect();
        until(ports.internal, "/crd-cache-status", &services).await;
    }
}

#[tokio::test]
async fn what_sleeps_is_woken_without_an_operator_and_nothing_else_is_touched() {
    let k8s = weir_lab::fresh_api_server().await;
    let namespace = k8s.namespace("scale").await;
    install(&namespace.client()).await;
    install_scaled_objects(&namespace.client()).await;
    let may = ["--resolver-may-scale", "--scale-after=1s"];
    let (first, ports) = resolver(&k8s, &namespace, &may);
    let (second, other_ports) = resolver(&k8s, &namespace, &may);
    let bed = Bed { namespace };
    tokio::select! {
        ended = role::run(first) => panic!("a resolver has ended: {ended:?}"),
        ended = role::run(second) => panic!("a resolver has ended: {ended:?}"),
        () = wakes(&bed, ports, other_ports) => {}
    }
}

async fn wakes(bed: &Bed, ports: Ports, other_ports: Ports) {
    bed.holds("plain", 0, "proxy", false).await;
    bed.holds("ours", 0, "proxy", true).await;
    let ours = json!({PAUSED: "true", PAUSED_REPLICAS: "0", PAUSED_BY: "held-ours", "other": "x"});
    bed.pauses("ours", ours).await;
    bed.holds("peers", 0, "proxy", true).await;
    bed.pauses("peers", json!({PAUSED: "true", PAUSED_REPLICAS: "0"}))
        .await;
    // Somebody else's reasons are nobody's business.
    bed.holds("users", 0, "proxy", true).await;
    let users = json!({PAUSED: "true"});
    bed.pauses("users", users.clone()).await;
    // On its way up already, to more than we would ask for.
    bed.holds("starts", 3, "proxy", false).await;
    // Scaled to zero by somebody just now, which no operator has seen.
    bed.holds("serves", 0, "serve", false).await;
    let names = ["plain", "ours", "peers", "users", "starts", "serves"];
    bed.knows(ports, &names).await;
    bed.knows(other_ports, &["plain"]).await;

    let _held = bed.ask(ports, &names).await;
    let _also_held = bed.ask(other_ports, &["plain"]).await;
    for name in ["plain", "ours", "peers", "users"] {
        bed.comes_to_have(name, 2).await;
    }
    assert_eq!(bed.annotations("ours").await, json!({"other": "x"}));
    assert_eq!(bed.annotations("peers").await, json!({}));
    assert_eq!(bed.annotations("users").await, users);
    // Every one has been looked at by now, and the one by both.
    let scales = |result: &str| format!("weir_resolver_scales{{result=\"{result}\"}}");
    let [woken, awake, not_proxied] = ["woken", "awake", "not_proxied"].map(scales);
    until(ports.internal, "/metrics", &[&woken, &awake, &not_proxied]).await;
    until(other_ports.internal, "/metrics", &["weir_resolver_scales{"]).await;
    assert_eq!(bed.replicas("plain").await, (2, 1), "scaled once");
    assert_eq!(bed.replicas("starts").await, (3, 0));
    assert_eq!(bed.replicas("serves").await, (0, 0));
}

#[tokio::test]
async fn without_being_allowed_to_a_resolver_wakes_nobody() {
    let k8s = weir_lab::api_server().await;
    let namespace = k8s.namespace("scale-not").await;
    install(&namespace.client()).await;
    // As soon as it can be, if it were.
    let (settings, ports) = resolver(&k8s, &namespace, &["--scale-after=0.001s"]);
    let bed = Bed { namespace };
    let story = async {
        bed.holds("plain", 0, "proxy", false).await;
        bed.knows(ports, &["plain"]).await;
        let _held = bed.ask(ports, &["plain"]).await;
        let failed = "elasti_resolver_operator_rpc_count{error=\"unreachable\"}";
        until(ports.internal, "/metrics", &[failed]).await;
        assert_eq!(bed.replicas("plain").await, (0, 0));
    };
    tokio::select! {
        ended = role::run(settings) => panic!("the resolver has ended: {ended:?}"),
        () = story => {}
    }
}
