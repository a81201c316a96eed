//! Accepts connections, and ends them when the time has come.
//!
//! Every connection is a task in one set; those that were upgraded to WebSocket stay in it, since a tunnel is
//! under way as much as a request. A crash drops the set, and with it every socket.

use std::{convert::Infallible, sync::Arc, time::Duration};

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{State, routes, tcp, websocket::Tunnel};

/// How many tunnels may wait to be taken over by their connections' set.
const TUNNELS_ON_THEIR_WAY: usize = 1024;

pub(super) async fn serve(state: Arc<State>, http: TcpListener, tcp: Option<TcpListener>) {
    let crash_by_itself = async {
        match state.settings.crash_after {
            Some(after) => {
                sleep(after).await;
                state
                    .end
                    .crash("the time that it was given to live is over");
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        // Dropping the other branch closes every connection where it stands.
        () = state.end.crashed() => {}
        () = crash_by_itself => {}
        () = accept(&state, http, tcp) => {}
    }
}

/// Accepts until the server is to stop, and then waits for what is under way.
async fn accept(state: &Arc<State>, http: TcpListener, tcp: Option<TcpListener>) {
    let mut connections = JoinSet::new();
    let (upgraded, mut tunnels) = mpsc::channel::<Tunnel>(TUNNELS_ON_THEIR_WAY);
    loop {
        tokio::select! {
            accepted = accept_one(&http) => if let Some(stream) = accepted {
                connections.spawn(serve_http(Arc::clone(state), stream, upgraded.clone()));
            },
            accepted = accept_tcp(tcp.as_ref()) => if let Some(stream) = accepted {
                connections.spawn(tcp::echo(Arc::clone(state), stream));
            },
            Some(tunnel) = tunnels.recv() => {
                connections.spawn(tunnel.run(Arc::clone(state)));
            }
            Some(_) = connections.join_next() => {}
            () = state.end.begun() => break,
        }
    }
    // Closed first: who connects now is refused, as by a process that is gone.
    drop((http, tcp, upgraded));
    let finish = async {
        loop {
            tokio::select! {
                // First, since a tunnel is handed over before its connection's task ends.
                biased;
                Some(tunnel) = tunnels.recv() => {
                    connections.spawn(tunnel.run(Arc::clone(state)));
                }
                ended = connections.join_next() => if ended.is_none() { break },
            }
        }
    };
    // Whoever is not done in time is cut off by the set's end.
    let _ = timeout(state.settings.grace, finish).await;
}

async fn accept_tcp(listener: Option<&TcpListener>) -> Option<TcpStream> {
    match listener {
        Some(listener) => accept_one(listener).await,
        None => std::future::pending().await,
    }
}

async fn accept_one(listener: &TcpListener) -> Option<TcpStream> {
    if let Ok((stream, _)) = listener.accept().await {
        return Some(stream);
    }
    // Too many open files, most likely: at once it would fail again, and again.
    sleep(Duration::from_millis(10)).await;
    None
}

async fn serve_http(state: Arc<State>, stream: TcpStream, upgraded: mpsc::Sender<Tunnel>) {
    state.metrics.connection();
    // Only fails on a socket that is gone, as the next read will find out.
    let _ = stream.set_nodelay(true);
    let service = {
        let state = Arc::clone(&state);
        service_fn(move |request| {
            let (state, upgraded) = (Arc::clone(&state), upgraded.clone());
            async move { Ok::<_, Infallible>(routes::answer(state, upgraded, request).await) }
        })
    };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    builder.http2().timer(TokioTimer::new());
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // How a connection ended is its client's business.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = state.end.begun() => {}
    }
    // Until then answers say that they are the last.
    let lingering = timeout(state.settings.linger, connection.as_mut());
    if lingering.await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}
