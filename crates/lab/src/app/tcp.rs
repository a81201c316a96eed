//! Raw TCP: gives back what it is sent. With a greeting it speaks first, as mail and database servers do.

use std::sync::Arc;

use tokio::{
    io::{self, AsyncWriteExt},
    net::TcpStream,
};

use super::State;

pub(super) async fn echo(state: Arc<State>, mut stream: TcpStream) {
    // Only fails on a socket that is gone, as the next read will find out.
    let _ = stream.set_nodelay(true);
    if let Some(greeting) = &state.settings.tcp_greeting {
        let greeting = format!("{greeting}\r\n");
        if stream.write_all(greeting.as_bytes()).await.is_err() {
            return;
        }
    }
    let (mut from, mut to) = stream.split();
    // How it ended is the client's business.
    let _ = io::copy(&mut from, &mut to).await;
    let _ = to.shutdown().await;
}
