//! WebSocket: each message is given back. The handshake is an answer; what follows is a [`Tunnel`].

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        handshake::derive_accept_key,
        protocol::{CloseFrame, Role, frame::coding::CloseCode},
    },
};

use super::{
    State, answer,
    body::{Request, Response, whole},
};

/// A connection that has left HTTP behind.
pub(super) struct Tunnel {
    upgrade: OnUpgrade,
}

/// Agrees to speak WebSocket, and hands the connection over to be run beside this one's end.
pub(super) async fn accept(tunnels: mpsc::Sender<Tunnel>, mut request: Request) -> Response {
    let Some(key) = key(request.headers()) else {
        return answer::bad_request("this is WebSocket 13: ask for an upgrade to it, on HTTP/1.1");
    };
    let accept = derive_accept_key(key.as_bytes());
    let upgrade = hyper::upgrade::on(&mut request);
    if tunnels.send(Tunnel { upgrade }).await.is_err() {
        return answer::text(StatusCode::SERVICE_UNAVAILABLE, "the server stops\n");
    }
    let mut response = Response::new(whole(""));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers: [(HeaderName, &'static str); 2] = [
        (header::CONNECTION, "upgrade"),
        (header::UPGRADE, "websocket"),
    ];
    for (name, value) in headers {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    answer::set(&mut response, "sec-websocket-accept", &accept);
    response
}

fn key(headers: &HeaderMap) -> Option<&HeaderValue> {
    let is = |name: HeaderName, word: &[u8]| {
        headers
            .get(name)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(word))
    };
    let is_asked = is(header::UPGRADE, b"websocket") && is(header::SEC_WEBSOCKET_VERSION, b"13");
    headers.get(header::SEC_WEBSOCKET_KEY).filter(|_| is_asked)
}

impl Tunnel {
    /// Gives messages back until the client goes, or the server stops and says so.
    pub(super) async fn run(self, state: Arc<State>) {
        // The client may have gone before it heard that we agree.
        let Ok(upgraded) = self.upgrade.await else {
            return;
        };
        let io: TokioIo<Upgraded> = TokioIo::new(upgraded);
        let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
        loop {
            tokio::select! {
                message = socket.next() => match message {
                    Some(Ok(message)) if message.is_text() || message.is_binary() => {
                        if socket.send(message).await.is_err() {
                            return;
                        }
                    }
                    // Pings are answered by the library.
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return,
                },
                () = state.end.begun() => break,
            }
        }
        let away = CloseFrame {
            code: CloseCode::Away,
            reason: "the server stops".into(),
        };
        if socket.close(Some(away)).await.is_ok() {
            // Until the client has said good-bye as well.
            while let Some(Ok(_)) = socket.next().await {}
        }
    }
}
