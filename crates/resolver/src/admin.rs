//! The internal port: metrics, health, and what is held.
//!
//! Everything shown comes in through [`AdminState`], so that a test can show anything. [`readiness`] says whether
//! requests may be sent here, [`routes`] what is answered, [`silent`] which connection is meant by who asks for one,
//! [`sibling`] what another resolver in the same pod adds to it.

pub mod readiness;
mod routes;
pub mod sibling;
mod silent;

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

pub use readiness::Readiness;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sibling::Sibling;
use tokio::net::TcpListener;
use weir_role::internal_port;
use weir_wire::{client::Silent, usage::Usage};

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
    /// How much the services are used that stay behind resolvers, in order.
    pub usage: Arc<dyn Fn() -> Vec<ServiceUsage> + Send + Sync>,
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

/// How much a service is used that stays behind resolvers. A request that a rule of `probeResponse` matches is no use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceUsage {
    /// Its namespace.
    #[serde(serialize_with = "text", deserialize_with = "shared")]
    pub namespace: Arc<str>,
    /// Its name.
    #[serde(serialize_with = "text", deserialize_with = "shared")]
    pub service: Arc<str>,
    /// Requests and connections that are held or being served.
    pub open: usize,
    /// How long ago the last of them ended; none if there has not been one since it is counted.
    pub ended_seconds_ago: Option<f64>,
    /// How long it has been counted.
    pub counted_seconds: f64,
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

impl ServiceUsage {
    pub(crate) fn unused(namespace: &Arc<str>, service: &Arc<str>, counted: Duration) -> Self {
        Self {
            namespace: Arc::clone(namespace),
            service: Arc::clone(service),
            open: 0,
            ended_seconds_ago: None,
            counted_seconds: counted.as_secs_f64(),
        }
    }

    /// On one port more.
    pub(crate) fn add(&mut self, port: Usage) {
        self.open += port.open;
        let ended = port.ended.map(|ago| ago.as_secs_f64());
        self.ended_seconds_ago = sooner(self.ended_seconds_ago, ended);
    }

    /// Through another process as well.
    fn also(&mut self, other: &Self) {
        self.open += other.open;
        self.ended_seconds_ago = sooner(self.ended_seconds_ago, other.ended_seconds_ago);
        self.counted_seconds = self.counted_seconds.min(other.counted_seconds);
    }
}

fn sooner(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::min)
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
