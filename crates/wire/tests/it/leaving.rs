//! Leaving in order: what is under way is served, what is idle is closed, what never ends is cut at the limit.

use std::{sync::Arc, time::Duration};

use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};
use weir_wire::life::{Open, Stage};

use crate::{
    bed::{Bed, NEVER, Note, Way, app, in_time},
    endpoint::Endpoint,
};

const AT_ONCE: Duration = Duration::ZERO;
/// For what must be done before the time is up, on a machine that stalls; the test waits for its end.
const LONG_ENOUGH: Duration = Duration::from_secs(6);

pub(crate) async fn websocket(way: &Way) -> WebSocketStream<tokio::net::TcpStream> {
    let stream = way.client().await.stream;
    let url = format!("ws://{}/ws", way.address());
    let (socket, _) = in_time("a WebSocket", client_async(url, stream))
        .await
        .unwrap();
    socket
}

async fn is_echoed(socket: &mut WebSocketStream<tokio::net::TcpStream>) {
    socket.send(Message::text("there?")).await.unwrap();
    let message = in_time("an echo", socket.next()).await.unwrap().unwrap();
    assert_eq!(message.into_text().unwrap(), "there?");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_nothing_open_it_is_done() {
    let bed = Bed::new();
    in_time("it leaves", bed.wire.leave(AT_ONCE, NEVER)).await;
    assert!(bed.wire.ports().is_empty());
    assert_eq!(bed.wire.life().stage(), Stage::Closing);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_is_served_and_what_still_comes_is_taken() {
    let app = app().await;
    let bed = Bed::new();
    let mut held = bed.main.client().await;
    held.get("/bytes/1").await;
    bed.main.waiting(1).await;
    let wire = Arc::clone(&bed.wire);
    let leaving = tokio::spawn(async move { wire.leave(LONG_ENOUGH, NEVER).await });
    in_time("leaving", bed.wire.life().reaches(Stage::Leaving)).await;
    let mut late = bed.main.client().await;
    late.get("/bytes/2").await;
    bed.main.waiting(2).await;
    in_time("closing", bed.wire.life().reaches(Stage::Closing)).await;
    assert!(bed.wire.ports().is_empty());
    assert_eq!(bed.main.backend.line_state().waiting, 2);
    bed.main.backend.set_endpoints(&[app.http()]);
    for (client, length) in [(&mut held, 1), (&mut late, 2)] {
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.body.len()), (200, length));
        assert_eq!(answer.header("connection"), Some("close"));
        client.closed().await;
    }
    in_time("it leaves", leaving).await.unwrap();
    bed.open(Open::Connection, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_are_closed_and_busy_ones_are_not() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let mut silent = bed.main.client().await;
    let mut idle = bed.main.client().await;
    idle.get("/bytes/1").await;
    assert_eq!(idle.answer().await.header("connection"), None);
    let stream = bed.main.client().await.stream;
    let (_send, http2) = h2::client::handshake(stream).await.unwrap();
    let http2 = tokio::spawn(http2);
    let mut busy = bed.main.client().await;
    // It is answered when all of it is there, which is for us to say.
    busy.send("POST /mirror HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n")
        .await;
    busy.send([b'x'; 50]).await;
    bed.open(Open::Request, 1).await;
    let wire = Arc::clone(&bed.wire);
    let leaving = tokio::spawn(async move { wire.leave(AT_ONCE, NEVER).await });
    silent.closed().await;
    idle.closed().await;
    in_time("GOAWAY", http2).await.unwrap().unwrap();
    busy.send([b'x'; 50]).await;
    assert_eq!(busy.answer().await.body.len(), 100);
    busy.closed().await;
    in_time("it leaves", leaving).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tunnels_are_counted_and_cut_at_the_limit() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let mut sockets = Vec::new();
    for _ in 0..3 {
        sockets.push(websocket(&bed.main).await);
    }
    bed.open(Open::Tunnel, 3).await;
    let mut gone = sockets.pop().unwrap();
    gone.close(None).await.unwrap();
    while let Some(Ok(_)) = in_time("good-bye", gone.next()).await {}
    bed.open(Open::Tunnel, 2).await;

    let wire = Arc::clone(&bed.wire);
    let leaving = tokio::spawn(async move { wire.leave(AT_ONCE, LONG_ENOUGH).await });
    in_time("closing", bed.wire.life().reaches(Stage::Closing)).await;
    for socket in &mut sockets {
        is_echoed(socket).await;
    }
    assert!(!leaving.is_finished(), "they are open");
    in_time("it leaves", leaving).await.unwrap();
    bed.open(Open::Tunnel, 0).await;
    for socket in &mut sockets {
        let end = in_time("it is cut", socket.next()).await;
        assert!(!matches!(end, Some(Ok(_))), "{end:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_limit_what_waits_is_refused_and_what_is_stuck_is_cut() {
    let silent = Endpoint::silent().await;
    let bed = Bed::new();
    let mut held = bed.main.client().await;
    held.get("/").await;
    bed.main.waiting(1).await;
    let other = bed.add("other", 1);
    other.backend.set_endpoints(&[silent.address]);
    let mut stuck = other.client().await;
    stuck.get("/").await;
    bed.open(Open::Request, 2).await;
    in_time(
        "it leaves",
        bed.wire.leave(AT_ONCE, Duration::from_millis(500)),
    )
    .await;
    assert_eq!(bed.wire.life().stage(), Stage::Refusing);
    let answer = held.answer().await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.reason(), "leaving");
    assert!(answer.header("retry-after").is_some());
    held.closed().await;
    bed.main.notes.has(&Note::Refused("leaving"), 1).await;
    stuck.closed().await;
    bed.open(Open::Connection, 0).await;
}
