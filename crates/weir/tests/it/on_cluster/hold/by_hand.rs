//! Somebody scales the target, and requests come while it is at zero.

use std::{convert::Infallible, net::SocketAddr, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::Request;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use super::{bed::Bed, client, echo::Echo};

const MEBIBYTE: usize = 1 << 20;

/// Bytes among which a piece that is lost or comes twice changes the hash.
fn pattern(length: usize) -> Vec<u8> {
    let byte = |index: usize| u8::try_from(index * 31 % 251).expect("below 256");
    (0..length).map(byte).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn at_zero_all_requests_are_answered_whole_and_then_it_serves() {
    let bed = Bed::new("zero").await;
    let echo = Echo::new("echo");
    bed.at_zero(&echo).await;
    assert_eq!(bed.replicas(&echo).await, 0);
    bed.leads_to_all_resolvers(&echo).await;

    let address = bed.address(&echo).await;
    tokio::join!(
        a_large_body_comes_back(address),
        a_body_that_comes_slowly_arrives(address),
        a_slow_answer_is_whole(address),
        an_answer_without_a_length_is_whole(address),
        a_small_one_is_answered(address),
    );
    assert_eq!(bed.replicas(&echo).await, 1);
    bed.is_in(&echo, "serve").await;
    bed.is_out_of_the_path(&echo).await;
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scaled_up_by_hand_it_serves() {
    let bed = Bed::new("up").await;
    let echo = Echo::new("echo");
    bed.at_zero(&echo).await;
    bed.scale(&echo, 1).await;
    bed.is_in(&echo, "serve").await;
    bed.is_out_of_the_path(&echo).await;
    assert_eq!(bed.replicas(&echo).await, 1);
    bed.end().await;
}

async fn a_large_body_comes_back(address: SocketAddr) {
    let body = pattern(MEBIBYTE);
    let answer = client::post(address, "/mirror", body.clone()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body.len(), body.len());
    assert_eq!(client::sha256(&answer.body), client::sha256(&body));
}

/// Its sender is not done when the pod is there, and it tells no length.
async fn a_body_that_comes_slowly_arrives(address: SocketAddr) {
    const PIECES: usize = 8;
    let body = pattern(PIECES * 1000);
    let pieces: Vec<Bytes> = body.chunks(1000).map(Bytes::copy_from_slice).collect();
    let pieces = stream::iter(pieces).then(|piece| async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        Ok::<_, Infallible>(Frame::data(piece))
    });
    let request = Request::post("/upload").body(StreamBody::new(pieces).boxed_unsync());
    let answer = client::send(address, request.expect("a request")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = answer.json();
    assert_eq!(seen["bytes"], body.len());
    assert_eq!(seen["sha256"], client::sha256(&body));
}

async fn a_slow_answer_is_whole(address: SocketAddr) {
    let answer = client::get(address, "/drip?bytes=1000&seconds=2").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body.len(), 1000);
}

async fn an_answer_without_a_length_is_whole(address: SocketAddr) {
    // Who does not ask for trailers gets none.
    let request = Request::get("/chunked/300000").header("te", "trailers");
    let request = request.header("connection", "te").body(client::empty());
    let answer = client::send(address, request.expect("a request")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body.len(), 300_000);
    assert!(!answer.headers.contains_key("content-length"), "{answer:?}");
    let sum = &answer.trailers["x-weir-sha256"];
    assert_eq!(*sum, client::sha256(&answer.body));
}

async fn a_small_one_is_answered(address: SocketAddr) {
    let answer = client::post(address, "/echo", b"hello".to_vec()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = answer.json();
    assert_eq!(seen["body"]["sha256"], client::sha256(b"hello"));
}

#[tokio::test(flavor = "multi_thread")]
async fn scaled_to_zero_right_after_a_wake_it_stays_there() {
    let bed = Bed::new("at-once").await;
    let echo = Echo::new("echo");
    bed.at_zero(&echo).await;
    let address = bed.address(&echo).await;
    for _ in 0..2 {
        let answer = client::get(address, "/echo").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        bed.is_in(&echo, "serve").await;
        // Were the wake still counted, pods would be back before the last one is gone.
        bed.put_to_zero(&echo).await;
    }
    assert_eq!(bed.replicas(&echo).await, 0);
    bed.end().await;
}
