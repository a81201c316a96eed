//! Bodies in pieces of one byte: what is kept of them costs no more memory than what is counted.

use std::time::{Duration, Instant};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};
use weir_wire::hold::Room;

use super::{
    alone,
    http2::{HEADERS, PING, PREFACE, SETTINGS, frame},
    resident,
};
use crate::{
    bed::{Bed, in_time, is_so},
    client::Client,
};

const DATA: u8 = 0;
/// What may be held by all.
const HELD: usize = 16 << 20;
/// What a connection costs besides: hyper's buffers and its task, in a debug build.
const EACH: usize = 320 * 1024;

const CONNECTIONS: usize = 10;
const STREAMS: usize = 32;

fn bed() -> Bed {
    Bed::planned(|plan| {
        plan.limits.each.bytes = HELD;
        plan.limits.total.bytes = HELD * 2;
    })
}

/// What is held when so much is there and nothing has changed for a while. While a body is read, more is counted for
/// moments.
async fn settled(bed: &Bed, wanted: usize) -> Room {
    is_so("all of it is there", || {
        let held = bed.room.held();
        if held.bytes >= wanted {
            Ok(())
        } else {
            Err(held)
        }
    })
    .await;
    let mut last = (bed.room.held(), Instant::now());
    while last.1.elapsed() < Duration::from_millis(300) {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let now = bed.room.held();
        if now != last.0 {
            last = (now, Instant::now());
        }
    }
    last.0
}

fn assert_grown_by_less_than(before: usize, allowed: usize) {
    let grown = resident().saturating_sub(before);
    assert!(
        grown < allowed,
        "{} MiB, and {} are allowed",
        grown >> 20,
        allowed >> 20
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chunks_of_one_byte_take_no_more_than_the_limits() {
    alone("attack::crumbs::chunks_of_one_byte").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "looks at all of the process: run by the test above"]
async fn chunks_of_one_byte() {
    const CLIENTS: usize = 32;
    const CHUNKS: usize = 16 * 1024;
    let bed = bed();
    let before = resident();
    let chunks = b"1\r\nx\r\n".repeat(CHUNKS);
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = bed.main.client().await;
        client
            .send("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
            .await;
        client.send(&chunks).await;
        clients.push(client);
    }
    let held = settled(&bed, CLIENTS * CHUNKS).await;
    assert_grown_by_less_than(before, held.bytes + CLIENTS * EACH);
    drop(clients);
    bed.main.waiting(0).await;
    bed.holds_nothing("all have gone").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_frames_of_one_byte_take_no_more_than_the_limits() {
    alone("attack::crumbs::http2_frames_of_one_byte").await;
}

fn streams() -> impl Iterator<Item = u32> {
    (1..).step_by(2).take(STREAMS)
}

/// A byte for each stream, each in a frame of its own.
fn crumbs() -> Vec<u8> {
    streams().flat_map(|id| frame(DATA, 0, id, b"x")).collect()
}

/// A connection with requests whose bodies are to come.
async fn with_open_streams(bed: &Bed) -> Client {
    let mut client = bed.main.client().await;
    client.send(PREFACE).await;
    client.send(frame(SETTINGS, 0, 0, &[])).await;
    for id in streams() {
        // `:method: POST`, `:scheme: http`, `:path: /`, `:authority: a`.
        let block = [0x83, 0x86, 0x84, 0x41, 1, b'a'];
        client.send(frame(HEADERS, 4, id, &block)).await;
    }
    client
}

/// Asks whether the server is still there, and so waits until it has taken all that was sent before.
async fn is_there(client: &mut Client) -> bool {
    let asked = client.stream.write_all(&frame(PING, 0, 0, &[7; 8])).await;
    if asked.is_err() {
        return false;
    }
    loop {
        let mut head = [0; 9];
        if client.stream.read_exact(&mut head).await.is_err() {
            return false;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        if client.stream.read_exact(&mut payload).await.is_err() {
            return false;
        }
        if head[3] == PING {
            return true;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "looks at all of the process: run by the test above"]
async fn http2_frames_of_one_byte() {
    const FRAMES: usize = 1024;
    let bed = bed();
    let before = resident();
    let crumbs = crumbs();
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = with_open_streams(&bed).await;
        // One at a time for each stream: a client that sends as fast as it can is sent away.
        for _ in 0..FRAMES {
            client.send(&crumbs).await;
            assert!(in_time("a ping", is_there(&mut client)).await);
        }
        clients.push(client);
    }
    let held = settled(&bed, CONNECTIONS * STREAMS * FRAMES).await;
    // Twice, since each has many requests.
    assert_grown_by_less_than(before, held.bytes + CONNECTIONS * 2 * EACH);
    drop(clients);
    bed.main.waiting(0).await;
    bed.holds_nothing("all have gone").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_frames_of_one_byte_that_nobody_could_read_yet_take_no_more_than_a_window() {
    alone("attack::crumbs::http2_frames_in_a_hurry").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "looks at all of the process: run by the test above"]
async fn http2_frames_in_a_hurry() {
    /// What a connection may have on its way to us, by the settings that we send.
    const WINDOW: usize = 1 << 20;
    let bed = bed();
    let hurry = crumbs().repeat(4096);
    let before = resident();
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = with_open_streams(&bed).await;
        // It may be sent away, or not be listened to any more.
        let _ = timeout(Duration::from_secs(1), client.stream.write_all(&hurry)).await;
        clients.push(client);
    }
    let held = settled(&bed, 0).await;
    assert_grown_by_less_than(before, held.bytes + CONNECTIONS * (WINDOW + EACH));
    drop(clients);
    bed.main.waiting(0).await;
    bed.holds_nothing("all have gone").await;
}
