//! The operator's ports over real connections, with a controller that says what the test wants.

use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, FutureExt};
use kube::{Client, Config};
use serde_json::json;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use weir_operator::{
    admin::{self, AdminState, Authority, MetricsOn, WakeAnswer, Wakes},
    metrics::OperatorMetrics,
};
use weir_role::cluster::ObjectId;

use crate::http::ask;

const WAKE: &str = "POST /informer/incoming-request";

/// Answers by the service's name, and remembers what it was asked.
#[derive(Default)]
pub(crate) struct Controller {
    pub(crate) asked: Mutex<Vec<(ObjectId, u64)>>,
}

impl Wakes for Controller {
    fn wake(&self, service: ObjectId, held: u64) -> BoxFuture<'_, WakeAnswer> {
        let answer = match &*service.name {
            "web" => WakeAnswer::Woken,
            "awake" => WakeAnswer::AlreadyAwake,
            "broken" => WakeAnswer::Failed("the Deployment is gone".to_owned()),
            _ => WakeAnswer::Unknown,
        };
        self.asked.lock().unwrap().push((service, held));
        async { answer }.boxed()
    }
}

pub(crate) fn state(authority: Authority) -> (AdminState, Arc<Controller>, watch::Sender<bool>) {
    let controller = Arc::new(Controller::default());
    let (sync, synced) = watch::channel(false);
    let state = AdminState {
        wakes: Arc::clone(&controller) as Arc<dyn Wakes>,
        metrics: OperatorMetrics::new(),
        authority: Arc::new(authority),
        cache: Arc::new(|| json!({"services": {"shop/web": {"name": "web"}}})),
        synced,
    };
    (state, controller, sync)
}

/// A client of a cluster that is not there.
pub(crate) fn nowhere() -> Client {
    weir_role::tls::install_provider();
    Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap()
}

pub(crate) async fn internal(state: AdminState, metrics: MetricsOn) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = admin::serve_internal(listener, state, metrics, std::future::pending());
    (port, tokio::spawn(serve))
}

fn open() -> Authority {
    Authority::new(nowhere(), "weir", "weir-resolver").without_tokens_for_wakes()
}

#[tokio::test]
async fn a_wake_signal_is_answered_by_what_came_of_it() {
    let (state, controller, _sync) = state(open());
    let metrics = Arc::clone(&state.metrics);
    let (port, server) = internal(state, MetricsOn::InternalPort).await;
    let signal = |service: &str| format!(r#"{{"count":2,"svc":"{service}","namespace":"shop"}}"#);
    for (service, status, key, says) in [
        ("web", 200, "message", "being woken"),
        ("awake", 200, "message", "is awake"),
        ("nobody", 404, "error", "no ElastiService"),
        ("broken", 503, "error", "the Deployment is gone"),
    ] {
        let answer = ask(port, WAKE, None, &signal(service)).await;
        assert_eq!(answer.status, status, "{answer:?}");
        let said = answer.json()[key].as_str().unwrap().to_owned();
        assert!(said.contains(says), "{said}");
    }
    assert_eq!(
        controller.asked.lock().unwrap()[0],
        (ObjectId::new("shop", "web"), 2)
    );
    let long = format!(r#"{{"svc":"{}"}}"#, "a".repeat(5000));
    for (body, status, says) in [
        ("", 400, "JSON"),
        ("{", 400, "JSON"),
        (r#"{"svc":"web"}"#, 400, "`namespace`"),
        (
            r#"{"svc":"web","namespace":"shop","count":-1}"#,
            400,
            "`count`",
        ),
        (&long, 413, "length limit"),
    ] {
        let answer = ask(port, WAKE, None, body).await;
        assert_eq!(answer.status, status, "{answer:?}");
        let said = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(said.contains(says), "{said}");
    }
    assert_eq!(controller.asked.lock().unwrap().len(), 4);
    let text = metrics.render();
    for (outcome, count) in [
        ("woken", 1),
        ("awake", 1),
        ("unknown", 1),
        ("failed", 1),
        ("bad_request", 5),
    ] {
        let line = format!(r#"weir_operator_wakes{{outcome="{outcome}"}} {count}"#);
        assert!(text.contains(&line), "{line}\n{text}");
    }
    server.abort();
}

#[tokio::test]
async fn every_path_of_the_internal_port_answers() {
    let (state, _controller, _sync) = state(open());
    let (port, server) = internal(state.clone(), MetricsOn::InternalPort).await;
    let metrics = ask(port, "GET /metrics", None, "").await;
    assert_eq!(metrics.status, 200);
    assert!(metrics.head.contains("text/plain; version=0.0.4"));
    assert!(metrics.body.contains("elasti_operator_reconcile"));
    let cache = ask(port, "GET /crd-cache", None, "").await;
    assert_eq!(cache.json()["services"]["shop/web"]["name"], "web");
    for (line, status) in [
        ("GET /informer/incoming-request", 405),
        ("POST /metrics", 405),
        ("GET /healthz", 404),
        ("GET /", 404),
    ] {
        let answer = ask(port, line, None, "").await;
        assert_eq!(answer.status, status, "{line}");
        assert!(answer.json()["error"].is_string());
    }
    server.abort();

    let (port, server) = internal(state, MetricsOn::SecurePort).await;
    let moved = ask(port, "GET /metrics", None, "").await;
    assert_eq!(moved.status, 404);
    assert!(moved.body.contains("--metrics-secure"), "{moved:?}");
    server.abort();
}

#[tokio::test]
async fn health_is_always_told_and_readiness_when_all_is_known() {
    let (state, _controller, sync) = state(open());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = admin::serve_health(listener, state.clone(), std::future::pending());
    let server = tokio::spawn(serve);
    assert_eq!(ask(port, "GET /healthz", None, "").await.status, 200);
    let answer = ask(port, "GET /readyz", None, "").await;
    assert_eq!(
        (answer.status, &answer.json()["ready"]),
        (503, &false.into())
    );
    sync.send_replace(true);
    assert_eq!(ask(port, "GET /readyz", None, "").await.status, 200);
    assert_eq!(ask(port, "GET /metrics", None, "").await.status, 404);
    server.abort();

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = admin::serve_metrics(listener, state, std::future::pending());
    let server = tokio::spawn(serve);
    assert_eq!(ask(port, "GET /metrics", None, "").await.status, 200);
    assert_eq!(ask(port, "GET /crd-cache", None, "").await.status, 404);
    server.abort();
}

#[tokio::test]
async fn without_a_token_or_a_cluster_nobody_is_woken() {
    let authority = Authority::new(nowhere(), "weir", "weir-resolver");
    let (state, controller, _sync) = state(authority);
    let (port, server) = internal(state, MetricsOn::InternalPort).await;
    let signal = r#"{"count":1,"svc":"web","namespace":"shop"}"#;
    let answer = ask(port, WAKE, None, signal).await;
    assert_eq!(answer.status, 401);
    assert!(answer.json()["error"].as_str().unwrap().contains("Bearer"));
    // Even what is wrong with the body is not said to a stranger.
    assert_eq!(ask(port, WAKE, None, "{").await.status, 401);
    let answer = ask(port, WAKE, Some("token"), signal).await;
    assert_eq!(answer.status, 503);
    assert!(
        answer.json()["error"]
            .as_str()
            .unwrap()
            .contains("try again")
    );
    assert!(controller.asked.lock().unwrap().is_empty());
    server.abort();
}
