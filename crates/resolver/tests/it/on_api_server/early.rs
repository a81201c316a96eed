//! A resolver that runs, and a pod of which only the API server knows: no kubelet ever says that it is ready, and its requests
//! are answered all the same, when its own server says that it is.

use std::{
    convert::Infallible,
    net::{IpAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use clap::Parser;
use http_body_util::Full;
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use weir_lab::ports::free as free_port;
use weir_resolver::{
    role,
    settings::{ResolverArgs, Settings},
};

use super::*;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: ResolverArgs,
}

/// What the pod's server says and was asked.
#[derive(Default)]
struct Server {
    is_ready: AtomicBool,
    has_said_so: AtomicBool,
    probes: AtomicUsize,
    requests: AtomicUsize,
    too_soon: AtomicUsize,
}

impl Server {
    fn answer(&self, request: &Request<Incoming>) -> u16 {
        if request.uri().path() == "/ready" {
            self.probes.fetch_add(1, Ordering::SeqCst);
            let is_ready = self.is_ready.load(Ordering::SeqCst);
            self.has_said_so.fetch_or(is_ready, Ordering::SeqCst);
            return if is_ready { 200 } else { 503 };
        }
        self.requests.fetch_add(1, Ordering::SeqCst);
        if !self.has_said_so.load(Ordering::SeqCst) {
            self.too_soon.fetch_add(1, Ordering::SeqCst);
        }
        200
    }

    async fn run(self: Arc<Self>, listener: TcpListener) {
        let mut all = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let server = Arc::clone(&self);
            let service = service_fn(move |request| {
                let answer = Response::builder().status(server.answer(&request));
                let answer = answer.body(Full::<Bytes>::default()).unwrap();
                async { Ok::<_, Infallible>(answer) }
            });
            all.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    }
}

/// An address of this machine that may stand in an EndpointSlice. Nothing is sent for it.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    socket
        .connect("198.51.100.1:9")
        .expect("a network interface beside loopback");
    socket.local_addr().expect("an address").ip()
}

