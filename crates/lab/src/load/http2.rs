//! HTTP/2 without TLS for the load generator: hyper's connection, shared by several workers.
//!
//! Who finds it closed makes a new one, and the others wait for that. Nothing is sent twice.

use std::{error::Error, io, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{net::TcpStream, sync::Mutex, task::JoinHandle};

use super::{
    outcome::Outcome,
    request::{REQUEST_ID, Received, Request, SHA256, Template},
};

/// How often a connection is asked whether it is alive, and how long it may take to say so.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// A connection, or the lack of one.
#[derive(Default)]
pub(super) struct Connection {
    open: Mutex<Option<Open>>,
}

struct Open {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Drop for Open {
    /// The run is over, or the connection is: either way nobody waits for it.
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Sends one request, once, and reads the whole answer.
    pub(super) async fn attempt(
        &self,
        address: SocketAddr,
        template: &Template,
        request: &Request,
    ) -> Result<Received, Outcome> {
        let mut sender = self.sender(address).await?;
        sender.ready().await.map_err(|e| outcome_of(&e))?;
        let message = message(template, request)?;
        let response = sender.send_request(message).await;
        let (head, mut body) = response.map_err(|e| outcome_of(&e))?.into_parts();
        let header = |name: &str| head.headers.get(name).map(|v| v.as_bytes().to_vec());
        let mut received = Received {
            status: head.status.as_u16(),
            request_id: header(REQUEST_ID),
            declared: header(SHA256),
            ..Received::default()
        };
        let mut sink = request.sink();
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => {
                    if let Some(bytes) = frame.data_ref() {
                        sink.take(bytes);
                    }
                }
                // As in HTTP/1.1: a status says more than that its body was cut.
                Err(_) if !head.status.is_success() => break,
                Err(error) => return Err(outcome_of(&error)),
            }
        }
        sink.finish(&mut received);
        Ok(received)
    }

    async fn sender(&self, address: SocketAddr) -> Result<SendRequest<Full<Bytes>>, Outcome> {
        let mut open = self.open.lock().await;
        if let Some(open) = open.as_ref().filter(|open| !open.sender.is_closed()) {
            return Ok(open.sender.clone());
        }
        let stream = TcpStream::connect(address)
            .await
            .and_then(|stream| stream.set_nodelay(true).map(|()| stream))
            .map_err(|error| Outcome::of_io(&error))?;
        let (sender, driver) = http2::Builder::new(TokioExecutor::new())
            // A connection into nowhere must not swallow every request to come.
            .timer(TokioTimer::new())
            .keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| outcome_of(&error))?;
        // What becomes of the connection shows in the requests on it.
        let driver = tokio::spawn(async move { drop(driver.await) });
        *open = Some(Open {
            sender: sender.clone(),
            driver,
        });
        Ok(sender)
    }
}

fn message(template: &Template, request: &Request) -> Result<http::Request<Full<Bytes>>, Outcome> {
    let mut message = http::Request::builder()
        .method(template.method())
        .uri(template.uri.clone())
        .header(REQUEST_ID, &request.id);
    for (name, value) in &template.headers {
        message = message.header(name, value);
    }
    let body = Full::new(request.body.clone());
    message
        .body(body)
        .map_err(|e| Outcome::Other(e.to_string()))
}

fn outcome_of(error: &hyper::Error) -> Outcome {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(found) = cause {
        if let Some(io) = found.downcast_ref::<io::Error>() {
            return Outcome::of_io(io);
        }
        if let Some(h2) = found.downcast_ref::<h2::Error>() {
            if let Some(io) = h2.get_io() {
                return Outcome::of_io(io);
            }
            if h2.is_reset() {
                return Outcome::Reset;
            }
            if h2.is_go_away() {
                return Outcome::Cut;
            }
        }
        cause = found.source();
    }
    if error.is_closed() || error.is_canceled() || error.is_incomplete_message() {
        return Outcome::Cut;
    }
    Outcome::Other(error.to_string())
}
