//! What a pod says of its own readiness, as plain values: its containers, and the probes by which the kubelet judges them.
//!
//! `index` puts these beside the endpoints that are not ready yet, `early` acts on them. [`object`] is what is read of a Pod
//! at all, [`read`] what it means.

pub mod object;
mod read;
#[cfg(test)]
mod tests;

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use http::{HeaderName, HeaderValue, uri::PathAndQuery};

/// A pod whose readiness can be found out: not ending, without readiness gates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodView {
    /// Tells it from another pod of the same name.
    pub uid: Arc<str>,
    /// Its addresses; the first is the one that the kubelet asks. Never empty.
    pub addresses: Vec<IpAddr>,
    /// All that must be ready, sidecars among them. Never empty.
    pub containers: Vec<ContainerView>,
}

/// A container of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerView {
    /// Its present run, if it runs: another one after a restart.
    pub run: Option<Arc<str>>,
    /// The kubelet says that it has started.
    pub is_started: bool,
    /// The kubelet says that it is ready.
    pub is_ready: bool,
    /// What must succeed once before anything else is asked.
    pub startup: Option<Check>,
    /// What must succeed then.
    pub readiness: Option<Check>,
}

/// Who can find out whether a probe succeeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// Whoever reaches the pod.
    Ask(Arc<Probe>),
    /// Only the kubelet: it runs in the container, or asks elsewhere.
    Kubelet,
}

/// A probe that can be asked over the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The port of the pod.
    pub port: u16,
    /// What is asked there.
    pub action: Action,
    /// Not sooner than this after the container runs.
    pub initial_delay: Duration,
    /// How far successes are apart, where several are needed.
    pub period: Duration,
    /// An answer that takes longer is none.
    pub timeout: Duration,
    /// So many successes in a row are needed.
    pub successes: u32,
    /// So many failures in a row end it.
    pub failures: u32,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A GET; a status from 200 to 399 is a success.
    Http {
        /// Over TLS, whoever's certificate it is.
        tls: bool,
        /// The path, with its query.
        path: PathAndQuery,
        /// Headers, Host perhaps among them.
        headers: Vec<(HeaderName, HeaderValue)>,
    },
    /// A connection.
    Tcp,
    /// The health of this service, by gRPC's own protocol for it.
    Grpc {
        /// Its name; empty: the whole server.
        service: String,
    },
}

/// An endpoint that is listed and not ready, and whose pod is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Starting {
    /// Where it listens.
    pub address: SocketAddr,
    /// Whose it is.
    pub pod: Arc<PodView>,
}
