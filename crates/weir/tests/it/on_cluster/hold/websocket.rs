//! A WebSocket that is opened at zero.

use futures_util::{SinkExt, StreamExt};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};

use super::{
    bed::{Bed, PATIENCE},
    echo::Echo,
};

/// Each comes back as it was sent, sent and read at the same time.
async fn all_come_back(socket: &mut WebSocketStream<TcpStream>) {
    let message = |number: usize| match number % 2 {
        0 => Message::text(format!("message {number}")),
        _ => Message::binary(vec![7; 1000 * number]),
    };
    let (mut write, mut read) = socket.split();
    let writes = async {
        for number in 0..20 {
            write.send(message(number)).await.expect("it is sent");
        }
    };
    let reads = async {
        for number in 0..20 {
            let received = read.next().await.expect("a message");
            assert_eq!(received.expect("a message"), message(number));
        }
    };
    let both = async { tokio::join!(writes, reads) };
    timeout(PATIENCE, both).await.expect("all in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_at_zero_is_opened_and_stays_open_when_it_serves() {
    let bed = Bed::new("websocket").await;
    let echo = Echo::new("echo");
    bed.at_zero(&echo).await;
    let address = bed.address(&echo).await;
    let stream = TcpStream::connect(address).await.expect("a connection");
    let opened = timeout(PATIENCE, client_async(format!("ws://{address}/ws"), stream)).await;
    let (mut socket, answer) = opened.expect("an answer in time").expect("it is opened");
    assert_eq!(answer.status(), 101);
    let via = &answer.headers()["x-weir-via"];
    assert_ne!(via, "-", "it was held");
    assert_eq!(bed.replicas(&echo).await, 1);
    all_come_back(&mut socket).await;

    // The resolver is out of the path of others; what goes through it goes on.
    bed.is_in(&echo, "serve").await;
    bed.is_out_of_the_path(&echo).await;
    all_come_back(&mut socket).await;
    socket.close(None).await.expect("good-bye");
    let last = timeout(PATIENCE, socket.next()).await.expect("an end");
    assert!(matches!(last, Some(Ok(Message::Close(_)))), "{last:?}");
    bed.end().await;
}
