//! Its HTTP paths, in both versions.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, StatusCode, Version};
use http_body::Frame;
use http_body_util::{Full, StreamBody};
use weir_lab::app::Settings;

use super::start;
use crate::client::{get, send, sha256};

const BOTH: [Version; 2] = [Version::HTTP_11, Version::HTTP_2];

#[tokio::test]
async fn echo_tells_all_that_it_was_sent() {
    let app = start(Settings {
        name: "pod-7".to_owned(),
        ..Settings::default()
    })
    .await;
    for version in BOTH {
        let request = Request::post("/echo/a%20b?x=1&x=2")
            .header("x-twice", "first")
            .header("x-twice", "second")
            .header("x-weir-request-id", "id-1")
            .body(Full::new(Bytes::from_static(b"hello")))
            .unwrap();
        let answer = send(app.http(), version, request).await.unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-weir-request-id"), "id-1");
        assert_eq!(answer.header("x-weir-sha256"), sha256(&answer.body));
        let told = answer.json();
        assert_eq!(told["method"], "POST");
        assert_eq!(told["path"], "/echo/a%20b");
        assert_eq!(told["query"], "x=1&x=2");
        assert_eq!(told["version"], format!("{version:?}"));
        assert_eq!(told["pod"], "pod-7");
        assert_eq!(told["body"]["bytes"], 5);
        assert_eq!(told["body"]["sha256"], sha256(b"hello"));
        let headers = told["headers"].as_array().unwrap();
        let twice: Vec<_> = headers.iter().filter(|h| h[0] == "x-twice").collect();
        assert_eq!(twice.len(), 2);
        assert_eq!(
            (&twice[0][1], &twice[1][1]),
            (&"first".into(), &"second".into())
        );
    }
}

#[tokio::test]
async fn a_body_of_a_mebibyte_is_mirrored_and_hashed_whole() {
    let app = start(Settings::default()).await;
    let body: Vec<u8> = (0..1_u32 << 18).flat_map(u32::to_le_bytes).collect();
    for version in BOTH {
        let request = |path: &str| Request::post(path).body(Full::from(body.clone())).unwrap();
        let mirrored = send(app.http(), version, request("/mirror")).await.unwrap();
        assert_eq!(mirrored.header("content-length"), "1048576");
        assert!(mirrored.body == body);

        let uploaded = send(app.http(), version, request("/upload")).await.unwrap();
        assert_eq!(uploaded.json()["bytes"], 1 << 20);
        assert_eq!(uploaded.json()["sha256"], sha256(&body));
    }
}

#[tokio::test]
async fn a_body_without_a_length_is_taken_as_well() {
    let app = start(Settings::default()).await;
    let pieces =
        (0..10).map(|n: u8| Ok::<_, std::io::Error>(Frame::data(Bytes::from(vec![n; 1000]))));
    let body = StreamBody::new(futures_util::stream::iter(pieces));
    let request = Request::post("/upload").body(body).unwrap();
    let answer = send(app.http(), Version::HTTP_11, request).await.unwrap();
    assert_eq!(answer.json()["bytes"], 10_000);
}

#[tokio::test]
async fn made_up_bytes_are_always_the_same_and_their_hash_is_told() {
    let app = start(Settings::default()).await;
    let at_once = get(app.http(), "/bytes/100000").await;
    assert_eq!(at_once.body.len(), 100_000);
    assert_eq!(at_once.header("x-weir-sha256"), sha256(&at_once.body));
    for version in BOTH {
        let request = Request::get("/chunked/100000").header("te", "trailers");
        let request = request.body(Full::<Bytes>::default()).unwrap();
        let in_chunks = send(app.http(), version, request).await.unwrap();
        assert!(!in_chunks.headers.contains_key("content-length"));
        assert!(in_chunks.pieces > 1);
        assert!(in_chunks.body == at_once.body);
        assert_eq!(
            in_chunks.trailers["x-weir-sha256"],
            sha256(&at_once.body).as_str()
        );
    }
    let dripped = get(app.http(), "/drip?bytes=100000&seconds=0.2").await;
    assert!(dripped.body == at_once.body);
}

#[tokio::test]
async fn what_is_to_take_its_time_does() {
    let app = start(Settings::default()).await;
    for (path, bytes) in [("/delay/0.2", 5), ("/drip?bytes=10&seconds=0.2", 10)] {
        let began = Instant::now();
        assert_eq!(get(app.http(), path).await.body.len(), bytes, "{path}");
        assert!(began.elapsed() >= Duration::from_millis(200), "{path}");
    }
    let events = get(app.http(), "/stream?events=3&seconds=0.01").await;
    assert_eq!(events.header("content-type"), "text/event-stream");
    assert_eq!(events.text().matches("event: tick\n").count(), 3);
}

#[tokio::test]
async fn statuses_are_as_asked_and_nonsense_is_refused() {
    let app = start(Settings::default()).await;
    for status in [200, 204, 404, 503] {
        let answer = get(app.http(), &format!("/status/{status}")).await;
        assert_eq!(answer.status, status);
    }
    for path in [
        "/status/100",
        "/status/x",
        "/bytes/-1",
        "/bytes/99999999999",
        "/delay/1e9",
        "/ws",
    ] {
        assert_eq!(get(app.http(), path).await.status, 400, "{path}");
    }
    let unknown = get(app.http(), "/nothing").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert!(unknown.text().contains("/echo"), "it says what there is");
}

#[tokio::test]
async fn it_counts_what_it_saw() {
    let app = start(Settings::default()).await;
    for id in ["a", "b", "a"] {
        let request = Request::get("/status/503").header("x-weir-request-id", id);
        let request = request.body(Full::<Bytes>::default()).unwrap();
        send(app.http(), Version::HTTP_11, request).await.unwrap();
    }
    let text = get(app.http(), "/metrics").await.text();
    for line in [
        "lab_requests_total{path=\"status\",status=\"503\"} 3\n",
        "lab_request_ids_distinct 2\n",
        "lab_request_ids_repeated_total 1\n",
        "lab_connections_total 4\n",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
}
