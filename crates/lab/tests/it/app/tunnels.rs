//! WebSocket and raw TCP.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};
use weir_lab::app::{App, Settings};

use super::start;

async fn websocket(app: &App) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(app.http()).await.unwrap();
    let url = format!("ws://{}/ws", app.http());
    client_async(url, stream).await.unwrap().0
}

#[tokio::test]
async fn websocket_messages_come_back() {
    let app = start(Settings::default()).await;
    let mut socket = websocket(&app).await;
    for message in [Message::text("hello"), Message::binary(vec![7; 100_000])] {
        socket.send(message.clone()).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), message);
    }
    socket
        .send(Message::Ping("are you there?".into()))
        .await
        .unwrap();
    assert!(socket.next().await.unwrap().unwrap().is_pong());
    socket.close(None).await.unwrap();
    assert!(socket.next().await.unwrap().unwrap().is_close());
}

#[tokio::test]
async fn a_stopping_server_says_good_bye_to_websockets_and_waits_for_them() {
    let app = start(Settings::default()).await;
    let mut socket = websocket(&app).await;
    socket.send(Message::text("hello")).await.unwrap();
    socket.next().await.unwrap().unwrap();

    let stop = tokio::spawn(app.stop());
    let last = socket.next().await.unwrap().unwrap();
    assert!(last.is_close(), "{last}");
    assert!(!stop.is_finished(), "the client has not said good-bye yet");
    while let Some(Ok(_)) = socket.next().await {}
    timeout(Duration::from_mins(1), stop)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn raw_tcp_comes_back_to_the_last_byte() {
    let app = start(Settings::default()).await;
    let mut stream = TcpStream::connect(app.tcp().unwrap()).await.unwrap();
    stream.write_all(b"hello").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"hello");
}

#[tokio::test]
async fn with_a_greeting_the_server_speaks_first() {
    let app = start(Settings {
        tcp_greeting: Some("220 lab".to_owned()),
        ..Settings::default()
    })
    .await;
    let stream = TcpStream::connect(app.tcp().unwrap()).await.unwrap();
    let mut line = String::new();
    let mut reader = BufReader::new(stream);
    reader.read_line(&mut line).await.unwrap();
    assert_eq!(line, "220 lab\r\n");
    reader.get_mut().write_all(b"hello\n").await.unwrap();
    line.clear();
    reader.read_line(&mut line).await.unwrap();
    assert_eq!(line, "hello\n");
}
