//! Ports that open and close while connections go on.

use tokio::net::TcpStream;
use weir_wire::life::Open;

use crate::{
    bed::{Bed, app, in_time},
    client::Client,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ports_come_and_go_without_touching_connections() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let other = bed.add("other", 1);
    other.backend.set_endpoints(&[app.http()]);
    let mut ports = bed.wire.ports();
    ports.sort_unstable();
    let mut expected = vec![bed.main.port, other.port];
    expected.sort_unstable();
    assert_eq!(ports, expected);
    let changes = bed.wire.port_changes();
    assert_eq!(bed.wire.open(other.port).unwrap(), other.port, "it is open");
    assert_eq!(bed.wire.port_changes(), changes);

    let mut under_way = other.client().await;
    under_way.get("/drip?bytes=100&seconds=0.5").await;
    let mut idle = other.client().await;
    idle.get("/bytes/1").await;
    idle.answer().await;
    bed.wire.close(other.port);
    assert_eq!(bed.wire.ports(), [bed.main.port]);
    assert!(bed.wire.port_changes() > changes);
    in_time("it is closed", async {
        while TcpStream::connect(other.address()).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(under_way.answer().await.body.len(), 100);
    for client in [&mut under_way, &mut idle] {
        client.get("/bytes/2").await;
        assert_eq!(client.answer().await.body.len(), 2);
    }
    assert_eq!(bed.wire.open(other.port).unwrap(), other.port);
    let mut again = other.client().await;
    again.get("/bytes/3").await;
    assert_eq!(again.answer().await.body.len(), 3);
}

/// On one thread, which does not accept while we connect.
#[tokio::test]
async fn who_has_connected_when_a_port_closes_is_served() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let clients: Vec<_> = (0..400)
        .map(|_| std::net::TcpStream::connect(bed.main.address()).unwrap())
        .collect();
    bed.wire.close(bed.main.port);
    bed.open(Open::Connection, 400).await;
    for stream in clients.into_iter().rev().take(20) {
        stream.set_nonblocking(true).unwrap();
        let mut client = Client::from(TcpStream::from_std(stream).unwrap());
        client.get("/bytes/1").await;
        assert_eq!(client.answer().await.body.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_for_nobody_is_told_so() {
    let bed = Bed::new();
    let port = bed.wire.open(0).unwrap();
    let mut client = Client::connect(([127, 0, 0, 1], port).into()).await;
    client.get("/").await;
    let answer = client.answer().await;
    assert_eq!(answer.status, 404);
    assert_eq!(answer.reason(), "unknown");
}
