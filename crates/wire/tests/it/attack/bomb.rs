//! Heads that are too much: too long, too many lines, or small on the wire and large when unpacked.

use tokio::{io::AsyncWriteExt, time::timeout};

use super::{
    alone,
    http2::{HEADERS, PREFACE, frame},
    resident,
};
use crate::{
    bed::{Bed, PATIENCE, in_time},
    client::Client,
    endpoint::Recorder,
};

const END_HEADERS: u8 = 4;
const END_STREAM: u8 = 1;
const CONTINUATION: u8 = 9;
/// No attack may cost more than this.
const ALLOWED: usize = 48 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_heads_are_refused_and_reach_nobody() {
    let recorder = Recorder::start().await;
    let bed = Bed::leading_to(recorder.endpoint.address);
    let long = "x".repeat(100_000);
    let many = "x: y\r\n".repeat(10_000);
    for (what, head) in [
        (
            "a long line",
            format!("GET / HTTP/1.1\r\nhost: a\r\nx-long: {long}\r\n\r\n"),
        ),
        (
            "a long name",
            format!("GET / HTTP/1.1\r\nhost: a\r\n{long}: y\r\n\r\n"),
        ),
        (
            "many lines",
            format!("GET / HTTP/1.1\r\nhost: a\r\n{many}\r\n"),
        ),
        (
            "a long path",
            format!("GET /{long} HTTP/1.1\r\nhost: a\r\n\r\n"),
        ),
        (
            "a long method",
            format!("{long} / HTTP/1.1\r\nhost: a\r\n\r\n"),
        ),
        (
            "no end",
            format!("GET / HTTP/1.1\r\nhost: a\r\nx-long: {long}"),
        ),
    ] {
        let mut client = bed.main.client().await;
        // It may be closed before all is sent.
        let _ = in_time(what, client.stream.write_all(head.as_bytes())).await;
        if let Some(answer) = client.try_answer(true).await {
            assert!(
                (400..500).contains(&answer.status),
                "{what}: {}",
                answer.status
            );
        }
        in_time(what, client.rest()).await;
    }
    assert!(recorder.seen().is_empty());
    still_served(&bed).await;
}

async fn still_served(bed: &Bed) {
    let mut client = bed.main.client().await;
    client.get("/").await;
    assert_eq!(client.answer().await.body, b"ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_small_on_the_wire_and_large_in_memory_is_refused() {
    alone("attack::bomb::http2_bombs").await;
}

/// A header with a value of 4000 bytes that goes into the table, and a byte that stands for it ever after.
fn packed() -> (Vec<u8>, u8) {
    // Literal with incremental indexing, new name; lengths in one byte, and in three.
    let mut first = vec![0x40, 1, b'x', 0x7f];
    let length = 4000 - 127;
    first.extend([
        u8::try_from(length % 128).unwrap() | 0x80,
        u8::try_from(length / 128).unwrap(),
    ]);
    first.extend([b'y'; 4000]);
    // Indexed, the first after the 61 that everybody knows.
    (first, 0xbe)
}

/// `:method: GET`, `:scheme: http`, `:path: /` and an authority.
fn pseudo() -> Vec<u8> {
    vec![0x82, 0x86, 0x84, 0x41, 1, b'a']
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "looks at all of the process: run by the test above"]
async fn http2_bombs() {
    let recorder = Recorder::start().await;
    let bed = Bed::leading_to(recorder.endpoint.address);
    still_served(&bed).await;
    let before = resident();
    let (first, again) = packed();
    let connections: Vec<Client> = {
        let mut connections = Vec::new();
        for stream in 0..20_u32 {
            let mut client = bed.main.client().await;
            client.send(PREFACE).await;
            client.send(frame(4, 0, 0, &[])).await;
            // 10,000 times 4000 bytes, in one frame of 14 kB.
            let block = [pseudo(), first.clone(), vec![again; 10_000]].concat();
            let sent = frame(HEADERS, END_HEADERS | END_STREAM, 1, &block);
            let _ = client.stream.write_all(&sent).await;
            // And the same without an end.
            if stream % 2 == 0 {
                let block = [pseudo(), first.clone()].concat();
                let mut flood = frame(HEADERS, END_STREAM, 3, &block);
                for _ in 0..1000 {
                    flood.extend(frame(CONTINUATION, 0, 3, &vec![again; 10_000]));
                }
                let _ = timeout(PATIENCE, client.stream.write_all(&flood)).await;
            }
            connections.push(client);
        }
        connections
    };
    still_served(&bed).await;
    let grown = resident().saturating_sub(before);
    assert!(grown < ALLOWED, "{} MiB", grown >> 20);
    // Only those of our own.
    assert_eq!(recorder.seen().len(), 2);
    for (number, mut client) in connections.into_iter().enumerate() {
        if number % 2 == 0 {
            in_time("a flood of CONTINUATION ends the connection", client.rest()).await;
        }
    }
}
