//! The internal port over real connections.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    time::timeout,
};
use weir_resolver::{
    admin::{
        self, AdminState, BoundPort, HeldReport, KnownService, Readiness, ServiceUsage, Unreachable,
    },
    metrics::Metrics,
    view::ServiceId,
};
use weir_wire::client::Silent;

const PATIENCE: Duration = Duration::from_mins(1);

/// Status, headers and body of one answer.
async fn ask(port: u16, line: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("{line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = timeout(PATIENCE, stream.read_to_string(&mut answer)).await;
    read.expect("an answer in time").unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_ascii_lowercase(), body.to_owned())
}

async fn json(port: u16, line: &str) -> (u16, Value) {
    let (status, head, body) = ask(port, line).await;
    assert!(head.contains("content-type: application/json"), "{head}");
    (status, serde_json::from_str(&body).unwrap())
}

/// A resolver that holds something for a service, which stays behind it.
fn state(readiness: &Arc<Readiness>, unreachable: Told) -> AdminState {
    AdminState {
        sibling: None,
        refresh: Arc::new(|| {}),
        metrics: Metrics::new(),
        readiness: Arc::clone(readiness),
        held: Arc::new(|| {
            vec![HeldReport {
                service: ServiceId::new("shop", "web"),
                reason: "no ready endpoint".to_owned(),
                requests: 2,
                connections: 1,
                bytes: 1024,
                oldest_seconds: 1.5,
            }]
        }),
        services: Arc::new(|| {
            vec![KnownService {
                namespace: "shop".into(),
                service: "web".into(),
                ports: vec![BoundPort {
                    name: "http".into(),
                    resolver_port: 10240,
                }],
            }]
        }),
        generation: Arc::new(|| 7),
        unreachable,
        usage: Arc::new(|| {
            vec![ServiceUsage {
                namespace: "shop".into(),
                service: "web".into(),
                open: 2,
                ended_seconds_ago: None,
                counted_seconds: 60.0,
            }]
        }),
        silent: Arc::new(|port| {
            let silent = Silent {
                peer: ([192, 0, 2, 1], 4000).into(),
                port: 10240,
                age: Duration::ZERO,
            };
            if port == 4000 {
                vec![silent]
            } else {
                Vec::new()
            }
        }),
    }
}

#[tokio::test]
async fn every_path_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let readiness = Arc::new(Readiness::default());
    let (unreachable, told) = list();
    let state = state(&readiness, told);
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(admin::serve(listener, state, async {
        let _ = stopped.await;
    }));

    let (status, head, body) = ask(port, "GET /metrics").await;
    assert_eq!(status, 200);
    assert!(
        head.contains("content-type: text/plain; version=0.0.4"),
        "{head}"
    );
    assert!(body.contains("elasti_resolver_queued_count"));
    assert_eq!(ask(port, "GET /healthz").await.0, 200);
    let (status, _, body) = ask(port, "HEAD /metrics").await;
    assert_eq!((status, body.as_str()), (200, ""));

    let (status, body) = json(port, "GET /readyz").await;
    assert_eq!(status, 503);
    assert!(
        body["missing"][0]
            .as_str()
            .unwrap()
            .contains("not all known")
    );
    readiness.set_synced();
    assert_eq!(ask(port, "GET /readyz").await.0, 200);
    readiness.set_bound(10240, false);
    let (status, body) = json(port, "GET /readyz").await;
    assert_eq!(
        (status, &body["missing"][0]),
        (503, &"port 10240 is not bound".into())
    );

    for (query, status, queued) in [
        ("?namespace=shop&service=web", 200, Some(1)),
        ("?namespace=shop&service=other", 200, Some(0)),
        ("?namespace=other&service=web", 200, Some(0)),
        ("?namespace=shop", 400, None),
        ("", 400, None),
    ] {
        let (found, body) = json(port, &format!("GET /queue-status{query}")).await;
        assert_eq!(found, status, "{query}");
        assert_eq!(body["queueStatus"].as_u64(), queued, "{query}");
    }
    let (_, body) = json(port, "GET /crd-cache-status").await;
    assert_eq!((&body["count"], &body["synced"]), (&1.into(), &true.into()));
    the_operator_is_told_who_is_unreachable(port, &unreachable).await;
    the_operator_is_told_what_is_known(port, &readiness).await;
    the_operator_is_told_who_is_silent(port).await;
    let usage = json!([{
        "namespace": "shop", "service": "web", "open": 2, "endedSecondsAgo": null, "countedSeconds": 60.0,
    }]);
    assert_eq!(json(port, "GET /usage").await, (200, usage));
    let (_, body) = json(port, "GET /debug/held").await;
    assert_eq!(body[0]["service"], "shop/web");
    assert_eq!(body[0]["oldestSeconds"], 1.5);
    assert_eq!(body[0]["connections"], 1);

    assert_eq!(json(port, "GET /nothing").await.0, 404);
    assert_eq!(json(port, "POST /metrics").await.0, 405);
    let long = format!("GET /healthz?{}", "a".repeat(40_000));
    assert!(ask(port, &long).await.0 >= 400);

    stop.send(()).unwrap();
    timeout(PATIENCE, server).await.unwrap().unwrap();
}

