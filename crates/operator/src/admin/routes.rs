//! What the ports answer, always in a form that a program can read.

use axum::Router;

use super::{AdminState, MetricsOn};

pub(super) fn internal(state: AdminState, metrics: MetricsOn) -> Router {
    let _ = (state, metrics);
    Router::new()
}

pub(super) fn health(state: AdminState) -> Router {
    drop(state);
    Router::new()
}

pub(super) fn metrics_for_all(state: AdminState) -> Router {
    drop(state);
    Router::new()
}
