//! What counts as use of a backend, and for how long.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weir_wire::{life::Open, sniff::Spoken};

use crate::{
    bed::{Bed, NO_USE, Way, app, in_time, is_so},
    leaving::websocket,
    tunnel::{connect, echo},
};

async fn in_use(way: &Way, count: usize) {
    is_so(&format!("{count} in use"), || {
        let usage = way.backend.usage();
        if usage.open == count {
            Ok(())
        } else {
            Err(usage)
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_counts_from_its_head_to_the_end_of_its_answer() {
    let app = app().await;
    let bed = Bed::new();
    let mut client = bed.main.client().await;
    client.get("/bytes/1").await;
    bed.main.waiting(1).await;
    in_use(&bed.main, 1).await;
    let mut other = bed.main.client().await;
    other.get("/bytes/1").await;
    in_use(&bed.main, 2).await;
    bed.main.backend.set_endpoints(&[app.http()]);
    for client in [&mut client, &mut other] {
        assert_eq!(client.answer().await.status, 200);
    }
    // Both connections are kept, and nobody uses them.
    in_use(&bed.main, 0).await;
    bed.open(Open::Connection, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_whose_client_goes_counts_no_more() {
    let bed = Bed::new();
    let mut client = bed.main.client().await;
    client.get("/").await;
    in_use(&bed.main, 1).await;
    drop(client);
    in_use(&bed.main, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_websocket_counts_until_it_is_closed() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let socket = websocket(&bed.main).await;
    bed.open(Open::Tunnel, 1).await;
    in_use(&bed.main, 1).await;
    drop(socket);
    in_use(&bed.main, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_passed_through_counts_until_it_ends() {
    let echo = echo().await;
    let bed = Bed::leading_to(echo.address);
    bed.speaks(&bed.main, Spoken::Tcp);
    let mut client = connect(&bed.main).await;
    client.write_all(b"there?").await.unwrap();
    let mut answer = [0; 6];
    let read = in_time("an echo", client.read_exact(&mut answer)).await;
    read.unwrap();
    in_use(&bed.main, 1).await;
    drop(client);
    in_use(&bed.main, 0).await;
}

/// As who looks whether somebody is there does, the operator among them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_says_nothing_and_goes_was_no_use() {
    let echo = echo().await;
    let bed = Bed::leading_to(echo.address);
    bed.speaks(&bed.main, Spoken::Tcp);
    loop {
        let began = Instant::now();
        let client = connect(&bed.main).await;
        in_use(&bed.main, 1).await;
        drop(client);
        in_use(&bed.main, 0).await;
        // On a machine that stalls it was there for long.
        if began.elapsed() < Duration::from_secs(1) {
            assert_eq!(bed.main.backend.usage().ended, None);
            break;
        }
    }
    let mut client = connect(&bed.main).await;
    client.write_all(b"x").await.unwrap();
    in_time("an echo", client.read_u8()).await.unwrap();
    drop(client);
    in_use(&bed.main, 0).await;
    assert!(bed.main.backend.usage().ended.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_use_does_not_count() {
    let bed = Bed::new();
    let mut client = bed.main.client().await;
    client.get(NO_USE).await;
    bed.main.waiting(1).await;
    assert_eq!(bed.main.backend.usage().open, 0);
}
