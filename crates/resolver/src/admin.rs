//! The internal port: metrics, health, and what is held.
//!
//! Everything shown comes in through [`AdminState`], so that a test can show anything. [`readiness`] says whether
//! requests may be sent here, [`routes`] what is answered.

pub mod readiness;
mod routes;

use std::{future::Future, sync::Arc};

pub use readiness::Readiness;
use serde::Serialize;
use tokio::net::TcpListener;
use weir_role::internal_port;

use crate::{metrics::Metrics, view::ServiceId};

/// What the internal port shows.
#[derive(Clone)]
pub struct AdminState {
    /// The counts.
    pub metrics: Arc<Metrics>,
    /// Whether requests may be sent here.
    pub readiness: Arc<Readiness>,
    /// Brings counts up to date before they are shown.
    pub refresh: Arc<dyn Fn() + Send + Sync>,
    /// What is held now, a report for each service for which anything is.
    pub held: Arc<dyn Fn() -> Vec<HeldReport> + Send + Sync>,
    /// The services that are known.
    pub services: Arc<dyn Fn() -> Vec<ServiceId> + Send + Sync>,
}

/// What is held for one service, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldReport {
    /// The service, as `namespace/name`.
    pub service: ServiceId,
    /// Why it is held, such as `no ready endpoint`.
    pub reason: String,
    /// How many requests.
    pub requests: usize,
    /// How many bytes of their bodies.
    pub bytes: usize,
    /// How long the oldest has waited.
    pub oldest_seconds: f64,
}

/// Answers until `shutdown`; then what is under way is cut, since nobody needs it any more.
pub async fn serve(listener: TcpListener, state: AdminState, shutdown: impl Future<Output = ()>) {
    internal_port::serve(listener, routes::router(state), shutdown).await;
}
