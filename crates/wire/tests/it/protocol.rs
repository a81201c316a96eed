//! Parts of HTTP that are more than a request and an answer.

use futures_util::{SinkExt, StreamExt};
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::{client_async, tungstenite::Message};
use weir_wire::life::Open;

use crate::{
    bed::{Bed, app, in_time},
    endpoint::{Endpoint, Recorder, read_request},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_is_passed_on_before_there_is_more() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let mut client = bed.main.client().await;
    client.get("/stream?events=2&seconds=3000").await;
    let head = in_time("a head", client.head()).await.unwrap();
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    let event = in_time("an event", client.exactly(20)).await;
    assert!(String::from_utf8_lossy(&event).contains("id: 0"));

    // And in the other direction, while the answer is under way.
    let mut client = bed.main.client().await;
    client
        .send("POST /mirror HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        .await;
    assert_eq!(in_time("a head", client.head()).await.unwrap().status, 200);
    for word in ["one", "two", "six"] {
        client.send(format!("3\r\n{word}\r\n")).await;
        let echo = in_time("an echo", client.exactly(8)).await;
        assert_eq!(String::from_utf8_lossy(&echo), format!("3\r\n{word}\r\n"));
    }
    client.send("0\r\n\r\n").await;
    assert_eq!(in_time("the end", client.exactly(5)).await, b"0\r\n\r\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_requests_are_answered_in_order() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let mut client = bed.main.client().await;
    let requests = ["/delay/0.2", "/bytes/1", "/status/404", "/bytes/3"]
        .map(|path| format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n"));
    client.send(requests.concat()).await;
    assert_eq!(client.answer().await.body, b"late\n");
    assert_eq!(client.answer().await.body.len(), 1);
    assert_eq!(client.answer().await.status, 404);
    assert_eq!(client.answer().await.body.len(), 3);
}

/// An answer must not wait for more of what has come already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_after_a_request_does_not_delay_its_answer() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    for more in ["\r\n", "GET /bytes/2 HTTP/1.1\r\nhost:"] {
        let mut client = bed.main.client().await;
        client
            .send(format!("GET /bytes/1 HTTP/1.1\r\nhost: a\r\n\r\n{more}"))
            .await;
        assert_eq!(client.answer().await.body.len(), 1);
    }
    // Nor be lost when it is the last one.
    for close in [false, true] {
        bed.main.backend.set_switched(!close);
        let close = if close { "connection: close\r\n" } else { "" };
        let mut client = bed.main.client().await;
        let next = "GET /bytes/2 HTTP/1.1\r\nhost: a\r\n\r\n";
        client
            .send(format!(
                "GET /bytes/1 HTTP/1.1\r\nhost: a\r\n{close}\r\n{next}"
            ))
            .await;
        let answer = client.answer().await;
        assert_eq!(answer.body.len(), 1);
        assert_eq!(answer.header("connection"), Some("close"));
        client.closed().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trailers_of_a_request_arrive_held_or_not() {
    for is_held in [false, true] {
        let recorder = Recorder::start().await;
        let bed = Bed::new();
        if !is_held {
            bed.main.backend.set_endpoints(&[recorder.endpoint.address]);
        }
        let mut client = bed.main.client().await;
        client
            .send(
                "POST / HTTP/1.1\r\nhost: a\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n\
                 5\r\n12345\r\n0\r\nx-sum: 15\r\n\r\n",
            )
            .await;
        if is_held {
            bed.main.waiting(1).await;
            bed.main.backend.set_endpoints(&[recorder.endpoint.address]);
        }
        assert_eq!(client.answer().await.status, 200);
        let seen = recorder.seen();
        assert_eq!(seen[0].body, b"12345");
        assert_eq!(
            seen[0].header("trailer x-sum"),
            Some("15"),
            "held: {is_held}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expectation_is_met_here_and_not_passed_on() {
    for is_held in [false, true] {
        let recorder = Recorder::start().await;
        let bed = Bed::new();
        if !is_held {
            bed.main.backend.set_endpoints(&[recorder.endpoint.address]);
        }
        let mut client = bed.main.client().await;
        client
            .send("POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n")
            .await;
        let head = in_time("100", client.head()).await.unwrap();
        assert_eq!(head.status, 100);
        client.send("12345").await;
        if is_held {
            bed.main.waiting(1).await;
            bed.main.backend.set_endpoints(&[recorder.endpoint.address]);
        }
        assert_eq!(client.answer().await.status, 200);
        let seen = recorder.seen();
        assert_eq!(seen[0].header("expect"), None);
        assert_eq!(seen[0].body, b"12345");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_is_all_there_is_to_head() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let mut client = bed.main.client().await;
    for _ in 0..2 {
        client
            .send("HEAD /bytes/100 HTTP/1.1\r\nhost: a\r\n\r\n")
            .await;
        let answer = client.answer_to_head().await;
        assert_eq!(answer.header("content-length"), Some("100"));
    }
    client.get("/bytes/5").await;
    assert_eq!(
        client.answer().await.body.len(),
        5,
        "nothing is left of the others"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_may_be_refused() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let mut client = bed.main.client().await;
    client
        .send(
            "GET /bytes/7 HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        )
        .await;
    assert_eq!(client.answer().await.body.len(), 7);
    client.get("/bytes/8").await;
    assert_eq!(client.answer().await.body.len(), 8);
    assert_eq!(bed.wire.life().count(Open::Tunnel), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_nobody_asked_for_is_no_way_around_http() {
    let endpoint = Endpoint::start(|mut stream, _| async move {
        let _ = read_request(&mut stream, &mut Vec::new()).await;
        let answer =
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nhello";
        stream.write_all(answer).await.unwrap();
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    })
    .await;
    let bed = Bed::leading_to(endpoint.address);
    let mut client = bed.main.client().await;
    client.get("/").await;
    let answer = client.try_answer(true).await;
    assert!(answer.is_none_or(|answer| answer.status >= 500));
    assert_eq!(bed.wire.life().count(Open::Tunnel), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tunnel_ends_when_either_side_does() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let open = || async {
        let stream = bed.main.client().await.stream;
        let url = format!("ws://{}/ws", bed.main.address());
        let (mut socket, _) = in_time("a WebSocket", client_async(url, stream))
            .await
            .unwrap();
        socket.send(Message::text("x")).await.unwrap();
        in_time("an echo", socket.next()).await.unwrap().unwrap();
        socket
    };
    let socket = open().await;
    bed.open(Open::Tunnel, 1).await;
    drop(socket);
    bed.open(Open::Tunnel, 0).await;
    let mut socket = open().await;
    bed.open(Open::Tunnel, 1).await;
    app.crash().await;
    // Perhaps after some last words.
    while let Some(Ok(_)) = in_time("the end", socket.next()).await {}
    bed.open(Open::Tunnel, 0).await;
}
