//! A pod that starts, as a real server on this machine: its requests are held until its own probes succeed, and no longer.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;

use super::*;
use crate::pod::{Action, Check, ContainerView, PodView, Probe, Starting};

/// What a pod does, and what was asked of it.
#[derive(Default)]
struct Pod {
    is_ready: AtomicBool,
    probes: AtomicUsize,
    requests: AtomicUsize,
    /// Requests that came before a probe had succeeded.
    too_soon: AtomicUsize,
    has_said_so: AtomicBool,
}

impl Pod {
    fn answer(&self, request: &Request<Incoming>) -> u16 {
        if request.uri().path() == "/ready" {
            self.probes.fetch_add(1, Ordering::SeqCst);
            if !self.is_ready.load(Ordering::SeqCst) {
                return 503;
            }
            self.has_said_so.store(true, Ordering::SeqCst);
            return 200;
        }
        self.requests.fetch_add(1, Ordering::SeqCst);
        if !self.has_said_so.load(Ordering::SeqCst) {
            self.too_soon.fetch_add(1, Ordering::SeqCst);
        }
        200
    }

    async fn serve(self: Arc<Self>, listener: TcpListener) {
        let mut all = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let pod = Arc::clone(&self);
            let service = service_fn(move |request| {
                let answer = Response::builder().status(pod.answer(&request));
                let answer = answer.body(Full::<Bytes>::default()).unwrap();
                async { Ok::<_, Infallible>(answer) }
            });
            all.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    }
}

/// The service with one pod that the kubelet does not call ready, in this run.
fn starting(port: u16, address: SocketAddr, run: Option<&str>) -> Change {
    let probe = Probe {
        port: address.port(),
        action: Action::Http {
            tls: false,
            path: http::uri::PathAndQuery::from_static("/ready"),
            headers: Vec::new(),
        },
        initial_delay: Duration::ZERO,
        period: Duration::from_secs(10),
        timeout: Duration::from_secs(1),
        successes: 1,
        failures: 3,
    };
    let container = ContainerView {
        run: run.map(Arc::from),
        is_started: false,
        is_ready: false,
        startup: None,
        readiness: Some(Check::Ask(Arc::new(probe))),
    };
    let pod = PodView {
        uid: "u1".into(),
        addresses: vec![address.ip()],
        containers: vec![container],
    };
    let Change::Set(view) = web(&[("http", Some(port), Protocol::Http1)], &[]) else {
        panic!("no view")
    };
    let mut view = ServiceView::clone(&view);
    view.ports[0].starting = Arc::from([Starting {
        address,
        pod: Arc::new(pod),
    }]);
    Change::Set(Arc::new(view))
}

async fn get(port: u16) -> String {
    let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    client.write_all(request).await.unwrap();
    let mut answer = String::new();
    let read = timeout(PATIENCE, client.read_to_string(&mut answer)).await;
    read.expect("an answer in time").unwrap();
    answer
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_request_goes_to_a_pod_as_soon_as_its_own_probe_succeeds() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let pod = Arc::new(Pod::default());
    let server = tokio::spawn(Arc::clone(&pod).serve(listener));
    let probes = || pod.probes.load(Ordering::SeqCst);
    let mut resolver = Running::start().await;
    let port = free_port();

    // The container does not run yet, as far as is known: it is not asked.
    resolver.apply(starting(port, address, None));
    let held = tokio::spawn(get(port));
    let waits = || resolver.parts.table.waits(&ServiceId::new("shop", "web"));
    until("it is held", waits).await;
    assert_eq!(probes(), 0);
    resolver.apply(starting(port, address, Some("first")));
    until("it is asked", || probes() >= 3).await;
    assert_eq!(pod.requests.load(Ordering::SeqCst), 0);
    pod.is_ready.store(true, Ordering::SeqCst);
    let answer = held.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // Those who come later need not wait, and nobody asks on: the kubelet would in 10 s.
    let asked = probes();
    for _ in 0..3 {
        assert!(get(port).await.starts_with("HTTP/1.1 200"));
    }
    assert_eq!(pod.too_soon.load(Ordering::SeqCst), 0);
    assert_eq!(probes(), asked);
    let metrics = resolver.text("/metrics").await;
    for line in [
        "weir_resolver_early_ready{namespace=\"shop\",source=\"web\"} 1\n",
        "weir_resolver_early_probes{result=\"succeeded\"} 1\n",
        "weir_resolver_early_withdrawn 0\n",
        "weir_resolver_wake_seconds_count{phase=\"ready\",namespace=\"shop\",source=\"web\"} 1\n",
    ] {
        assert!(metrics.contains(line), "{line} {metrics}");
    }

    // It starts again, and is not ready: requests are held again.
    pod.is_ready.store(false, Ordering::SeqCst);
    pod.has_said_so.store(false, Ordering::SeqCst);
    resolver.apply(starting(port, address, Some("second")));
    until("it is taken back", || {
        !resolver
            .parts
            .table
            .is_ready(&ServiceId::new("shop", "web"))
    })
    .await;
    let held = tokio::spawn(get(port));
    until("it is held", || {
        resolver.parts.table.waits(&ServiceId::new("shop", "web"))
    })
    .await;
    // Now the kubelet says it first: nobody asks any more.
    resolver.apply(web(&[("http", Some(port), Protocol::Http1)], &[address]));
    assert!(held.await.unwrap().starts_with("HTTP/1.1 200"));
    assert_eq!(
        pod.too_soon.load(Ordering::SeqCst),
        1,
        "by the kubelet's word"
    );
    let metrics = resolver.text("/metrics").await;
    assert!(
        metrics.contains("weir_resolver_early_withdrawn 1\n"),
        "{metrics}"
    );
    server.abort();
    let _ = resolver.parts.stop.send(true);
}

/// However many come, a pod that is not ready is asked as often as for one, and who gives up is not asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_asked_when_nobody_waits() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let pod = Arc::new(Pod::default());
    let server = tokio::spawn(Arc::clone(&pod).serve(listener));
    let probes = || pod.probes.load(Ordering::SeqCst);
    let mut resolver = Running::start().await;
    let port = free_port();
    resolver.apply(starting(port, address, Some("first")));
    let began = Instant::now();
    let clients: Vec<_> = (0..50).map(|_| tokio::spawn(get(port))).collect();
    until("it is asked", || probes() >= 5).await;
    let asked = probes() as u128;
    let most = began.elapsed().as_millis() / 50 + 1;
    assert!(asked <= most, "{asked} times, and not {most}");
    for client in clients {
        client.abort();
    }
    let id = ServiceId::new("shop", "web");
    until("nobody waits", || !resolver.parts.table.waits(&id)).await;
    // It is looked for every 250 ms who waits; then the number of probes stays.
    let deadline = Instant::now() + PATIENCE;
    loop {
        let before = probes();
        tokio::time::sleep(Duration::from_millis(500)).await;
        if probes() == before {
            break;
        }
        assert!(Instant::now() < deadline, "it is asked for nobody");
    }
    assert_eq!(pod.requests.load(Ordering::SeqCst), 0);
    server.abort();
    let _ = resolver.parts.stop.send(true);
}
