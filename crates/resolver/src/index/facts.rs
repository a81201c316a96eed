//! What the index keeps of each object: only what a view is made of, so that ten thousand fit in little memory and
//! changes of anything else go unnoticed.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::Service,
    discovery::v1::{Endpoint, EndpointSlice},
};
use kube::ResourceExt;
use weir_api::hold::{
    ElastiService,
    names::{AddressFamily, SERVICE_NAME_LABEL, SLICE_MANAGED_BY, SLICE_MANAGED_BY_LABEL, metrics},
};
use weir_role::cluster::ObjectId;

use super::{compile, protocol};
use crate::{
    probe::ProbeRules,
    view::{Protocol, ServiceId},
};

/// Kubernetes leaves it out where it is TCP.
const TCP: &str = "TCP";

/// An ElastiService's place among those that want the same: older first, then by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// An object without a time is one that the API server has not seen: it comes last.
    no_time: bool,
    created: Timestamp,
    pub(super) object: ObjectId,
}

/// An ElastiService: which Service it holds, and how.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claim {
    pub(super) rank: Rank,
    pub(super) service: ServiceId,
    pub(super) target: Arc<str>,
    pub(super) probes: Arc<ProbeRules>,
    allotments: Vec<(Box<str>, u16)>,
}

/// The TCP ports of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceFacts {
    pub(super) ports: Vec<PortFacts>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PortFacts {
    pub(super) name: Arc<str>,
    pub(super) number: u16,
    pub(super) protocol: Protocol,
}

/// The ready part of an EndpointSlice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SliceFacts {
    pub(super) service: ServiceId,
    /// It leads to the resolvers, not to pods.
    pub(super) ours: bool,
    ports: Vec<(Box<str>, u16)>,
    addresses: Vec<IpAddr>,
}

impl Rank {
    fn of(object: &ElastiService) -> Self {
        let created = object
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0);
        Self {
            no_time: created.is_none(),
            created: created.unwrap_or(Timestamp::UNIX_EPOCH),
            object: ObjectId::of(object),
        }
    }
}

impl Claim {
    /// What an object says, and what of it cannot be used. `known` are its rules as they were.
    pub(super) fn of(
        object: &ElastiService,
        known: Option<&Arc<ProbeRules>>,
    ) -> (Self, Vec<String>) {
        let id = ObjectId::of(object);
        let (probes, problems) = compile(&object.spec.probe_response, known);
        let workload = &object.spec.scale_target_ref;
        let (_, kind) = workload.canonical();
        let status = object.status.as_ref();
        let claim = Self {
            rank: Rank::of(object),
            service: ServiceId {
                namespace: id.namespace,
                name: object.spec.service.as_str().into(),
            },
            target: metrics::scale_target(kind, &workload.name).into(),
            probes,
            allotments: status
                .iter()
                .flat_map(|status| &status.ports)
                .filter(|port| port.resolver_port != 0)
                .map(|port| (port.name.as_str().into(), port.resolver_port))
                .collect(),
        };
        (claim, problems)
    }

    /// The resolver's port for the Service's port of this name.
    pub(super) fn allotted(&self, name: &str) -> Option<u16> {
        self.allotments
            .iter()
            .find(|(allotted, _)| **allotted == *name)
            .map(|(_, number)| *number)
    }
}

impl ServiceFacts {
    pub(super) fn of(object: &Service) -> Self {
        let ports = object.spec.iter().flat_map(|spec| spec.ports.iter());
        let ports = ports.flatten();
        Self {
            ports: ports
                .filter(|port| port.protocol.as_deref().unwrap_or(TCP) == TCP)
                .filter_map(|port| {
                    let name = port.name.as_deref().unwrap_or_default();
                    Some(PortFacts {
                        name: name.into(),
                        number: number(port.port)?,
                        protocol: protocol::of(port.app_protocol.as_deref(), name),
                    })
                })
                .collect(),
        }
    }
}

impl SliceFacts {
    /// Nothing for a slice that is no Service's.
    pub(super) fn of(object: &EndpointSlice) -> Option<Self> {
        let labels = object.labels();
        let service = labels.get(SERVICE_NAME_LABEL)?;
        let ours = labels
            .get(SLICE_MANAGED_BY_LABEL)
            .is_some_and(|by| by == SLICE_MANAGED_BY);
        let family = match object.address_type.as_str() {
            family if family == AddressFamily::V4.as_str() => Some(AddressFamily::V4),
            family if family == AddressFamily::V6.as_str() => Some(AddressFamily::V6),
            // Names would have to be looked up, by whom?
            _ => None,
        };
        let mut addresses: Vec<IpAddr> = object
            .endpoints
            .iter()
            .filter(|endpoint| is_ready(endpoint))
            // Kubernetes gives no meaning to further addresses of one endpoint.
            .filter_map(|endpoint| endpoint.addresses.first()?.parse().ok())
            .filter(|address: &IpAddr| match family {
                Some(AddressFamily::V4) => address.is_ipv4(),
                Some(AddressFamily::V6) => address.is_ipv6(),
                None => false,
            })
            .collect();
        addresses.sort_unstable();
        addresses.dedup();
        let ports = object.ports.iter().flatten();
        Some(Self {
            service: ServiceId::new(&object.namespace().unwrap_or_default(), service),
            ours,
            ports: ports
                .filter(|port| port.protocol.as_deref().unwrap_or(TCP) == TCP)
                .filter_map(|port| {
                    let name = port.name.as_deref().unwrap_or_default();
                    Some((name.into(), number(port.port?)?))
                })
                .collect(),
            addresses,
        })
    }

    /// Where the port of this name is. A name may stand for several numbers, where pods differ.
    pub(super) fn endpoints(&self, name: &str) -> impl Iterator<Item = SocketAddr> {
        self.ports
            .iter()
            .filter(move |(port, _)| **port == *name)
            .flat_map(|(_, number)| {
                self.addresses
                    .iter()
                    .map(|address| SocketAddr::new(*address, *number))
            })
    }
}

/// `ready` lies where a Service publishes pods that are not; `serving` does not, but older servers leave it out.
fn is_ready(endpoint: &Endpoint) -> bool {
    let Some(conditions) = &endpoint.conditions else {
        return true;
    };
    conditions.serving.or(conditions.ready).unwrap_or(true)
        && !conditions.terminating.unwrap_or(false)
}

fn number(port: i32) -> Option<u16> {
    u16::try_from(port).ok().filter(|port| *port != 0)
}
