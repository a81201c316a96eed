//! What a request is for: the phase *identify* of [`weir_wire`], by the port that it came to or, on the shared port, by
//! the host that it names.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
};

use http::{HeaderName, StatusCode};
use weir_wire::{
    answer::Answer,
    shard::{Arrival, Instead, Led, Site},
    sniff::Spoken,
};

use crate::{
    host::{self, HostError},
    metrics::{Extraction, Metrics},
    sources::Sources,
    table::{Route, Routes, Table},
};

/// Leads requests by the table.
pub struct Guide {
    /// What is held.
    pub table: Arc<Table>,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// The shared port.
    pub proxy_port: AtomicU16,
    /// The header that names the target there, before Host.
    pub header_for_host: Option<HeaderName>,
    /// The cluster's domain.
    pub cluster_domain: String,
    /// Who is served.
    pub sources: Sources,
}

impl Site for Guide {
    fn admits(&self, address: IpAddr) -> bool {
        self.sources.admit(address)
    }

    fn turned_away(&self, peer: SocketAddr) {
        self.sources.turned_away(peer);
    }

    fn identify(&self, arrival: &Arrival<'_>) -> Result<Led, Instead> {
        let routes = self.table.routes.load();
        let route = if arrival.port == self.proxy_port.load(Ordering::Relaxed) {
            self.by_host(arrival, &routes)?
        } else {
            routes.by_port.get(&arrival.port).ok_or_else(unknown)?
        };
        if !route.backend.is_ready() && !route.probes.is_empty() {
            let head = arrival.head;
            if let Some(answer) = route.probes.answer(&head.method, &head.uri, &head.headers) {
                route
                    .metrics
                    .finished(&head.method, answer.status, std::time::Duration::ZERO);
                return Err(Instead::Fixed(answer.status, answer.body.clone()));
            }
        }
        Ok(Led {
            backend: Arc::clone(&route.backend),
            // Counted of all, since a service may come to stay behind resolvers while requests are open.
            is_use: !(route.is_behind && is_probe(route, arrival)),
        })
    }

    fn speaks(&self, port: u16) -> Spoken {
        if port == self.proxy_port.load(Ordering::Relaxed) {
            // Without a Host nobody would know for whom it is.
            return Spoken::Http;
        }
        let routes = self.table.routes.load();
        let route = routes.by_port.get(&port);
        route.map_or(Spoken::Http, |route| route.spoken)
    }

    fn lead(&self, port: u16) -> Option<Led> {
        let routes = self.table.routes.load();
        let route = routes.by_port.get(&port)?;
        Some(Led {
            backend: Arc::clone(&route.backend),
            is_use: true,
        })
    }
}

impl Guide {
    /// The shared port; 0 until a free one is taken, if that was asked for.
    pub fn shared_port(&self) -> u16 {
        self.proxy_port.load(Ordering::Relaxed)
    }

    /// It is another one: a free one was taken.
    pub fn set_proxy_port(&self, port: u16) {
        self.proxy_port.store(port, Ordering::Relaxed);
    }

    fn by_host<'r>(&self, arrival: &Arrival<'_>, routes: &'r Routes) -> Result<&'r Route, Instead> {
        match self.find(arrival, routes) {
            Ok(Some(route)) => {
                self.metrics.host_extracted(Extraction::Hit);
                Ok(route)
            }
            Ok(None) => {
                self.metrics.host_extracted(Extraction::Miss);
                Err(unknown())
            }
            Err(error) => {
                self.metrics.host_extracted(Extraction::Error);
                let answer = Answer::new(StatusCode::NOT_FOUND, "no_target", error.to_string());
                Err(Instead::Answer(answer))
            }
        }
    }

    fn find<'r>(
        &self,
        arrival: &Arrival<'_>,
        routes: &'r Routes,
    ) -> Result<Option<&'r Route>, HostError> {
        let header = self.header_for_host.as_ref();
        let target = host::named_by(arrival.head, header, &self.cluster_domain)?;
        let named = routes.by_name.get(target.namespace.as_ref());
        let Some(ports) = named.and_then(|names| names.get(target.service.as_ref())) else {
            return Ok(None);
        };
        Ok(match target.port {
            Some(number) => ports.iter().find(|route| route.number == number),
            None => ports.first(),
        })
    }
}

/// What would be answered without waking its target shows no use either.
fn is_probe(route: &Route, arrival: &Arrival<'_>) -> bool {
    let head = arrival.head;
    let probes = &route.probes;
    !probes.is_empty() && (probes.answer(&head.method, &head.uri, &head.headers)).is_some()
}

/// The same for all that is not held: whether there is such a Service is nobody's business.
fn unknown() -> Instead {
    Instead::Answer(Answer::new(
        StatusCode::NOT_FOUND,
        "unknown_target",
        "no service that is held here is named by this request; is there an ElastiService for it, with this port?",
    ))
}
