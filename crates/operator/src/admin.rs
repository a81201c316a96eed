//! The operator's ports: wake signals from resolvers, metrics, health.
//!
//! What is shown and done comes in through [`AdminState`], so that a test can show anything. [`authority`] says who may
//! do what, `signal` what a wake signal says, `routes` what is answered, [`secure`] tells metrics over TLS, [`table`] is the table of services that the
//! peers' resolvers read.

pub mod authority;
mod routes;
pub mod secure;
mod signal;
pub mod table;

use std::{future::Future, sync::Arc};

pub use authority::Authority;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::{net::TcpListener, sync::watch};
use weir_role::{cluster::ObjectId, internal_port};

use crate::metrics::OperatorMetrics;

/// What the ports show and do.
#[derive(Clone)]
pub struct AdminState {
    /// Who wakes.
    pub wakes: Arc<dyn Wakes>,
    /// The counts.
    pub metrics: Arc<OperatorMetrics>,
    /// Who may do what.
    pub authority: Arc<Authority>,
    /// The table of services; see [`table`] for its form.
    pub cache: Arc<dyn Fn() -> Value + Send + Sync>,
    /// Whether everything that is watched was seen once.
    pub synced: watch::Receiver<bool>,
}

/// Wakes the target of a Service. Every operator does, leader or not.
pub trait Wakes: Send + Sync {
    /// Requests are held for a service: so many. Called for every signal, and dropped half-way when who sent it goes away:
    /// they send it again.
    fn wake(&self, service: ObjectId, held: u64) -> BoxFuture<'_, WakeAnswer>;
}

/// What came of a wake signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WakeAnswer {
    /// The target starts.
    Woken,
    /// It is awake.
    AlreadyAwake,
    /// No such service is held here.
    Unknown,
    /// It could not be woken; this is why, for the log of who asked.
    Failed(String),
}

/// Where metrics are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsOn {
    /// On the internal port as well.
    InternalPort,
    /// Only over TLS.
    SecurePort,
}

/// The internal port: wake signals, the table of services, and metrics unless they are secured.
pub async fn serve_internal(
    listener: TcpListener,
    state: AdminState,
    metrics: MetricsOn,
    shutdown: impl Future<Output = ()>,
) {
    internal_port::serve(listener, routes::internal(state, metrics), shutdown).await;
}

/// The health port.
pub async fn serve_health(
    listener: TcpListener,
    state: AdminState,
    shutdown: impl Future<Output = ()>,
) {
    internal_port::serve(listener, routes::health(state), shutdown).await;
}

/// Metrics on a port of their own, for anybody.
pub async fn serve_metrics(
    listener: TcpListener,
    state: AdminState,
    shutdown: impl Future<Output = ()>,
) {
    internal_port::serve(listener, routes::metrics_for_all(state), shutdown).await;
}

impl WakeAnswer {
    /// A label for metrics, out of a fixed set.
    pub const fn outcome(&self) -> &'static str {
        match self {
            Self::Woken => "woken",
            Self::AlreadyAwake => "awake",
            Self::Unknown => "unknown",
            Self::Failed(_) => "failed",
        }
    }
}
