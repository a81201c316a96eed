//! Floods of HTTP/2 frames, made by hand: streams that are reset as soon as they begin, pings, settings.

use std::time::Duration;

use tokio::{io::AsyncWriteExt, time::timeout};
use weir_wire::life::Open;

use super::{alone, resident};
use crate::{
    bed::{Bed, app, in_time},
    endpoint::Endpoint,
};

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(super) const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
/// What no flood may cost.
const ALLOWED: usize = 48 << 20;

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// How a flood ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The connection was closed under it.
    Closed,
    /// No more was taken from it.
    Throttled,
    /// All of it was taken.
    Taken,
}

/// Sends many pieces and never reads.
async fn flood(bed: &Bed, pieces: impl Iterator<Item = Vec<u8>>) -> (tokio::net::TcpStream, End) {
    let mut client = bed.main.client().await;
    client.send(PREFACE).await;
    client.send(frame(SETTINGS, 0, 0, &[])).await;
    for piece in pieces {
        let sent = client.stream.write_all(&piece);
        match timeout(Duration::from_secs(1), sent).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return (client.stream, End::Closed),
            Err(_) => return (client.stream, End::Throttled),
        }
    }
    (client.stream, End::Taken)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_of_frames_cost_little_and_hold_up_nobody() {
    alone("attack::http2::floods_of_frames").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "looks at all of the process: run by the test above"]
async fn floods_of_frames() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let before = resident();
    let pings = frame(PING, 0, 0, &[7; 8]).repeat(1000);
    let settings = frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0]).repeat(1000);
    let windows = frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]).repeat(1000);
    let mut open = Vec::new();
    for (name, piece) in [
        ("pings", pings),
        ("settings", settings),
        ("windows", windows),
    ] {
        // Two millions; their answers alone would be more than all buffers on the way can take.
        let pieces = std::iter::repeat_n(piece, 2000);
        let (stream, end) = flood(&bed, pieces).await;
        if name != "windows" {
            assert_ne!(end, End::Taken, "{name}: it is answered without end");
        }
        open.push(stream);
        let mut client = bed.main.client().await;
        client.get("/bytes/10").await;
        assert_eq!(client.answer().await.body.len(), 10, "after {name}");
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < ALLOWED, "{} MiB", grown >> 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_are_reset_at_once_end_the_connection() {
    // One that never answers, so that what is not given up piles up.
    let silent = Endpoint::silent().await;
    let app = app().await;
    let bed = Bed::leading_to(silent.address);
    let other = bed.add("other", 1);
    other.backend.set_endpoints(&[app.http()]);
    let held = bed.add("held", 2);
    for way in [&bed.main, &held] {
        let mut client = way.client().await;
        client.send(PREFACE).await;
        client.send(frame(SETTINGS, 0, 0, &[])).await;
        let is_ended = in_time("a flood of resets", async {
            for number in 0..50_000_u32 {
                let stream = number * 2 + 1;
                // `:method: GET`, `:scheme: http`, `:path: /`, `:authority: a`.
                let block = [0x82, 0x86, 0x84, 0x41, 1, b'a'];
                let mut pair = frame(HEADERS, 5, stream, &block);
                pair.extend(frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
                if client.stream.write_all(&pair).await.is_err() {
                    return true;
                }
            }
            false
        });
        assert!(is_ended.await, "100,000 frames were taken");
        let mut beside = other.client().await;
        beside.get("/bytes/10").await;
        assert_eq!(beside.answer().await.body.len(), 10);
        drop((client, beside));
        bed.open(Open::Request, 0).await;
        bed.open(Open::Connection, 0).await;
    }
    held.waiting(0).await;
    bed.holds_nothing("all were given up").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_opens_no_more_streams_than_it_may() {
    let bed = Bed::new();
    let mut client = bed.main.client().await;
    client.send(PREFACE).await;
    client.send(frame(SETTINGS, 0, 0, &[])).await;
    for number in 0..1000_u32 {
        let block = [0x82, 0x86, 0x84, 0x41, 1, b'a'];
        let _ = client
            .stream
            .write_all(&frame(HEADERS, 5, number * 2 + 1, &block))
            .await;
    }
    bed.main.waiting(256).await;
    drop(client);
    bed.main.waiting(0).await;
}
