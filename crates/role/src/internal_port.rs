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
    io::{AsyncRead, AsyncWrite},
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
    serve_through(listener, router, async |stream| Some(stream), shutdown).await;
}

/// The same over connections that something is done with first, such as to shake hands; it may turn them down, and must
/// not take for ever.
pub async fn serve_through<S, F>(
    listener: TcpListener,
    router: Router,
    open: impl Fn(TcpStream) -> F + Send + Sync + 'static,
    shutdown: impl Future<Output = ()>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = Option<S>> + Send,
{
    let open = Arc::new(open);
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
                    let (open, router) = (Arc::clone(&open), router.clone());
                    connections.spawn(async move {
                        let _place = place;
                        let Some(stream) = open(stream).await else {
                            return;
                        };
                        // An end by time-out or by a client's mistake concerns nobody else.
                        let _ = timeout(CONNECTION_TIMEOUT, answer(stream, router)).await;
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

async fn answer<S>(stream: S, router: Router) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await
}
