//! What the internal port answers, always in a form that a program can read.

use axum::{
    Json, Router,
    extract::{Query, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use serde::Deserialize;
use serde_json::json;
use weir_api::hold::names::http::{
    HEALTH_PATH, METRICS_PATH, QUEUE_STATUS_PATH, READY_PATH, RESOLVER_CACHE_STATUS_PATH,
};

use super::AdminState;
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
        .route(HELD_PATH, get(held))
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .with_state(state)
}

async fn metrics(State(state): State<AdminState>) -> impl IntoResponse {
    (state.refresh)();
    (
        [(CONTENT_TYPE, Metrics::CONTENT_TYPE)],
        state.metrics.render(),
    )
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
}

async fn queue_status(State(state): State<AdminState>, Query(which): Query<Which>) -> Response {
    let (Some(namespace), Some(service)) = (which.namespace, which.service) else {
        return error(
            StatusCode::BAD_REQUEST,
            "name the service as ?namespace=…&service=…",
        );
    };
    let held = (state.held)().iter().any(|report| {
        *report.service.namespace == *namespace
            && *report.service.name == *service
            && report.requests > 0
    });
    Json(json!({ "queueStatus": u8::from(held) })).into_response()
}

async fn cache_status(State(state): State<AdminState>) -> Response {
    let services: Vec<_> = (state.services)()
        .iter()
        .map(|id| json!({ "namespace": &*id.namespace, "service": &*id.name }))
        .collect();
    let body = json!({
        "synced": state.readiness.is_synced(),
        "count": services.len(),
        "services": services,
    });
    Json(body).into_response()
}

async fn held(State(state): State<AdminState>) -> Response {
    Json((state.held)()).into_response()
}

async fn not_found() -> Response {
    error(
        StatusCode::NOT_FOUND,
        "there is nothing here; see /metrics, /healthz, /readyz, /queue-status, /crd-cache-status and /debug/held",
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
