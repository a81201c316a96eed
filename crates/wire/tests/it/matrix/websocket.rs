//! What is tried with tungstenite.

use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::{client_async, tungstenite::Message};

use super::{Case, Pace, pattern, sum};

/// Each message comes back. Sent and read at the same time, since the server keeps none.
pub(super) async fn echo(case: &Case) {
    let stream = case.way.client().await.stream;
    let url = format!("ws://{}/ws", case.way.address());
    let (socket, answer) = client_async(url, stream).await.unwrap();
    assert_eq!(answer.status(), 101, "{case}");
    let (mut write, mut read) = socket.split();
    let (count, length) = case.size.messages();
    let writes = async {
        for number in 0..count {
            case.dawdle(Pace::SlowWriter).await;
            let message = Message::binary(pattern(length + number));
            write.send(message).await.unwrap();
        }
    };
    let reads = async {
        for number in 0..count {
            case.dawdle(Pace::SlowReader).await;
            let message = read.next().await.unwrap().unwrap();
            let expected = pattern(length + number);
            assert_eq!(sum(&message.into_data()), sum(&expected), "{case}");
        }
    };
    tokio::join!(writes, reads);
    write.close().await.unwrap();
    let end = read.next().await;
    assert!(
        matches!(end, Some(Ok(Message::Close(_)))),
        "{case}: {end:?}"
    );
}
