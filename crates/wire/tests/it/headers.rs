//! Heads as endpoints see them: what passes, what is added, what ends here.

use serde_json::Value;

use crate::{
    bed::{Bed, app, in_time},
    client::{Answer, Client},
    endpoint::{Recorder, Seen},
};

async fn ask(client: &mut Client, head: &str) -> Answer {
    client.send(head.replace('\n', "\r\n")).await;
    client.answer().await
}

/// The header as `/echo` tells it; several values are a panic.
fn told<'a>(echo: &'a Value, name: &str) -> Option<&'a str> {
    let headers = echo["headers"].as_array().unwrap().iter();
    let mut values = headers.filter(|header| header[0] == name);
    let value = values.next().map(|header| header[1].as_str().unwrap());
    assert!(values.next().is_none(), "{name} is there twice");
    value
}

async fn seen_by_endpoint(head: &str) -> Seen {
    let recorder = Recorder::start().await;
    let bed = Bed::leading_to(recorder.endpoint.address);
    let mut client = bed.main.client().await;
    assert_eq!(ask(&mut client, head).await.status, 200, "{head}");
    let mut seen = recorder.seen();
    assert_eq!(seen.len(), 1);
    seen.remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forwarding_headers_are_added_and_hop_by_hop_ones_end_here() {
    let seen = seen_by_endpoint(
        "GET /a?b=c HTTP/1.1\nHost: Shop.Example:8080\nX-Mine: 1\nCookie: a=b\nx-forwarded-for: 192.0.2.1\n\
         Connection: keep-alive, X-Hop\nConnection: X-Hop-Too\nX-Hop: 1\nX-Hop-Too: 1\nKeep-Alive: timeout=5\n\
         Proxy-Connection: keep-alive\nProxy-Authorization: secret\nTE: gzip, trailers\nVia: 1.0 before\n\n",
    )
    .await;
    assert_eq!((&*seen.method, &*seen.path), ("GET", "/a?b=c"));
    for (name, value) in [
        ("host", Some("Shop.Example:8080")),
        ("x-forwarded-host", Some("Shop.Example:8080")),
        ("x-forwarded-for", Some("192.0.2.1, 127.0.0.1")),
        ("x-forwarded-proto", Some("http")),
        ("via", Some("1.0 before, 1.1 main.weir")),
        ("x-mine", Some("1")),
        ("cookie", Some("a=b")),
        ("te", Some("trailers")),
        ("connection", None),
        ("keep-alive", None),
        ("proxy-connection", None),
        ("proxy-authorization", None),
        ("x-hop", None),
        ("x-hop-too", None),
    ] {
        assert_eq!(seen.header(name), value, "{name}");
    }
    let seen = seen_by_endpoint("GET / HTTP/1.1\nHost: a\nX-Forwarded-Proto: https\n\n").await;
    assert_eq!(seen.header("x-forwarded-proto"), Some("https"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_is_needed_can_be_named_away() {
    let seen = seen_by_endpoint(
        "POST / HTTP/1.1\nHost: a\nContent-Length: 2\nX-Forwarded-For: 10.0.0.1\n\
         Connection: host, content-length, x-forwarded-for, x-forwarded-host, via, te\n\nok",
    )
    .await;
    assert_eq!(seen.header("host"), Some("a"));
    assert_eq!(seen.header("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(seen.header("x-forwarded-host"), Some("a"));
    assert_eq!(seen.header("via"), Some("1.1 main.weir"));
    assert_eq!(seen.body, b"ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn absolute_addresses_lead_to_the_same_backend() {
    let seen = seen_by_endpoint("GET http://other.example:81/a?b HTTP/1.1\nHost: a\n\n").await;
    assert_eq!(seen.path, "/a?b");
    assert_eq!(seen.header("host"), Some("other.example:81"));
    assert_eq!(seen.header("x-forwarded-host"), Some("other.example:81"));
    let seen = seen_by_endpoint("GET http://name:word@other.example/ HTTP/1.1\nHost: a\n\n").await;
    assert_eq!(
        seen.header("host"),
        Some("other.example"),
        "who logs in is no part of it"
    );
    let seen = seen_by_endpoint("OPTIONS http://other.example HTTP/1.1\nHost: a\n\n").await;
    assert!(["*", "/"].contains(&&*seen.path), "{}", seen.path);
    let seen = seen_by_endpoint("OPTIONS * HTTP/1.1\nHost: a\n\n").await;
    assert_eq!(seen.path, "*");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_connected_to_anywhere() {
    let recorder = Recorder::start().await;
    let bed = Bed::leading_to(recorder.endpoint.address);
    let address = recorder.endpoint.address;
    let mut client = bed.main.client().await;
    let answer = ask(
        &mut client,
        &format!("CONNECT {address} HTTP/1.1\nHost: {address}\n\n"),
    )
    .await;
    assert_eq!(answer.status, 405);
    assert_eq!(answer.reason(), "connect_not_allowed");
    // And not by HTTP/2 either.
    let stream = bed.main.client().await.stream;
    let (mut send, connection) = h2::client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    let request = http::Request::connect(address.to_string())
        .body(())
        .unwrap();
    let (answer, _) = send.send_request(request, false).unwrap();
    assert_eq!(in_time("an answer", answer).await.unwrap().status(), 405);
    driver.abort();
    assert_eq!(recorder.endpoint.connections(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_clients_are_served() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let mut client = bed.main.client().await;
    let answer = ask(&mut client, "GET /echo HTTP/1.0\n\n").await;
    let echo = answer.json();
    assert_eq!(echo["version"], "HTTP/1.1");
    assert_eq!(told(&echo, "host"), Some("main.default"));
    assert_eq!(told(&echo, "x-forwarded-host"), None);
    client.closed().await;
    let mut client = bed.main.client().await;
    for _ in 0..2 {
        let answer = ask(
            &mut client,
            "GET /bytes/10 HTTP/1.0\nConnection: keep-alive\n\n",
        )
        .await;
        assert_eq!(answer.body.len(), 10);
    }
    // They do not know chunks: the end is the end of the connection.
    let answer = ask(
        &mut client,
        "GET /chunked/1000 HTTP/1.0\nConnection: keep-alive\n\n",
    )
    .await;
    assert_eq!(answer.header("transfer-encoding"), None);
    assert_eq!(answer.body.len(), 1000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wish_for_http2_is_passed_over() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let mut client = bed.main.client().await;
    let answer = ask(
        &mut client,
        "GET /echo HTTP/1.1\nHost: a\nConnection: upgrade, http2-settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABk\n\n",
    )
    .await;
    assert_eq!(answer.status, 200);
    let echo = answer.json();
    assert_eq!(echo["version"], "HTTP/1.1");
    assert_eq!(told(&echo, "upgrade"), None);
    assert_eq!(told(&echo, "http2-settings"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_keeps_its_authority() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let stream = bed.main.client().await.stream;
    let (mut send, connection) = h2::client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    let request = http::Request::get("http://Shop.Example:8080/echo?a=b");
    let request = request.header("te", "trailers").body(()).unwrap();
    let (answer, _) = send.send_request(request, true).unwrap();
    let mut body = in_time("an answer", answer).await.unwrap().into_body();
    let mut text = Vec::new();
    while let Some(data) = in_time("its body", body.data()).await {
        text.extend(data.unwrap());
    }
    driver.abort();
    let echo: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(echo["version"], "HTTP/2.0");
    assert_eq!(echo["authority"], "Shop.Example:8080");
    assert_eq!(told(&echo, "x-forwarded-host"), Some("Shop.Example:8080"));
    assert_eq!(told(&echo, "x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(told(&echo, "te"), Some("trailers"));
    assert_eq!(told(&echo, "via"), Some("1.1 main.weir"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_for_two_hosts_is_for_none() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let mut client = bed.main.client().await;
    let answer = ask(&mut client, "GET / HTTP/1.1\nHost: a\nHost: a\n\n").await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.reason(), "several_hosts");
    client.closed().await;

    let stream = bed.main.client().await.stream;
    let (mut send, connection) = h2::client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    // On one connection, which goes on: others may share it.
    for (host, status) in [("b.example", 400), ("A.example", 200)] {
        let request = http::Request::get("http://a.example/echo").header("host", host);
        let (answer, _) = send.send_request(request.body(()).unwrap(), true).unwrap();
        assert_eq!(
            in_time("an answer", answer).await.unwrap().status(),
            status,
            "{host}"
        );
    }
    driver.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_http2_cannot_say_is_the_clients_fault_and_not_the_endpoints() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let stream = bed.main.client().await.stream;
    let (mut send, connection) = h2::client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    for (host, status) in [("http://a.example/", 400), ("a.example", 200)] {
        // Without `:authority`, which the client makes of an address in HTTP/2 alone.
        let request = http::Request::get("/echo").version(http::Version::HTTP_11);
        let request = request.header("host", host).body(()).unwrap();
        let (answer, _) = send.send_request(request, true).unwrap();
        let answer = in_time("an answer", answer).await.unwrap();
        assert_eq!(answer.status(), status, "{host}");
    }
    driver.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strange_hosts_lead_to_the_same_backend_as_they_are() {
    for host in [
        "",
        "a.example:99999",
        "169.254.169.254",
        "[::1]:80",
        "../..",
        "a@b",
        "ä",
    ] {
        let seen = seen_by_endpoint(&format!("GET / HTTP/1.1\nHost: {host}\n\n")).await;
        assert_eq!(seen.header("host"), Some(host));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_is_found() {
    let bed = Bed::new();
    // It leads to itself.
    bed.main.backend.set_endpoints(&[bed.main.address()]);
    let mut client = bed.main.client().await;
    client.get("/").await;
    let answer = client.answer().await;
    assert_eq!(answer.status, 508);
    assert_eq!(answer.reason(), "loop");
}
