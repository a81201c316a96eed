//! Leaving, with connections that are passed through: those that wait are served, those that are open are cut at the limit.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use weir_wire::{
    backend::End,
    life::{Open, Stage},
    sniff::Spoken,
};

use crate::{
    bed::{NEVER, Note, in_time},
    tunnel::{bed, connect, echo, is_reset},
};

const AT_ONCE: Duration = Duration::ZERO;
/// For what must be done before the time is up, on a machine that stalls; the test waits for its end.
const LONG_ENOUGH: Duration = Duration::from_secs(8);

async fn is_echoed(client: &mut TcpStream) {
    client.write_all(b"there?").await.unwrap();
    let mut back = [0; 6];
    let read = in_time("an echo", client.read_exact(&mut back)).await;
    read.unwrap();
    assert_eq!(&back, b"there?");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_is_served_and_what_is_open_is_cut_at_the_limit() {
    let echo = echo().await;
    let bed = bed(Spoken::Tcp);
    let mut held = connect(&bed.main).await;
    held.write_all(b"there?").await.unwrap();
    bed.main.waiting(1).await;
    let mut silent = connect(&bed.main).await;
    let wire = Arc::clone(&bed.wire);
    let leaving = tokio::spawn(async move { wire.leave(AT_ONCE, LONG_ENOUGH).await });
    in_time("closing", bed.wire.life().reaches(Stage::Closing)).await;
    bed.main.waiting(2).await;
    bed.main.backend.set_endpoints(&[echo.address]);
    let mut back = [0; 6];
    let read = in_time("an echo", held.read_exact(&mut back)).await;
    read.unwrap();
    bed.open(Open::Tunnel, 2).await;
    for client in [&mut held, &mut silent] {
        is_echoed(client).await;
    }
    assert!(!leaving.is_finished(), "they are open");
    in_time("it leaves", leaving).await.unwrap();
    for client in [&mut held, &mut silent] {
        is_reset(client).await;
    }
    bed.main.notes.has(&Note::Carried(End::Cut), 2).await;
    bed.open(Open::Tunnel, 0).await;
    bed.open(Open::Connection, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_leaves_as_soon_as_the_last_tunnel_ends() {
    let echo = echo().await;
    let bed = bed(Spoken::Tcp);
    bed.main.backend.set_endpoints(&[echo.address]);
    let mut client = connect(&bed.main).await;
    is_echoed(&mut client).await;
    let wire = Arc::clone(&bed.wire);
    let leaving = tokio::spawn(async move { wire.leave(AT_ONCE, NEVER).await });
    in_time("closing", bed.wire.life().reaches(Stage::Closing)).await;
    is_echoed(&mut client).await;
    drop(client);
    in_time("it leaves", leaving).await.unwrap();
    bed.main.notes.has(&Note::Carried(End::Done), 1).await;
    assert_eq!(bed.main.notes.all().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_limit_what_waits_is_reset() {
    let bed = bed(Spoken::Tcp);
    let mut held = connect(&bed.main).await;
    held.write_all(b"there?").await.unwrap();
    bed.main.waiting(1).await;
    in_time(
        "it leaves",
        bed.wire.leave(AT_ONCE, Duration::from_millis(500)),
    )
    .await;
    is_reset(&mut held).await;
    bed.main.notes.has(&Note::Refused("leaving"), 1).await;
    bed.main.notes.has(&Note::Carried(End::Refused), 1).await;
}
