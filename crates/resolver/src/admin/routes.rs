//! What the internal port answers, always in a form that a program can read.

use std::net::SocketAddr;

use axum::{
    Json, Router,
    extract::{Query, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use weir_api::hold::names::http::{
    HEALTH_PATH, METRICS_PATH, QUEUE_STATUS_PATH, READY_PATH, RESOLVER_CACHE_STATUS_PATH,
    SILENT_CONNECTIONS_PATH, USAGE_PATH,
};

use super::{
    AdminState, KnownService, ServiceUsage, Unreachable,
    sibling::{self, Sibling},
    silent,
};
use crate::metrics::Metrics;

/// What is held, and why; for people.
const HELD_PATH: &str = "/debug/held";

pub(super) fn router(state: AdminState) -> Router {
    Router::new()
        .route(METRICS_PATH, get(metrics))
        .route(HEALTH_PATH, get(async || "ok\n"))
        .route(READY_PATH, get(ready))
        .route(QUEUE_STATUS_PATH, get(queue_status))
        .route(RESOLVER_CACHE_STATUS_PATH, get(cache_status))
        .route(SILENT_CONNECTIONS_PATH, get(silent_connections))
        .route(USAGE_PATH, get(usage))
        .route(HELD_PATH, get(held))
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .with_state(state)
}

/// `?alone=true`: not for a sibling as well, which is who asks.
#[derive(Deserialize)]
struct Alone {
    #[serde(default)]
    alone: bool,
}

impl AdminState {
    fn sibling(&self, alone: bool) -> Option<&Sibling> {
        self.sibling.as_deref().filter(|_| !alone)
    }
}

async fn metrics(State(state): State<AdminState>, Query(alone): Query<Alone>) -> impl IntoResponse {
    (state.refresh)();
    let mut text = state.metrics.render();
    if let Some(sibling) = state.sibling(alone.alone) {
        let path = format!("{METRICS_PATH}?alone=true");
        let theirs = sibling.text(&path).await.unwrap_or_default();
        text = sibling::merge_metrics(&text, &theirs);
    }
    ([(CONTENT_TYPE, Metrics::CONTENT_TYPE)], text)
}

async fn ready(State(state): State<AdminState>) -> Response {
    let missing = state.readiness.missing();
    if missing.is_empty() {
        return "ok\n".into_response();
    }
    let body = json!({ "ready": false, "missing": missing });
    (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
}

#[derive(Deserialize)]
struct Which {
    namespace: Option<String>,
    service: Option<String>,
    #[serde(default)]
    alone: bool,
}

async fn queue_status(State(state): State<AdminState>, Query(which): Query<Which>) -> Response {
    let (Some(namespace), Some(service)) = (which.namespace, which.service) else {
        return error(
            StatusCode::BAD_REQUEST,
            "name the service as ?namespace=…&service=…",
        );
    };
    let mut held = (state.held)().iter().any(|report| {
        *report.service.namespace == *namespace
            && *report.service.name == *service
            && report.requests > 0
    });
    if let Some(sibling) = state.sibling(which.alone)
        && !held
    {
        let reports: Option<Vec<Value>> = sibling.json(&format!("{HELD_PATH}?alone=true")).await;
        let name = format!("{namespace}/{service}");
        let mut reports = reports.iter().flatten();
        held = reports.any(|report| report["service"] == *name && report["requests"] != 0);
    }
    Json(json!({ "queueStatus": u8::from(held) })).into_response()
}

#[derive(Serialize)]
struct CacheStatus {
    generation: u64,
    synced: bool,
    draining: bool,
    count: usize,
    services: Vec<KnownService>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreachable: Vec<Unreachable>,
}

#[derive(Deserialize)]
struct Unless {
    unless: Option<String>,
    #[serde(default)]
    alone: bool,
}

/// With `?unless=` the list is left out if it is the one that was told under that number: the operator asks every
/// second, and 10,000 services are a megabyte. Who is unreachable is told each time: mostly nobody is.
async fn cache_status(State(state): State<AdminState>, Query(query): Query<Unless>) -> Response {
    let Ok(unless) = query.unless.as_deref().map(str::parse::<u64>).transpose() else {
        return error(
            StatusCode::BAD_REQUEST,
            "give the generation of an earlier answer, a number, as ?unless=…",
        );
    };
    let mut generation = (state.generation)();
    let mut unreachable = (state.unreachable)();
    let mut theirs = None;
    if let Some(sibling) = state.sibling(query.alone) {
        let both = sibling.beside(generation).await;
        (generation, theirs) = (both.generation, both.theirs);
        unreachable = sibling::unreachable_to_either(unreachable, both.unreachable);
    }
    let synced = state.readiness.is_synced();
    let draining = state.readiness.is_draining();
    if unless == Some(generation) {
        let mut body = json!({
            "generation": generation,
            "unchanged": true,
            "synced": synced,
            "draining": draining,
        });
        if !unreachable.is_empty() {
            body["unreachable"] = json!(unreachable);
        }
        return Json(body).into_response();
    }
    let mut services = (state.services)();
    if let Some(theirs) = theirs {
        services = sibling::known_to_both(services, &theirs);
    }
    let body = CacheStatus {
        generation,
        synced,
        draining,
        count: services.len(),
        services,
        unreachable,
    };
    Json(body).into_response()
}

#[derive(Deserialize)]
struct Whence {
    peer: Option<String>,
    port_only: Option<String>,
    #[serde(default)]
    alone: bool,
}

async fn silent_connections(
    State(state): State<AdminState>,
    Query(whence): Query<Whence>,
) -> Response {
    let peer = whence.peer.and_then(|peer| peer.parse::<SocketAddr>().ok());
    let port_only = match whence.port_only.as_deref() {
        None | Some("false") => Some(false),
        Some("true") => Some(true),
        Some(_) => None,
    };
    let (Some(peer), Some(port_only)) = (peer, port_only) else {
        return error(
            StatusCode::BAD_REQUEST,
            "name the other side as ?peer=address:port, and if the port may be enough add &port_only=true",
        );
    };
    let found = silent::find(&(state.silent)(peer.port()), peer, port_only);
    if let (Some(sibling), None) = (state.sibling(whence.alone), &found) {
        let path =
            format!("{SILENT_CONNECTIONS_PATH}?peer={peer}&port_only={port_only}&alone=true");
        if let Some(theirs) = sibling.json::<Value>(&path).await {
            return Json(theirs).into_response();
        }
    }
    let body = match found {
        Some((connection, by)) => json!({ "seen": true, "port": connection.port, "by": by }),
        None => json!({ "seen": false }),
    };
    Json(body).into_response()
}

async fn usage(State(state): State<AdminState>, Query(alone): Query<Alone>) -> Response {
    let mut services = (state.usage)();
    if let Some(sibling) = state.sibling(alone.alone) {
        let theirs: Option<Vec<ServiceUsage>> =
            sibling.json(&format!("{USAGE_PATH}?alone=true")).await;
        let Some(theirs) = theirs else {
            // Half of the connections are with it: what we know ourselves is not the truth.
            return error(
                StatusCode::SERVICE_UNAVAILABLE,
                "the other resolver of this pod does not say how much its services are used",
            );
        };
        services = sibling::used_through_both(services, &theirs);
    }
    Json(services).into_response()
}

async fn held(State(state): State<AdminState>, Query(alone): Query<Alone>) -> Response {
    let mut all: Vec<Value> = (state.held)().iter().map(|report| json!(report)).collect();
    if let Some(sibling) = state.sibling(alone.alone) {
        let theirs: Option<Vec<Value>> = sibling.json(&format!("{HELD_PATH}?alone=true")).await;
        all.extend(theirs.unwrap_or_default());
    }
    Json(all).into_response()
}

async fn not_found() -> Response {
    error(
        StatusCode::NOT_FOUND,
        "there is nothing here; see /metrics, /healthz, /readyz, /queue-status, /crd-cache-status, /silent-connections, /usage and /debug/held",
    )
}

async fn not_allowed() -> Response {
    error(
        StatusCode::METHOD_NOT_ALLOWED,
        "only GET and HEAD are possible here",
    )
}

fn error(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({ "error": message }))).into_response()
}
