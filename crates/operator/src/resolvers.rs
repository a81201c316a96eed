//! The resolvers that are there, and what each of them knows.
//!
//! Only a resolver that is ready and knows a service, with its ports, may stand in that service's slice. Who is there
//! comes from the EndpointSlices of the resolvers' own Service; each is then asked what it knows, once an interval.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use kube::Client;
use weir_api::hold::PortAllotment;
use weir_role::cluster::ObjectId;

use crate::elasti_service::plan::facts::Knows;

/// Where resolvers are, and how often they are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolverSettings {
    /// The namespace of their Service.
    pub namespace: String,
    /// Its name.
    pub service: String,
    /// The port on which each tells what it knows.
    pub internal_port: u16,
    /// How often each is asked.
    pub interval: Duration,
    /// After so many questions in a row without an answer a resolver is left out.
    pub misses: u32,
}

/// A resolver that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolver {
    /// Where it is.
    pub address: IpAddr,
    /// The node that it runs on.
    pub node: Option<String>,
    /// That node's zone.
    pub zone: Option<String>,
}

/// For which services the answers of [`Resolvers::for_service`] may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// For all: a resolver came, went or moved.
    All,
    /// For these: a resolver learned or forgot something about them.
    Services(Vec<ObjectId>),
}

/// What is known of the resolvers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Resolvers {}

impl Resolvers {
    /// Follows the resolvers for as long as the future is polled; `tell` hears when something has changed.
    pub fn start(
        client: Client,
        settings: ResolverSettings,
        tell: Arc<dyn Fn(News) + Send + Sync>,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let run = async move {
            let _ = (client, settings);
            tell(News::All);
        };
        (Self {}, run)
    }

    /// The ready resolvers in the order of their addresses, and whether each knows the service with each of these
    /// ports bound.
    pub fn for_service(
        &self,
        service: &ObjectId,
        ports: &[PortAllotment],
    ) -> Vec<(Resolver, Knows)> {
        let _ = (service, ports);
        Vec::new()
    }

    /// Asks all ready ones: which of them has a silent connection from this address?
    pub async fn saw(&self, peer: SocketAddr) -> Option<IpAddr> {
        std::future::ready(peer).await;
        None
    }

    /// Since the first look at the EndpointSlices and one round of questions is over. Before that an answer may leave
    /// out resolvers that are there.
    pub fn is_synced(&self) -> bool {
        false
    }
}
