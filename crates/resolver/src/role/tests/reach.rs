//! A ready pod to which no connection goes through, as the operator is told of it.

use tokio::task::JoinSet;
use weir_lab::deaf::Deaf;

use super::*;
use crate::reach::UNREACHABLE_AFTER;

/// Asks until this is what is said of it, with and without the list of services.
async fn told(resolver: &Running, expected: &Value) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let whole = resolver.ask("/crd-cache-status").await;
        let path = format!("/crd-cache-status?unless={}", whole["generation"]);
        let answers = [whole, resolver.ask(&path).await];
        if answers.iter().all(|it| it["unreachable"] == *expected) {
            assert_eq!(answers[1]["unchanged"], true);
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{answers:?} do not say {expected}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn serve(deaf: Deaf) -> JoinSet<()> {
    let listener = deaf.hear();
    let mut server = JoinSet::new();
    server.spawn(async move { while listener.accept().await.is_ok() {} });
    server
}

/// Also when nobody asks for it any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_cannot_be_reached_is_told_of_until_it_can() {
    let mut resolver = Running::start().await;
    let deaf = Deaf::start().await.unwrap();
    let port = free_port();
    let ports = [("http", Some(port), Protocol::Http1)];
    resolver.apply(web(&ports, &[deaf.address]));
    told(&resolver, &Value::Null).await;

    let began = Instant::now();
    let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    client.write_all(request).await.unwrap();
    let one = json!([{
        "namespace": "shop",
        "service": "web",
        "endpoint": deaf.address.to_string(),
    }]);
    told(&resolver, &one).await;
    assert!(began.elapsed() >= UNREACHABLE_AFTER, "not at once");
    drop(client);

    let _server = serve(deaf);
    told(&resolver, &Value::Null).await;
    resolver.parts.stop.send(true).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_its_pod_goes_what_is_told_of_it() {
    let mut resolver = Running::start().await;
    let deaf = Deaf::start().await.unwrap();
    let port = free_port();
    let ports = [("http", Some(port), Protocol::Http1)];
    resolver.apply(web(&ports, &[deaf.address]));
    let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    client.write_all(request).await.unwrap();
    let silent = || resolver.parts.table.silent().len();
    let deadline = Instant::now() + PATIENCE;
    while silent() == 0 {
        assert!(Instant::now() < deadline, "nobody is silent");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    resolver.apply(web(&ports, &[]));
    assert_eq!(resolver.parts.table.silent().len(), 0);
    told(&resolver, &Value::Null).await;
    resolver.parts.stop.send(true).unwrap();
}
