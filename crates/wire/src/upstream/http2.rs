//! HTTP/2 connections to endpoints: one for each endpoint and shard, shared by all its requests.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{Request, Response};
use hyper::{
    body::Incoming,
    client::conn::http2::{Builder, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::{Cause, Failure, cause_of, connect};
use crate::{body::Outbound, lock};

/// What one stream may have on its way to us before we read it, and all of a connection together.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// The connections of one shard.
#[derive(Debug, Default)]
pub(crate) struct Http2Pool {
    open: Mutex<HashMap<SocketAddr, Arc<Slot>>>,
}

#[derive(Debug, Default)]
struct Slot {
    ready: Mutex<Option<SendRequest<Outbound>>>,
    /// Held while a connection is made, so that only one is.
    connecting: tokio::sync::Mutex<()>,
}

impl Http2Pool {
    /// Sends a request to this endpoint and waits for the head of the answer.
    pub(crate) async fn exchange(
        &self,
        address: SocketAddr,
        patience: Duration,
        request: Request<Outbound>,
    ) -> Result<Response<Incoming>, Failure> {
        let mut send = match self.sender(address, patience).await {
            Ok(send) => send,
            Err(cause) => {
                return Err(Failure {
                    cause,
                    unsent: Some(Box::new(request)),
                });
            }
        };
        send.try_send_request(request)
            .await
            .map_err(|mut error| Failure {
                cause: cause_of(error.error()),
                unsent: error.take_message().map(Box::new),
            })
    }

    async fn sender(
        &self,
        address: SocketAddr,
        patience: Duration,
    ) -> Result<SendRequest<Outbound>, Cause> {
        let slot = Arc::clone(lock(&self.open).entry(address).or_default());
        if let Some(send) = slot.get() {
            return Ok(send);
        }
        let _only = slot.connecting.lock().await;
        if let Some(send) = slot.get() {
            return Ok(send);
        }
        let stream = connect(address, patience).await?;
        let (send, driver) = Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|_| Cause::Broken)?;
        // Ends by itself when the other side closes, or when the last sender is dropped and the last stream done.
        tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%address, %error, "an HTTP/2 connection to an endpoint has ended");
            }
        });
        *lock(&slot.ready) = Some(send.clone());
        Ok(send)
    }

    /// Forgets connections that have ended.
    pub(crate) fn tidy(&self) {
        lock(&self.open).retain(|_, slot| slot.get().is_some() || Arc::strong_count(slot) > 1);
    }
}

impl Slot {
    fn get(&self) -> Option<SendRequest<Outbound>> {
        lock(&self.ready)
            .as_ref()
            .filter(|send| !send.is_closed())
            .cloned()
    }
}
