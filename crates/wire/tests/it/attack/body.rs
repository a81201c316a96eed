//! Bodies without an end, and answers that nobody reads: what is kept of them is bounded.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{io::AsyncWriteExt, task::JoinSet, time::timeout};
use weir_wire::{hold::Room, life::Open};

use super::{alone, resident};
use crate::{
    bed::{Bed, Note, app, in_time, is_so},
    client::Client,
    endpoint::{Endpoint, read_request},
};

const CLIENTS: usize = 100;
/// What takes nothing for so long takes no more. A machine that stalls takes nothing for some seconds.
const NO_MORE: Duration = Duration::from_secs(4);
/// Answers that nobody reads. Fewer, as the kernel keeps megabytes of each.
const UNREAD: usize = 30;
/// What may be held by all.
const HELD: usize = 16 << 20;
/// What a connection costs besides: hyper's buffers and its task, in a debug build.
const EACH: usize = 320 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_without_an_end_take_no_more_than_the_limits() {
    alone("attack::body::bodies_without_an_end").await;
}

/// Sends for ever, until it may send no more; says how much.
async fn pour(client: &mut Client, is_chunked: bool) -> usize {
    let piece = vec![b'x'; 64 * 1024];
    let mut sent = 0;
    loop {
        let writes = async {
            if is_chunked {
                client.stream.write_all(b"10000\r\n").await?;
            }
            client.stream.write_all(&piece).await?;
            if is_chunked {
                client.stream.write_all(b"\r\n").await?;
            }
            std::io::Result::Ok(())
        };
        match timeout(NO_MORE, writes).await {
            Ok(Ok(())) => sent += piece.len(),
            Ok(Err(_)) | Err(_) => return sent,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "looks at all of the process: run by the test above"]
async fn bodies_without_an_end() {
    let bed = Bed::planned(|plan| {
        plan.limits.each.bytes = HELD;
        plan.limits.total.bytes = HELD * 2;
    });
    let before = resident();
    let mut pours = JoinSet::new();
    for number in 0..CLIENTS {
        let mut client = bed.main.client().await;
        let is_chunked = number % 2 == 0;
        let framing = if is_chunked {
            "transfer-encoding: chunked"
        } else {
            "content-length: 1000000000000"
        };
        client
            .send(format!(
                "POST /{number} HTTP/1.1\r\nhost: a\r\n{framing}\r\n\r\n"
            ))
            .await;
        pours.spawn(async move {
            let sent = pour(&mut client, is_chunked).await;
            (client, sent)
        });
    }
    let mut most = Room::default();
    let mut clients = Vec::new();
    while clients.len() < CLIENTS {
        let held = bed.room.held();
        assert!(held.bytes <= HELD, "{held:?}");
        most.bytes = most.bytes.max(held.bytes);
        if let Ok(Some(poured)) = timeout(Duration::from_millis(5), pours.join_next()).await {
            clients.push(poured.unwrap());
        }
    }
    // It is not that nothing was kept.
    assert!(most.bytes > HELD / 2, "{most:?}");
    assert!(clients.iter().any(|(_, sent)| *sent > 1 << 20));
    let grown = resident().saturating_sub(before);
    let allowed = HELD + CLIENTS * EACH;
    assert!(
        grown < allowed,
        "{} MiB, and {} are allowed",
        grown >> 20,
        allowed >> 20
    );
    // All wait but those who came when there was no room left.
    let refused = bed.main.notes.count(&Note::Refused("full_bytes"));
    bed.main.waiting(CLIENTS - refused).await;
    assert!(refused < CLIENTS);

    // Who comes now with little is still let in, and all is given back.
    let other = bed.add("other", 1);
    let mut small = other.client().await;
    small
        .send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n12345")
        .await;
    other.waiting(1).await;
    drop((small, clients));
    other.waiting(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_bodies_without_an_end_take_no_more_than_their_windows() {
    alone("attack::body::http2_bodies_without_an_end").await;
}

/// Sends on a stream until there is no window left; says how much.
async fn pour_http2(mut body: h2::SendStream<Bytes>) -> usize {
    static PIECE: [u8; 16 * 1024] = [b'x'; 16 * 1024];
    let mut sent = 0;
    loop {
        body.reserve_capacity(PIECE.len());
        let window = poll_fn(|context| body.poll_capacity(context));
        match timeout(NO_MORE, window).await {
            Ok(Some(Ok(window))) => {
                let piece = Bytes::from_static(&PIECE[..window.min(PIECE.len())]);
                sent += piece.len();
                body.send_data(piece, false).unwrap();
            }
            Ok(None | Some(Err(_))) | Err(_) => return sent,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "looks at all of the process: run by the test above"]
async fn http2_bodies_without_an_end() {
    const CONNECTIONS: usize = 10;
    const STREAMS: usize = 32;
    /// What a connection may have on its way to us, by the settings that we send.
    const WINDOW: usize = 1 << 20;
    let bed = Bed::planned(|plan| {
        plan.limits.each.bytes = HELD;
        plan.limits.total.bytes = HELD * 2;
    });
    let before = resident();
    let mut pours = JoinSet::new();
    let mut connections = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let stream = bed.main.client().await.stream;
        let (mut send, connection) = h2::client::handshake(stream).await.unwrap();
        connections.spawn(connection);
        for _ in 0..STREAMS {
            send = in_time("room for a stream", send.ready()).await.unwrap();
            let request = http::Request::post("http://a.example/").body(()).unwrap();
            let (answer, body) = send.send_request(request, false).unwrap();
            pours.spawn(async move {
                let bytes = pour_http2(body).await;
                drop(answer);
                bytes
            });
        }
    }
    let mut poured = 0;
    let mut most = 0;
    while !pours.is_empty() {
        let held = bed.room.held();
        assert!(held.bytes <= HELD, "{held:?}");
        most = most.max(held.bytes);
        if let Ok(Some(sent)) = timeout(Duration::from_millis(5), pours.join_next()).await {
            poured += sent.unwrap();
        }
    }
    assert!(most > HELD / 2, "{most}");
    assert!(poured > HELD, "{poured}");
    let grown = resident().saturating_sub(before);
    // Each connection twice, since its client's end and its streams are in this process too.
    let allowed = HELD + CONNECTIONS * (WINDOW + 2 * EACH);
    assert!(
        grown < allowed,
        "{} MiB, and {} are allowed",
        grown >> 20,
        allowed >> 20
    );
    drop(connections);
    bed.main.waiting(0).await;
    bed.holds_nothing("all have gone").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_reads_are_not_piled_up() {
    alone("attack::body::answers_that_nobody_reads").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "looks at all of the process: run by the test above"]
async fn answers_that_nobody_reads() {
    let stuck = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&stuck);
    let endless = Endpoint::start(move |mut stream, _| {
        let counted = Arc::clone(&counted);
        async move {
            let _ = read_request(&mut stream, &mut Vec::new()).await;
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n";
            stream.write_all(head).await.unwrap();
            let mut client = Client::from(stream);
            pour(&mut client, false).await;
            counted.fetch_add(1, Ordering::Relaxed);
            client.rest().await;
        }
    })
    .await;
    let app = app().await;
    let bed = Bed::leading_to(endless.address);
    let other = bed.add("other", 1);
    other.backend.set_endpoints(&[app.http()]);
    let before = resident();
    let mut clients = Vec::new();
    for _ in 0..UNREAD {
        let mut client = bed.main.client().await;
        client.get("/").await;
        clients.push(client);
    }
    is_so("all are stuck", || match stuck.load(Ordering::Relaxed) {
        UNREAD => Ok(()),
        some => Err(some),
    })
    .await;
    let grown = resident().saturating_sub(before);
    // Twice, since the endpoint is in this process too.
    let allowed = 2 * UNREAD * EACH;
    assert!(
        grown < allowed,
        "{} MiB, and {} are allowed",
        grown >> 20,
        allowed >> 20
    );
    let mut neighbour = other.client().await;
    neighbour.get("/bytes/10").await;
    assert_eq!(neighbour.answer().await.body.len(), 10);
    drop((clients, neighbour));
    bed.open(Open::Connection, 0).await;
}
