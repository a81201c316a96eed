//! Services that stay behind resolvers while they are awake: what the operator is told of their use, and that nobody is
//! asked to move on.

use tokio::sync::Notify;
use weir_api::hold::ProbeResponse;

use super::*;
use crate::probe::ProbeRules;

/// Answers every request with nothing.
async fn endpoint() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                while head(&mut stream).await.is_some() {
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    if stream.write_all(answer).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    address
}

/// A head of either side; none when the other is gone.
async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

/// What is answered on the shared port, by its head.
async fn get(resolver: &Running, path: &str) -> String {
    let port = resolver.parts.guide.shared_port();
    let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: web.shop\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let answer = timeout(PATIENCE, head(&mut client)).await;
    answer.expect("an answer in time").expect("an answer")
}

/// It is awake, and its Service leads to the pods alone.
fn awake(endpoint: SocketAddr, behind: bool) -> Change {
    let Change::Set(view) = web(&[("", None, Protocol::Http1)], &[endpoint]) else {
        unreachable!("a service is there")
    };
    let rule: ProbeResponse = serde_json::from_value(json!({
        "path": {"value": "/healthz"}, "response": {"status": 200, "body": "asleep"},
    }))
    .unwrap();
    let (probes, problems) = ProbeRules::compile(&[rule]);
    assert!(problems.is_empty(), "{problems:?}");
    Change::Set(Arc::new(ServiceView {
        probes: Arc::new(probes),
        behind,
        switched: true,
        ..ServiceView::clone(&view)
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_use_of_a_service_is_told_and_its_clients_stay() {
    let endpoint = endpoint().await;
    let mut resolver = Running::start().await;
    resolver.apply(awake(endpoint, true));
    let told = async || {
        let usage = resolver.ask("/usage").await;
        assert_eq!(usage.as_array().map(Vec::len), Some(1), "{usage}");
        let one = usage[0].clone();
        assert_eq!(
            (&one["namespace"], &one["service"]),
            (&json!("shop"), &json!("web"))
        );
        assert!(one["countedSeconds"].is_number(), "{one}");
        (
            one["open"].as_u64().unwrap(),
            one["endedSecondsAgo"].clone(),
        )
    };
    assert_eq!(told().await, (0, Value::Null));
    let answer = get(&resolver, "/healthz").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(told().await, (0, Value::Null), "a health check is no use");
    let answer = get(&resolver, "/").await;
    assert!(!answer.contains("close"), "{answer}");
    // It ends when the answer has been sent, which the client may see first.
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (open, ended) = told().await;
        if open == 0 && ended.is_number() {
            break;
        }
        assert!(Instant::now() < deadline, "{open} {ended}");
    }
    let _ = resolver.parts.stop.send(true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_others_nothing_is_told_and_their_clients_move_on() {
    let endpoint = endpoint().await;
    let mut resolver = Running::start().await;
    resolver.apply(awake(endpoint, true));
    resolver.apply(awake(endpoint, false));
    let answer = get(&resolver, "/").await;
    assert!(answer.contains("connection: close"), "{answer}");
    assert_eq!(resolver.ask("/usage").await, json!([]));
    let _ = resolver.parts.stop.send(true);
}

/// Takes requests and never answers. Says when there is one.
async fn silent_endpoint() -> (SocketAddr, Arc<Notify>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let taken = Arc::new(Notify::new());
    let took = Arc::clone(&taken);
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.push(stream);
            took.notify_one();
        }
    });
    (address, taken)
}

async fn open_comes_to_be(resolver: &Running, expected: u64) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let usage = resolver.ask("/usage").await;
        if usage[0]["open"].as_u64() == Some(expected) {
            return;
        }
        assert!(Instant::now() < deadline, "{expected} open: {usage}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_began_before_still_counts() {
    let (endpoint, taken) = silent_endpoint().await;
    let mut resolver = Running::start().await;
    resolver.apply(awake(endpoint, false));
    let port = resolver.parts.guide.shared_port();
    let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nhost: web.shop\r\n\r\n";
    client.write_all(request).await.unwrap();
    timeout(PATIENCE, taken.notified()).await.unwrap();
    resolver.apply(awake(endpoint, true));
    open_comes_to_be(&resolver, 1).await;

    resolver.apply(Change::Gone(ServiceId::new("shop", "web")));
    resolver.apply(awake(endpoint, true));
    open_comes_to_be(&resolver, 1).await;
    drop(client);
    open_comes_to_be(&resolver, 0).await;
    let _ = resolver.parts.stop.send(true);
}
