//! Endpoints that take connections and say nothing, and clients that do.

use std::{net::SocketAddr, time::Duration};

use tokio::{io::AsyncReadExt, sync::mpsc};
use weir_wire::{client::Silent, life::Open};

use crate::{
    bed::{Bed, app, in_time, is_so},
    endpoint::{Endpoint, Recorder},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_endpoint_holds_up_nobody_else_and_its_client_can_leave() {
    let (ended, mut ends) = mpsc::channel(1);
    let endpoint = Endpoint::start(move |mut stream, _| {
        let ended = ended.clone();
        async move {
            let mut sink = Vec::new();
            let _ = stream.read_to_end(&mut sink).await;
            ended.send(()).await.unwrap();
        }
    })
    .await;
    let app = app().await;
    let bed = Bed::leading_to(endpoint.address);
    let other = bed.add("other", 1);
    other.backend.set_endpoints(&[app.http()]);
    for head in [
        "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n12345",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 500\r\n\r\n12345",
    ] {
        let mut client = bed.main.client().await;
        client.send(head).await;
        bed.open(Open::Request, 1).await;
        let mut beside = other.client().await;
        for _ in 0..20 {
            beside.get("/bytes/10").await;
            assert_eq!(beside.answer().await.body.len(), 10);
        }
        drop(beside);
        drop(client);
        in_time("the endpoint is left as well", ends.recv()).await;
        bed.open(Open::Request, 0).await;
        bed.open(Open::Connection, 0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_endpoint_is_sent_all_that_wait_not_only_the_first_few() {
    let endpoint = Endpoint::silent().await;
    let bed = Bed::new();
    let mut clients = Vec::new();
    for _ in 0..80 {
        let mut client = bed.main.client().await;
        client.get("/").await;
        clients.push(client);
    }
    bed.main.waiting(80).await;
    bed.main.backend.set_endpoints(&[endpoint.address]);
    is_so("it has all", || match endpoint.connections() {
        80 => Ok(()),
        other => Err(other),
    })
    .await;
    assert_eq!(bed.main.backend.line_state().waiting, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_say_nothing_or_only_half_of_it_are_closed() {
    let bed = Bed::planned(|plan| {
        plan.settings.patience.head = Duration::from_millis(500);
        plan.settings.patience.silent = Duration::from_millis(500);
    });
    let recorder = Recorder::start().await;
    bed.main.backend.set_endpoints(&[recorder.endpoint.address]);
    for said in [
        "",
        "P",
        "GET / HTTP/1.1\r\nhost:",
        "PRI * HTTP/2.0\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut client = bed.main.client().await;
        client.send(said).await;
        in_time(said, client.rest()).await;
    }
    bed.open(Open::Connection, 0).await;
    assert_eq!(recorder.seen().len(), 0);

    // One that was answered. It may take its time to ask.
    let bed = Bed::planned(|plan| plan.settings.patience.idle = Duration::from_millis(500));
    bed.main.backend.set_endpoints(&[recorder.endpoint.address]);
    let mut idle = bed.main.client().await;
    idle.get("/").await;
    assert_eq!(idle.answer().await.status, 200);
    idle.closed().await;
    bed.open(Open::Connection, 0).await;
    assert_eq!(recorder.seen().len(), 1);
}

/// Waits until this address is reported as silent, or is not.
async fn silent(bed: &Bed, peer: SocketAddr, expected: bool) -> Option<Silent> {
    let find = || {
        let mut silent = bed.wire.silent(peer.port()).into_iter();
        silent.find(|one| one.peer == peer)
    };
    is_so(&format!("{peer} is silent: {expected}"), || {
        match find().is_some() {
            is if is == expected => Ok(()),
            is => Err(is),
        }
    })
    .await;
    find()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_has_said_nothing_is_reported_until_it_does_or_goes() {
    let bed = Bed::new();
    let other = bed.add("other", 1);
    for (way, first_words) in [
        (&bed.main, "G"),
        (&bed.main, "GET / HTTP/1.1\r\nhost: a\r\n\r\n"),
        (&other, "PRI * HTTP/2.0\r\n"),
        (&other, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ] {
        let mut client = way.client().await;
        let peer = client.stream.local_addr().unwrap();
        let found = silent(&bed, peer, true).await.unwrap();
        assert_eq!((found.peer, found.port), (peer, way.port));
        assert!(bed.wire.silent(peer.port() ^ 1).is_empty());
        client.send(first_words).await;
        silent(&bed, peer, false).await;
        drop(client);

        let client = way.client().await;
        let peer = client.stream.local_addr().unwrap();
        silent(&bed, peer, true).await;
        drop(client);
        silent(&bed, peer, false).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_was_answered_is_not_silent_between_two_requests() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let mut client = bed.main.client().await;
    let peer = client.stream.local_addr().unwrap();
    client.get("/bytes/10").await;
    assert_eq!(client.answer().await.status, 200);
    bed.open(Open::Request, 0).await;
    bed.open(Open::Connection, 1).await;
    assert_eq!(bed.wire.silent(peer.port()), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_client_wakes_nobody_and_is_let_go_in_time() {
    let bed = Bed::planned(|plan| plan.settings.patience.silent = Duration::from_millis(500));
    let mut client = bed.main.client().await;
    let peer = client.stream.local_addr().unwrap();
    silent(&bed, peer, true).await;
    assert!(in_time("closed", client.rest()).await.is_empty());
    silent(&bed, peer, false).await;
    bed.open(Open::Connection, 0).await;
    assert_eq!(bed.main.notes.all(), [], "nobody was told of it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_http2_client_that_only_pings_is_idle_not_slow() {
    let bed = Bed::planned(|plan| plan.settings.patience.head = Duration::from_secs(1));
    let app = app().await;
    bed.main.backend.set_endpoints(&[app.http()]);
    let stream = bed.main.client().await.stream;
    let (mut send, mut connection) = h2::client::handshake(stream).await.unwrap();
    let mut ping = connection.ping_pong().unwrap();
    let driver = tokio::spawn(connection);
    let request = || {
        let request = http::Request::get("http://a.example/bytes/10");
        request.body(()).unwrap()
    };
    let (answer, _) = send.send_request(request(), true).unwrap();
    let mut body = in_time("an answer", answer).await.unwrap().into_body();
    while body.data().await.is_some() {}
    in_time("a pong", ping.ping(h2::Ping::opaque()))
        .await
        .unwrap();
    // One look a second is taken at who is slow: three seconds later it has seen this one.
    let ends = tokio::time::timeout(Duration::from_millis(3500), driver);
    assert!(ends.await.is_err(), "it was closed");
    let (answer, _) = send.send_request(request(), true).unwrap();
    assert_eq!(in_time("an answer", answer).await.unwrap().status(), 200);
}
