//! What the ports answer, always in a form that a program can read.

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State, rejection::BytesRejection},
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::json;
use weir_api::hold::names::http::{
    HEALTH_PATH, INCOMING_REQUEST_PATH, METRICS_PATH, OPERATOR_CACHE_PATH, READY_PATH,
};

use super::{AdminState, MetricsOn, WakeAnswer, signal::Signal};
use crate::metrics::OperatorMetrics;

/// Bytes of a wake signal, at most.
const SIGNAL_BYTES: usize = 4096;

pub(super) fn internal(state: AdminState, metrics: MetricsOn) -> Router {
    let router = Router::new()
        .route(INCOMING_REQUEST_PATH, post(wake))
        .route(OPERATOR_CACHE_PATH, get(cache))
        .layer(DefaultBodyLimit::max(SIGNAL_BYTES));
    let router = match metrics {
        MetricsOn::InternalPort => router.route(METRICS_PATH, get(metrics_for_anybody)),
        MetricsOn::SecurePort => router.route(METRICS_PATH, get(metrics_elsewhere)),
    };
    finish(router, state)
}

pub(super) fn health(state: AdminState) -> Router {
    let router = Router::new()
        .route(HEALTH_PATH, get(async || "ok\n"))
        .route(READY_PATH, get(ready));
    finish(router, state)
}

pub(super) fn metrics_for_all(state: AdminState) -> Router {
    finish(
        Router::new().route(METRICS_PATH, get(metrics_for_anybody)),
        state,
    )
}

pub(super) fn metrics_for_some(state: AdminState) -> Router {
    finish(
        Router::new().route(METRICS_PATH, get(metrics_for_readers)),
        state,
    )
}

fn finish(router: Router<AdminState>, state: AdminState) -> Router {
    router
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .with_state(state)
}

async fn wake(
    State(state): State<AdminState>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    // Who may not wake learns nothing of what is here, not even whether the body was right.
    if let Err(refusal) = state.authority.may_wake(&headers).await {
        state.metrics.woken(refusal.reason());
        return error(refusal.status(), &refusal.to_string());
    }
    let signal = match body {
        Ok(body) => {
            Signal::parse(&body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))
        }
        Err(rejection) => Err((rejection.status(), rejection.body_text())),
    };
    let signal = match signal {
        Ok(signal) => signal,
        Err((status, message)) => {
            state.metrics.woken("bad_request");
            return error(status, &message);
        }
    };
    let answer = state.wakes.wake(signal.service, signal.held).await;
    state.metrics.woken(answer.outcome());
    match answer {
        WakeAnswer::Woken => message("the target is being woken"),
        WakeAnswer::AlreadyAwake => message("the target is awake"),
        WakeAnswer::Unknown => error(
            StatusCode::NOT_FOUND,
            "no ElastiService holds this service here; see --watch-namespace",
        ),
        WakeAnswer::Failed(why) => error(StatusCode::SERVICE_UNAVAILABLE, &why),
    }
}

async fn cache(State(state): State<AdminState>) -> Response {
    Json((state.cache)()).into_response()
}

async fn metrics_for_anybody(State(state): State<AdminState>) -> Response {
    metrics(&state)
}

async fn metrics_for_readers(State(state): State<AdminState>, headers: HeaderMap) -> Response {
    match state.authority.may_read_metrics(&headers).await {
        Ok(()) => metrics(&state),
        Err(refusal) => error(refusal.status(), &refusal.to_string()),
    }
}

async fn metrics_elsewhere() -> Response {
    error(
        StatusCode::NOT_FOUND,
        "metrics are told over TLS; see --metrics-secure and --metrics-bind-address",
    )
}

fn metrics(state: &AdminState) -> Response {
    (
        [(CONTENT_TYPE, OperatorMetrics::CONTENT_TYPE)],
        state.metrics.render(),
    )
        .into_response()
}

async fn ready(State(state): State<AdminState>) -> Response {
    if *state.synced.borrow() {
        return "ok\n".into_response();
    }
    let body = json!({ "ready": false, "missing": ["services are not all known yet"] });
    (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
}

async fn not_found() -> Response {
    error(
        StatusCode::NOT_FOUND,
        "there is nothing here; see /metrics, /crd-cache and /informer/incoming-request on the internal port, /healthz and /readyz on the health port",
    )
}

async fn not_allowed() -> Response {
    error(
        StatusCode::METHOD_NOT_ALLOWED,
        "wake signals are POST, everything else is GET or HEAD",
    )
}

fn message(text: &str) -> Response {
    Json(json!({ "message": text })).into_response()
}

fn error(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({ "error": message }))).into_response()
}
