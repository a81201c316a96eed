//! Connections that are no HTTP: a server that speaks first, and bytes that Weir does not understand.

use std::net::SocketAddr;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{
    bed::{Bed, PATIENCE},
    echo::Echo,
    objects::Kind,
};

const GREETING: &str = "220 ready when you are";
/// Where the lab's server gives back what it is sent.
const TCP_PORT: u16 = 9000;

/// At zero, with raw TCP on a port of this name.
async fn at_zero(bed: &Bed, echo: &Echo, port: &str) -> SocketAddr {
    bed.serve(echo).await;
    let change = json!({"spec": {"ports": [{"name": port, "port": 2525, "targetPort": TCP_PORT}]}});
    bed.objects.patch(Kind::Service, echo.name, &change).await;
    bed.apply_elasti(echo, &echo.elasti()).await;
    bed.is_in(echo, "serve").await;
    bed.put_to_zero(echo).await;
    SocketAddr::new(bed.address(echo).await.ip(), 2525)
}

async fn reads(stream: &mut TcpStream, expected: &[u8]) {
    let mut read = vec![0; expected.len()];
    let all = timeout(PATIENCE, stream.read_exact(&mut read)).await;
    all.expect("in time").expect("all of it");
    assert_eq!(read, expected);
}

/// The server gives back what it is sent, and ends when its client does.
async fn comes_back(mut stream: TcpStream, sent: &[u8]) {
    let (mut read, mut write) = stream.split();
    let writes = async {
        write.write_all(sent).await.expect("sent");
        write.shutdown().await.expect("no more is sent");
    };
    let mut received = Vec::new();
    let both = async { tokio::join!(writes, read.read_to_end(&mut received)) };
    let ((), end) = timeout(PATIENCE, both).await.expect("in time");
    end.expect("an end in order");
    assert!(received == sent, "{} of {}", received.len(), sent.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_speaks_first_is_woken_by_who_waits_for_it() {
    let bed = Bed::new("speaks-first").await;
    let mut echo = Echo::new("mail");
    echo.arguments = vec!["--tcp-greeting", GREETING];
    // Not a word is sent before the greeting, and nothing says what the port speaks.
    let address = at_zero(&bed, &echo, "mail").await;
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    reads(&mut stream, format!("{GREETING}\r\n").as_bytes()).await;
    assert_eq!(bed.replicas(&echo).await, 1);
    bed.is_in(&echo, "serve").await;
    // What was opened through a resolver goes on when it is out of the path.
    comes_back(stream, &vec![7; 1 << 20]).await;

    // Put to sleep by Weir itself, and woken by many who wait for the greeting.
    bed.is_put_to_sleep(&echo).await;
    let clients = (0..10_u8).map(|number| async move {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        reads(&mut stream, format!("{GREETING}\r\n").as_bytes()).await;
        comes_back(stream, &[number; 1000]).await;
    });
    futures_util::future::join_all(clients).await;
    assert_eq!(bed.replicas(&echo).await, 1);
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_nobody_understands_are_held_and_passed_on_whole() {
    let bed = Bed::new("bytes").await;
    let echo = Echo::new("bytes");
    let address = at_zero(&bed, &echo, "tcp-bytes").await;
    let some = (0..10_u8).map(|number| async move {
        let stream = TcpStream::connect(address).await.expect("a connection");
        comes_back(stream, &vec![number; 100_000]).await;
    });
    futures_util::future::join_all(some).await;
    bed.is_in(&echo, "serve").await;
    bed.end().await;
}
