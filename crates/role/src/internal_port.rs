//! The server behind ports that only Prometheus, the kubelet and other parts of Weir use: bounded in connections and in
//! time, so that nobody can keep it busy.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};

/// A client has so long to send its headers; an idle connection lasts as long.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// No connection lasts longer: a reader that takes nothing must not keep one for ever.
const CONNECTION_TIMEOUT: Duration = Duration::from_mins(5);
/// Request line and headers.
const HEADER_BYTES: usize = 16 * 1024;
/// Prometheus, the kubelet, the operator and some people.
const CONNECTIONS: usize = 256;
/// After an accept that failed, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers until `shutdown`; then what is under way is cut, since nobody needs it any more.
pub async fn serve(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (listener.accept().await, place)
        };
        tokio::select! {
            () = &mut shutdown => return,
            Some(_) = connections.join_next() => {}
            (accepted, place) = accepted => match accepted {
                Ok((stream, _)) => {
                    let answer = answer(stream, router.clone());
                    connections.spawn(async move {
                        let _place = place;
                        // An end by time-out or by a client's mistake concerns nobody else.
                        let _ = timeout(CONNECTION_TIMEOUT, answer).await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection to the internal port cannot be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn answer(stream: TcpStream, router: Router) -> hyper::Result<()> {
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await
}