async fn get(port: u16, path: &str) -> Result<String, std::io::Error> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Asks the resolver again and again until its answer has this in it.
async fn until(port: u16, path: &str, expected: &str) {
    weir_lab::eventually(PATIENCE, &format!("{path} has {expected}"), || async {
        match get(port, path).await {
            Ok(answer) if answer.contains(expected) => Ok(()),
            Ok(answer) => Err(answer),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
}

fn pod(port: u16) -> Value {
    json!({
        "metadata": {"name": "web-1", "labels": {"app": "web"}},
        "spec": {"containers": [{
            "name": "app",
            "image": "app",
            "ports": [{"name": "web", "containerPort": port}],
            "readinessProbe": {"httpGet": {"path": "/ready", "port": "web"}, "periodSeconds": 600},
        }]},
    })
}

/// It runs, and is not ready; nor will any kubelet ever say so.
fn runs(address: IpAddr) -> Value {
    json!({"status": {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [{"type": "Ready", "status": "False"}],
        "containerStatuses": [{
            "name": "app", "image": "app", "imageID": "", "containerID": "containerd://1",
            "ready": false, "started": true, "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }],
    }})
}

fn unready_slice(pod: &Pod, address: IpAddr, port: u16) -> Value {
    json!({
        "metadata": {"name": "pods-1", "labels": {
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "somebody",
        }},
        "addressType": "IPv4",
        "endpoints": [{
            "addresses": [address],
            "conditions": {"ready": false, "serving": false, "terminating": false},
            "targetRef": {"kind": "Pod", "name": pod.name_any(), "namespace": pod.namespace(), "uid": pod.uid()},
        }],
        "ports": [{"name": "http", "port": port}],
    })
}

async fn say<K: DeserializeOwned>(api: &Api<K>, name: &str, status: &Value) {
    let (patch, plain) = (Patch::Merge(status), PatchParams::default());
    let patched = api.patch_status(name, &plain, &patch).await;
    patched.expect("a status");
}

async fn nobody_says_that_it_is_ready(namespace: &Namespace) {
    let slices: Api<EndpointSlice> = namespace.api();
    let all = slices.list(&ListParams::default()).await.expect("slices");
    for endpoint in all.items.iter().flat_map(|slice| &slice.endpoints) {
        let conditions = endpoint.conditions.as_ref().expect("conditions");
        assert_eq!(conditions.ready, Some(false), "{endpoint:?}");
        assert_eq!(conditions.serving, Some(false), "{endpoint:?}");
    }
}

#[tokio::test]
async fn a_held_request_is_answered_before_any_slice_says_ready() {
    let k8s = weir_lab::api_server().await;
    let namespace = k8s.namespace("early").await;
    install(&namespace.client()).await;
    let (internal, port) = (free_port(), free_port());
    let typed = [
        "resolver",
        "--proxy-port=0",
        &format!("--internal-port={internal}"),
        &format!("--watch-namespace={}", namespace.name()),
        &format!("--kubeconfig={}", k8s.kubeconfig().display()),
    ];
    let cli = Cli::try_parse_from(typed).expect("flags");
    let settings = Settings::new(cli.args, &|_| None).expect("settings");
    tokio::select! {
        ended = role::run(settings) => panic!("the resolver has ended: {ended:?}"),
        () = story(&namespace, internal, port) => {}
    }
}

async fn story(namespace: &Namespace, internal: u16, port: u16) {
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("a port");
    let target = listener.local_addr().expect("an address").port();
    let server = Arc::new(Server::default());
    let serving = tokio::spawn(Arc::clone(&server).run(listener));
    let address = own_address();

    let mut selecting = service();
    selecting["spec"]["selector"] = json!({"app": "web"});
    create(&namespace.api::<Service>(), selecting).await;
    let claims: Api<ElastiService> = namespace.api();
    create(&claims, elasti()).await;
    let status = json!({"status": {"ports": [{"name": "http", "resolverPort": port}]}});
    say(&claims, "web", &status).await;
    until(internal, "/crd-cache-status", &port.to_string()).await;

    let held = tokio::spawn(async move { get(port, "/").await });
    until(internal, "/debug/held", "no endpoint is ready").await;
    namespace.has_service_account().await;
    let pods: Api<Pod> = namespace.api();
    let made: Pod = create(&pods, pod(target)).await;
    say(&pods, "web-1", &runs(address)).await;
    let slices: Api<EndpointSlice> = namespace.api();
    create(&slices, unready_slice(&made, address, target)).await;

    // It is asked, and says no: nobody is sent there.
    weir_lab::eventually(PATIENCE, "it is asked", || async {
        match server.probes.load(Ordering::SeqCst) {
            asked @ 0..5 => Err(format!("{asked} times")),
            _ => Ok(()),
        }
    })
    .await;
    assert_eq!(server.requests.load(Ordering::SeqCst), 0);
    server.is_ready.store(true, Ordering::SeqCst);
    let answer = timeout(PATIENCE, held).await.expect("an answer in time");
    let answer = answer.expect("no panic").expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    nobody_says_that_it_is_ready(namespace).await;
    assert_eq!(server.too_soon.load(Ordering::SeqCst), 0);
    let counted = format!(
        "weir_resolver_early_ready{{namespace=\"{}\",source=\"web\"}} 1\n",
        namespace.name()
    );
    until(internal, "/metrics", &counted).await;

    // The pod goes, and with it what was known of it, though a slice still names it.
    let now = DeleteParams::default().grace_period(0);
    pods.delete("web-1", &now).await.expect("deleted");
    weir_lab::eventually(PATIENCE, "requests are held again", || async {
        // Either it is answered, as long as the pod is known, or it is seen to be held.
        tokio::select! {
            answer = get(port, "/") => Err(format!("{answer:?}")),
            () = until(internal, "/debug/held", "no endpoint is ready") => Ok(()),
        }
    })
    .await;
    serving.abort();
}
