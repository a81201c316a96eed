//! The internal port: metrics, health, and what is held.
//!
//! Everything shown comes in through [`AdminState`], so that a test can show anything. [`readiness`] says whether
//! requests may be sent here, [`routes`] what is answered, [`silent`] which connection is meant by who asks for one,
//! [`sibling`] what another resolver in the same pod adds to it.

pub mod readiness;
mod routes;
pub mod sibling;
mod silent;

use std::{future::Future, net::SocketAddr, sync::Arc};

pub use readiness::Readiness;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sibling::Sibling;
use tokio::net::TcpListener;
use weir_role::internal_port;
use weir_wire::client::Silent;

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
    pub services: Arc<dyn Fn() -> Vec<KnownService> + Send + Sync>,
    /// A number that changes whenever those do, and is another in another process. Read before them, so that what is
    /// told under a number is never older than it.
    pub generation: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Services with a ready pod to which connections time out, in order.
    pub unreachable: Arc<dyn Fn() -> Vec<Unreachable> + Send + Sync>,
    /// The clients' connections from this port of any address that have said nothing.
    pub silent: Arc<dyn Fn(u16) -> Vec<Silent> + Send + Sync>,
    /// Another resolver that shares our ports.
    pub sibling: Option<Arc<Sibling>>,
}

/// A service that is known, with the ports where its requests can come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownService {
    /// Its namespace.
    #[serde(serialize_with = "text", deserialize_with = "shared")]
    pub namespace: Arc<str>,
    /// Its name.
    #[serde(serialize_with = "text", deserialize_with = "shared")]
    pub service: Arc<str>,
    /// Its ports of its own that are bound now.
    pub ports: Vec<BoundPort>,
}

/// A port of a service that is listened on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BoundPort {
    /// The port's name in the Service.
    #[serde(serialize_with = "text", deserialize_with = "shared")]
    pub name: Arc<str>,
    /// Where it is listened on.
    pub resolver_port: u16,
}

/// A service with a ready pod to which connections time out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Unreachable {
    /// Its namespace.
    #[serde(serialize_with = "text", deserialize_with = "shared")]
    pub namespace: Arc<str>,
    /// Its name.
    #[serde(serialize_with = "text", deserialize_with = "shared")]
    pub service: Arc<str>,
    /// Where the pod listens; of several, the first.
    pub endpoint: SocketAddr,
}

/// What is held for one service, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldReport {
    /// The service, as `namespace/name`.
    pub service: ServiceId,
    /// Why it is held, such as `no ready endpoint`.
    pub reason: String,
    /// How many requests, and connections that are to be passed through.
    pub requests: usize,
    /// How many of them are connections that are to be passed through.
    pub connections: usize,
    /// How many bytes of their bodies, and of what was said on those connections.
    pub bytes: usize,
    /// How long the oldest has waited.
    pub oldest_seconds: f64,
}

fn text<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    String::deserialize(deserializer).map(Arc::from)
}

/// Answers until `shutdown`; then what is under way is cut, since nobody needs it any more.
pub async fn serve(listener: TcpListener, state: AdminState, shutdown: impl Future<Output = ()>) {
    internal_port::serve(listener, routes::router(state), shutdown).await;
}
