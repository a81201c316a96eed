//! Connections as a weapon: thousands that say little, and what is left for others.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::client_async;
use weir_wire::life::Open;

use super::alone;
use crate::{
    bed::{Bed, app, in_time, is_so},
    client::Client,
};

/// More than may be open at once, fifteen times.
const SLOW: u64 = 15_000;
const LIMIT: usize = 1000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_slow_connections_keep_nobody_out() {
    alone("attack::taken::thousands_of_slow_connections").await;
}

/// Room for the sockets of both sides. Where it cannot be had there are fewer.
fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    let wanted = Rlimit {
        current: Some(most.min(20_000)),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, wanted).unwrap();
    let room = most.min(20_000).saturating_sub(4000).min(SLOW);
    if room < SLOW {
        eprintln!("only {room} slow connections, as only {most} files can be open");
    }
    room
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "looks at all of the process: run by the test above"]
async fn thousands_of_slow_connections() {
    let count = raise_open_files();
    let app = app().await;
    let bed = Bed::planned(|plan| plan.settings.max_connections = LIMIT);
    bed.main.backend.set_endpoints(&[app.http()]);
    let mut slow = Vec::new();
    for number in 0..count {
        let stream = connect_from(number, &bed).await;
        // Some say nothing, some a little, some half of a head of HTTP/2.
        let words: &[&[u8]] = &[b"", b"GET / HTTP/1.1\r\nhost: a\r\nx-slow: ", b"PRI * HT"];
        let words = words[usize::try_from(number).unwrap() % words.len()];
        // It may have been closed for another already.
        let _ = stream.try_write(words);
        slow.push(stream);
        if number % 100 == 99 {
            let mut client = bed.main.client().await;
            client.get("/bytes/10").await;
            assert_eq!(client.answer().await.body.len(), 10, "after {number}");
            let open = bed.wire.life().count(Open::Connection);
            // Those that were told to end for others may not have done so yet.
            assert!(open < LIMIT * 2, "{open}");
        }
    }
    is_so("only as many are open as may be", || {
        let open = bed.wire.life().count(Open::Connection);
        if (LIMIT / 2..=LIMIT).contains(&open) {
            Ok(())
        } else {
            Err(open)
        }
    })
    .await;
}

/// From one of many addresses, as the ports of one are soon used up.
async fn connect_from(number: u64, bed: &Bed) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    let from = u8::try_from(number % 100).unwrap();
    socket.bind(([127, 0, 1, from], 0).into()).unwrap();
    let connected = in_time("a connection", socket.connect(bed.main.address())).await;
    connected.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_all_are_at_work_others_are_told() {
    let app = app().await;
    let bed = Bed::planned(|plan| plan.settings.max_connections = 2);
    let mut busy = Vec::new();
    for _ in 0..2 {
        let mut client = bed.main.client().await;
        client.get("/bytes/3").await;
        busy.push(client);
    }
    bed.main.waiting(2).await;
    for asks in [false, true] {
        let mut late = bed.main.client().await;
        if asks {
            let _ = late.stream.try_write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        }
        let answer = late.answer().await;
        assert_eq!(answer.status, 503);
        assert_eq!(answer.reason(), "full_connections");
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert_eq!(answer.header("connection"), Some("close"));
        // Not a byte more than its length.
        late.closed().await;
    }
    bed.main.backend.set_endpoints(&[app.http()]);
    for client in &mut busy {
        assert_eq!(client.answer().await.body.len(), 3);
    }
    // Now they are idle, and one is closed for a newcomer.
    let mut newcomer = bed.main.client().await;
    newcomer.get("/bytes/4").await;
    assert_eq!(newcomer.answer().await.body.len(), 4);
    bed.open(Open::Connection, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tunnels_take_room_too() {
    let app = app().await;
    let bed = Bed::planned(|plan| plan.settings.max_connections = 3);
    bed.main.backend.set_endpoints(&[app.http()]);
    let mut sockets = Vec::new();
    for count in 1..=3 {
        let stream = bed.main.client().await.stream;
        let url = format!("ws://{}/ws", bed.main.address());
        let (socket, _) = in_time("a WebSocket", client_async(url, stream))
            .await
            .unwrap();
        sockets.push(socket);
        bed.open(Open::Tunnel, count).await;
        bed.open(Open::Connection, 0).await;
    }
    let mut late = bed.main.client().await;
    assert_eq!(late.answer().await.reason(), "full_connections");
    drop(sockets);
    bed.open(Open::Tunnel, 0).await;
    let mut client = bed.main.client().await;
    client.get("/bytes/1").await;
    assert_eq!(client.answer().await.body.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_comes_byte_by_byte_is_cut_in_time() {
    let bed = Bed::planned(|plan| plan.settings.patience.head = Duration::from_secs(1));
    let mut client: Client = bed.main.client().await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\nx-slow: ").await;
    // Bytes keep coming, and it is cut all the same.
    in_time("it is cut", async {
        loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let sent = tokio::io::AsyncWriteExt::write_all(&mut client.stream, b"x").await;
            if sent.is_err() {
                break;
            }
        }
    })
    .await;
    bed.open(Open::Connection, 0).await;
}
