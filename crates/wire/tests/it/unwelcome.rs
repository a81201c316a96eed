//! Clients whose address is not served: what they are told, and that nothing of them is held and nobody woken.

use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::net::{TcpSocket, TcpStream};
use weir_wire::{
    life::Open,
    sniff::{self, Spoken},
};

use crate::{
    bed::{Bed, UNWELCOME, Way, app, in_time, is_so},
    client::Client,
};

async fn connect(way: &Way) -> Client {
    let stream = try_connect(way).await.unwrap();
    stream.set_nodelay(true).unwrap();
    Client::from(stream)
}

async fn try_connect(way: &Way) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(UNWELCOME, 0))?;
    in_time("a connection", socket.connect(way.address())).await
}

/// Nothing was held of it, and nobody was told.
async fn is_over(bed: &Bed, turned_away: usize) {
    bed.open(Open::Connection, 0).await;
    bed.holds_nothing("what was turned away").await;
    assert_eq!(bed.main.notes.all(), [], "the backend was told of it");
    assert_eq!(bed.turned_away(), turned_away);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http_they_are_told_so_and_nothing_is_held_or_woken() {
    let bed = Bed::new();
    let requests = [
        "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 50000\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    ];
    let mut times = 0;
    for spoken in [Spoken::Http, Spoken::Unknown] {
        bed.speaks(&bed.main, spoken);
        for request in requests {
            let mut client = connect(&bed.main).await;
            client.send(request).await;
            let answer = client.answer().await;
            assert_eq!(answer.status, 403, "{request}");
            let body: Value = serde_json::from_slice(&answer.body).unwrap();
            assert_eq!(body["reason"], "source_not_allowed");
            client.closed().await;
            times += 1;
            is_over(&bed, times).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http2_they_are_told_so_and_asked_to_go() {
    let bed = Bed::new();
    let stream = connect(&bed.main).await.stream;
    let (mut send, connection) = h2::client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    let request = http::Request::post("http://a.example/a.B/C");
    let request = request.header("content-type", "application/grpc").body(());
    let (answer, _) = send.send_request(request.unwrap(), true).unwrap();
    let answer = in_time("an answer", answer).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["grpc-status"], "7");
    in_time("it is closed", driver).await.unwrap().unwrap();
    is_over(&bed, 1).await;
}

/// With their first word, where that is not HTTP; or after a silence that would wake a server which speaks first, or be
/// borne for a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_else_is_closed_and_wakes_nobody() {
    let bed = Bed::new();
    let mut times = 0;
    for (spoken, said) in [
        (Spoken::Tcp, &b"anything"[..]),
        (Spoken::Tcp, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"),
        (Spoken::Tls, &[22, 3, 1, 0, 200, 1]),
        (Spoken::Unknown, &[22, 3, 1, 0, 200, 1]),
        (Spoken::Unknown, b"\0\0\0\x08\x04\xd2\x16\x2f"),
        (Spoken::Tcp, b""),
        (Spoken::Unknown, b""),
        (Spoken::Tls, b""),
        (Spoken::Http, b""),
    ] {
        bed.speaks(&bed.main, spoken);
        let mut client = connect(&bed.main).await;
        client.send(said).await;
        let rest = in_time("it is closed", client.rest()).await;
        assert!(rest.is_empty(), "{spoken:?} {said:?}: {rest:?}");
        times += 1;
        is_over(&bed, times).await;
    }
}

/// As the operator's connection does, which looks whether the Service leads here: it may come from anywhere, and be silent
/// for longer than one that nobody asks for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_only_looks_is_seen_and_not_turned_away() {
    let bed = Bed::new();
    for spoken in [Spoken::Http, Spoken::Tls, Spoken::Tcp, Spoken::Unknown] {
        bed.speaks(&bed.main, spoken);
        let deadline = Instant::now() + crate::bed::PATIENCE;
        loop {
            assert!(Instant::now() < deadline, "this machine is too slow");
            let before = bed.turned_away();
            let client = connect(&bed.main).await;
            let born = Instant::now();
            let peer = client.stream.local_addr().unwrap();
            let is_seen = || {
                let seen = bed.wire.silent(peer.port());
                seen.iter()
                    .any(|one| one.peer == peer && one.port == bed.main.port)
            };
            while !is_seen() && born.elapsed() < sniff::PATIENCE {
                tokio::task::yield_now().await;
            }
            let was_asked = born.elapsed() < sniff::PATIENCE;
            tokio::time::sleep(Duration::from_millis(550)).await;
            let is_there = is_seen();
            let in_time = born.elapsed() < sniff::PATIENCE_WITH_PROBES;
            drop(client);
            bed.open(Open::Connection, 0).await;
            // On a machine that is too slow it says nothing.
            if was_asked && in_time {
                assert!(is_there, "{spoken:?}");
                assert_eq!(bed.turned_away(), before, "{spoken:?}");
                break;
            }
        }
        assert_eq!(bed.main.notes.all(), []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_served_as_ever_meanwhile() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let mut many = Vec::new();
    for _ in 0..300 {
        // Of so many some are reset at once.
        many.push(try_connect(&bed.main).await);
    }
    let mut client = bed.main.client().await;
    client.get("/bytes/10").await;
    assert_eq!(client.answer().await.body.len(), 10);
    is_so("all are turned away", || match bed.turned_away() {
        300 => Ok(()),
        other => Err(other),
    })
    .await;
    client.get("/bytes/10").await;
    assert_eq!(client.answer().await.body.len(), 10);
}