async fn the_operator_is_told_what_is_known(port: u16, readiness: &Readiness) {
    let whole = json!({
        "synced": true,
        "draining": false,
        "generation": 7,
        "count": 1,
        "services": [{
            "namespace": "shop",
            "service": "web",
            "ports": [{"name": "http", "resolverPort": 10240}],
        }],
    });
    for query in ["", "?unless=6"] {
        let (_, body) = json(port, &format!("GET /crd-cache-status{query}")).await;
        assert_eq!(body, whole, "{query}");
    }
    for draining in [false, true] {
        let (_, body) = json(port, "GET /crd-cache-status?unless=7").await;
        let unchanged =
            json!({"synced": true, "draining": draining, "generation": 7, "unchanged": true});
        assert_eq!(body, unchanged);
        readiness.set_draining();
    }
    let (status, body) = json(port, "GET /crd-cache-status?unless=x").await;
    assert_eq!(status, 400, "{body}");
}

type Told = Arc<dyn Fn() -> Vec<Unreachable> + Send + Sync>;

/// A list that changes, and who tells it.
fn list() -> (Arc<Mutex<Vec<Unreachable>>>, Told) {
    let list = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&list);
    (list, Arc::new(move || told.lock().unwrap().clone()))
}

async fn the_operator_is_told_who_is_unreachable(port: u16, told: &Mutex<Vec<Unreachable>>) {
    told.lock().unwrap().push(Unreachable {
        namespace: "shop".into(),
        service: "web".into(),
        endpoint: ([192, 0, 2, 7], 8080).into(),
    });
    let web = json!([{"namespace": "shop", "service": "web", "endpoint": "192.0.2.7:8080"}]);
    for (query, has_list) in [("", true), ("?unless=7", false)] {
        let (_, body) = json(port, &format!("GET /crd-cache-status{query}")).await;
        assert_eq!(body["unreachable"], web, "{query}");
        assert_eq!(body["services"].is_array(), has_list, "{query}");
    }
    told.lock().unwrap().clear();
}

async fn the_operator_is_told_who_is_silent(port: u16) {
    let seen = |by: &str| json!({"seen": true, "port": 10240, "by": by});
    let unseen = json!({"seen": false});
    for (query, expected) in [
        ("peer=192.0.2.1:4000", seen("address")),
        (
            "peer=[::ffff:192.0.2.1]:4000&port_only=true",
            seen("address"),
        ),
        ("peer=192.0.2.2:4000", unseen.clone()),
        ("peer=192.0.2.2:4000&port_only=true", seen("port")),
        ("peer=192.0.2.1:4001&port_only=true", unseen),
    ] {
        let (status, body) = json(port, &format!("GET /silent-connections?{query}")).await;
        assert_eq!((status, body), (200, expected), "{query}");
    }
    for bad in ["", "peer=192.0.2.1", "peer=192.0.2.1:4000&port_only=yes"] {
        let (status, _) = json(port, &format!("GET /silent-connections?{bad}")).await;
        assert_eq!(status, 400, "{bad}");
    }
}

#[tokio::test]
async fn a_client_that_says_nothing_is_shown_out_and_others_are_served_meanwhile() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let state = AdminState {
        sibling: None,
        refresh: Arc::new(|| {}),
        metrics: Metrics::new(),
        readiness: Arc::default(),
        held: Arc::new(Vec::new),
        services: Arc::new(Vec::new),
        generation: Arc::new(|| 0),
        unreachable: Arc::new(Vec::new),
        usage: Arc::new(Vec::new),
        silent: Arc::new(|_| Vec::new()),
    };
    let server = tokio::spawn(admin::serve(listener, state, std::future::pending()));
    let mut silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    silent
        .write_all(b"GET /healthz HTTP/1.1\r\nx: ")
        .await
        .unwrap();
    assert_eq!(ask(port, "GET /healthz").await.0, 200);
    let mut rest = Vec::new();
    let end = timeout(PATIENCE, silent.read_to_end(&mut rest)).await;
    assert!(end.is_ok(), "the connection is still open");
    server.abort();
}
