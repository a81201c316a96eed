//! What stands in for a resolver: its two questions, answered in its form by a real server on a loopback address.

use std::{
    collections::BTreeMap,
    future::pending,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Json, Router,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use serde::Deserialize;
use serde_json::json;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use weir_role::internal_port;

/// How it takes questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mood {
    #[default]
    Well,
    Fails,
    Hangs,
    /// Answers something else.
    Babbles,
    Drains,
    /// Is not synced yet.
    Starts,
}

pub(crate) struct StandIn {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

struct Shared {
    inner: Mutex<Inner>,
    questions: watch::Sender<usize>,
}

#[derive(Default)]
struct Inner {
    mood: Mood,
    generation: u64,
    services: BTreeMap<String, u16>,
    unreachable: Option<(String, SocketAddr)>,
    silent: Vec<SocketAddr>,
    silent_soon: Vec<SocketAddr>,
    hides_silent: bool,
    lists_told: usize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }
}

/// Two of them, on the same port of two addresses.
pub(crate) async fn beside_each_other() -> [StandIn; 2] {
    loop {
        let one = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = one.local_addr().unwrap().port();
        // Somebody else may have it there.
        if let Ok(two) = TcpListener::bind(("127.0.0.2", port)).await {
            return [one, two].map(StandIn::start);
        }
    }
}

impl StandIn {
    fn start(listener: TcpListener) -> Self {
        let local = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            inner: Mutex::default(),
            questions: watch::Sender::new(0),
        });
        let router = Router::new()
            .route("/crd-cache-status", get(status))
            .route("/silent-connections", get(silent))
            .with_state(Arc::clone(&shared));
        Self {
            address: local.ip(),
            port: local.port(),
            shared,
            server: tokio::spawn(internal_port::serve(listener, router, pending())),
        }
    }

    pub(crate) fn is(&self, mood: Mood) {
        self.shared.lock().mood = mood;
    }

    pub(crate) fn learns(&self, service: &str, port: u16) {
        let mut inner = self.shared.lock();
        inner.services.insert(service.to_owned(), port);
        inner.generation += 1;
    }

    /// It cannot connect to this pod of a service any more, or to all again.
    pub(crate) fn cannot_reach(&self, pod: Option<(&str, SocketAddr)>) {
        let pod = pod.map(|(service, endpoint)| (service.to_owned(), endpoint));
        self.shared.lock().unreachable = pod;
    }

    /// As another process.
    pub(crate) fn begins_anew(&self) {
        let mut inner = self.shared.lock();
        inner.services.clear();
        inner.generation += 1000;
    }

    /// It has a connection from there that has said nothing.
    pub(crate) fn accepts(&self, peer: SocketAddr) {
        self.shared.lock().silent.push(peer);
    }

    /// It will have one, but only when it has been asked for it once.
    pub(crate) fn accepts_late(&self, peer: SocketAddr) {
        self.shared.lock().silent_soon.push(peer);
    }

    pub(crate) fn says_nothing_of_connections(&self) {
        self.shared.lock().hides_silent = true;
    }

    pub(crate) fn lists_told(&self) -> usize {
        self.shared.lock().lists_told
    }

    /// Waits until it was asked so many times more.
    pub(crate) async fn asked(&self, more: usize) {
        let mut questions = self.shared.questions.subscribe();
        let enough = *questions.borrow() + more;
        let asked = questions.wait_for(|asked| *asked >= enough);
        let asked = tokio::time::timeout(super::PATIENCE, asked).await;
        asked.expect("it is asked").unwrap();
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.server.abort();
    }
}

#[derive(Deserialize)]
struct Unless {
    unless: Option<u64>,
}

async fn status(State(shared): State<Arc<Shared>>, Query(query): Query<Unless>) -> Response {
    shared.questions.send_modify(|asked| *asked += 1);
    let mood = shared.lock().mood;
    match mood {
        Mood::Hangs => pending().await,
        Mood::Fails => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Mood::Babbles => return Json(json!({"hello": "world"})).into_response(),
        Mood::Well | Mood::Drains | Mood::Starts => {}
    }
    let mut inner = shared.lock();
    let mut body = json!({
        "generation": inner.generation,
        "synced": mood != Mood::Starts,
        "draining": mood == Mood::Drains,
    });
    if let Some((service, endpoint)) = &inner.unreachable {
        body["unreachable"] =
            json!([{"namespace": "shop", "service": service, "endpoint": endpoint.to_string()}]);
    }
    if query.unless == Some(inner.generation) {
        body["unchanged"] = true.into();
    } else {
        inner.lists_told += 1;
        let services = inner.services.iter().map(|(name, port)| {
            json!({
                "namespace": "shop",
                "service": name,
                "ports": [{"name": "http", "resolverPort": port}],
            })
        });
        body["services"] = services.collect();
        body["count"] = inner.services.len().into();
    }
    Json(body).into_response()
}

#[derive(Deserialize)]
struct Whence {
    peer: SocketAddr,
    port_only: bool,
}

async fn silent(State(shared): State<Arc<Shared>>, Query(whence): Query<Whence>) -> Response {
    let mut inner = shared.lock();
    if inner.hides_silent {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let same_port = inner.silent.iter();
    let same_port = same_port.filter(|one| one.port() == whence.peer.port());
    let body = if inner.silent.contains(&whence.peer) {
        json!({"seen": true, "port": 10240, "by": "address"})
    } else if whence.port_only && same_port.count() == 1 {
        json!({"seen": true, "port": 10240, "by": "port"})
    } else {
        json!({"seen": false})
    };
    let late = inner.silent_soon.iter().position(|one| *one == whence.peer);
    if let Some(late) = late {
        let late = inner.silent_soon.swap_remove(late);
        inner.silent.push(late);
    }
    Json(body).into_response()
}
