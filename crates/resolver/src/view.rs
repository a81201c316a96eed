//! What the resolver knows of the world, as plain values: one [`ServiceView`] for each Service that is held.
//!
//! `index` makes these from Kubernetes' objects, `targets` from a file; `table` acts on them. Nothing else passes
//! between the two sides.

use std::{fmt, net::SocketAddr, sync::Arc};

use serde::{Serialize, Serializer};

use crate::{pod::Starting, probe::ProbeRules};

/// A Service, by namespace and name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

/// What is known of one Service that is held.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceView {
    /// Which Service it is.
    pub id: ServiceId,
    /// The ElastiService that holds it; none where it stands in a file.
    pub held_by: Option<Arc<str>>,
    /// The workload behind it, as the metrics' label `target` has it: `Deployment-httpbin`.
    pub target: Arc<str>,
    /// Its TCP ports, in the Service's order.
    pub ports: Vec<PortView>,
    /// What is answered while no endpoint is ready, without waking.
    pub probes: Arc<ProbeRules>,
    /// All its clients come through resolvers, also while it is awake: then its use is counted, and nobody is asked to move on.
    pub behind: bool,
    /// The Service leads to the pods by itself again: clients that still come here are asked to move on.
    pub switched: bool,
}

/// One port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortView {
    /// Its name; empty where the Service has one port without a name.
    pub name: Arc<str>,
    /// Its number in the Service.
    pub number: u16,
    /// The port on which the resolver listens for it; none: reached through the shared port alone.
    pub resolver_port: Option<u16>,
    /// What is spoken there.
    pub protocol: Protocol,
    /// Where ready pods listen: serving and not terminating. Sorted, without duplicates.
    pub endpoints: Arc<[SocketAddr]>,
    /// Where pods will listen that are not ready yet, as far as it may be found out before the kubelet says so. Sorted.
    pub starting: Arc<[Starting]>,
}

/// What is spoken on a port, by `appProtocol`, then by the port's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Nothing is said: the first bytes decide.
    Sniff,
    /// HTTP/1.1; a client that begins with HTTP/2's preface is served all the same.
    Http1,
    /// HTTP/2 without TLS, gRPC among it.
    Http2,
    /// TLS: passed through.
    Tls,
    /// Something else, in which the server may speak first: passed through.
    Tcp,
}

/// How a service has changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// It is new, or something about it is.
    Set(Arc<ServiceView>),
    /// It is no longer held.
    Gone(ServiceId),
}

impl ServiceId {
    /// The Service of this name in this namespace.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ServiceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for ServiceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for ServiceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
