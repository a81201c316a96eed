//! What the index keeps of each object: only what a view is made of, so that ten thousand fit in little memory and
//! changes of anything else go unnoticed.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
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
    ElastiService, Trigger,
    names::{
        AddressFamily, SERVICE_NAME_LABEL, SLICE_MANAGED_BY_LABEL, leads_to_resolvers, metrics,
    },
};
use weir_role::cluster::ObjectId;

use super::{compile, protocol};
use crate::{
    probe::ProbeRules,
    view::{Protocol, ServiceId},
};

/// Kubernetes leaves it out where it is TCP.
const TCP: &str = "TCP";
/// What an endpoint names that is a pod.
const POD: &str = "Pod";

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
    /// All clients come through resolvers.
    pub(super) behind: bool,
    /// Pods that start may be asked.
    pub(super) early: bool,
    allotments: Vec<(Box<str>, u16)>,
}

/// The TCP ports of a Service, and which pods are its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceFacts {
    pub(super) ports: Vec<PortFacts>,
    pub(super) selector: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PortFacts {
    pub(super) name: Arc<str>,
    pub(super) number: u16,
    pub(super) protocol: Protocol,
}

/// The ready part of an EndpointSlice, and what of the rest is a pod's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SliceFacts {
    pub(super) service: ServiceId,
    /// It leads to the resolvers, not to pods.
    pub(super) ours: bool,
    ports: Vec<(Box<str>, u16)>,
    addresses: Vec<Ready>,
    starting: Vec<Unready>,
}

/// An endpoint that is ready, and a number that stands for its pod: a pod with addresses of two families is listed in two
/// slices.
type Ready = (IpAddr, Option<u64>);

/// An endpoint that is listed before its pod is ready.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unready {
    pub(super) address: IpAddr,
    pub(super) pod: ObjectId,
    pub(super) uid: Box<str>,
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
            behind: (object.spec.triggers.iter()).any(Trigger::stays_behind_resolvers),
            early: object.spec.early_readiness,
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
        let selector = object.spec.as_ref().and_then(|it| it.selector.clone());
        Self {
            selector: selector.unwrap_or_default(),
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
        let by = labels.get(SLICE_MANAGED_BY_LABEL);
        let ours = leads_to_resolvers(&object.name_any(), service, by.map(String::as_str));
        let family = match object.address_type.as_str() {
            family if family == AddressFamily::V4.as_str() => Some(AddressFamily::V4),
            family if family == AddressFamily::V6.as_str() => Some(AddressFamily::V6),
            // Names would have to be looked up, by whom?
            _ => None,
        };
        // Kubernetes gives no meaning to further addresses of one endpoint.
        let address = |endpoint: &Endpoint| {
            let address: IpAddr = endpoint.addresses.first()?.parse().ok()?;
            let fits = match family {
                Some(AddressFamily::V4) => address.is_ipv4(),
                Some(AddressFamily::V6) => address.is_ipv6(),
                None => false,
            };
            fits.then_some(address)
        };
        let ready = object.endpoints.iter().filter(|it| is_ready(it));
        let ready = ready.filter_map(|it| Some((address(it)?, pod(it))));
        let mut addresses: Vec<Ready> = ready.collect();
        addresses.sort_unstable();
        addresses.dedup();
        let namespace = object.namespace().unwrap_or_default();
        let unready = object.endpoints.iter();
        let unready = unready.filter(|it| !is_ready(it) && !is_terminating(it));
        let starting = unready.filter_map(|endpoint| {
            let target = endpoint.target_ref.as_ref()?;
            (target.kind.as_deref() == Some(POD)).then_some(())?;
            Some(Unready {
                address: address(endpoint)?,
                pod: ObjectId::new(&namespace, target.name.as_deref()?),
                uid: target.uid.as_deref()?.into(),
            })
        });
        let mut starting: Vec<Unready> = starting.collect();
        starting.sort_unstable();
        starting.dedup();
        let ports = object.ports.iter().flatten();
        Some(Self {
            service: ServiceId::new(&namespace, service),
            ours,
            ports: ports
                .filter(|port| port.protocol.as_deref().unwrap_or(TCP) == TCP)
                .filter_map(|port| {
                    let name = port.name.as_deref().unwrap_or_default();
                    Some((name.into(), number(port.port?)?))
                })
                .collect(),
            addresses,
            // In our own slices there are resolvers.
            starting: if ours { Vec::new() } else { starting },
        })
    }

    /// Where the port of this name will be, when the pod is ready.
    pub(super) fn starting(&self, name: &str) -> impl Iterator<Item = (&Unready, SocketAddr)> {
        let numbers = self.ports.iter().filter(move |(port, _)| **port == *name);
        numbers.flat_map(|(_, number)| {
            let unready = self.starting.iter();
            unready.map(|it| (it, SocketAddr::new(it.address, *number)))
        })
    }

    /// Where the port of this name is, and a number for the pod. A name may stand for several numbers, where pods differ.
    pub(super) fn endpoints(&self, name: &str) -> impl Iterator<Item = (SocketAddr, Option<u64>)> {
        self.ports
            .iter()
            .filter(move |(port, _)| **port == *name)
            .flat_map(|(_, number)| {
                self.addresses
                    .iter()
                    .map(|(address, pod)| (SocketAddr::new(*address, *number), *pod))
            })
    }
}

/// A number for the pod behind an endpoint, the same in all slices and in little room.
fn pod(endpoint: &Endpoint) -> Option<u64> {
    let target = endpoint.target_ref.as_ref()?;
    let mut hasher = DefaultHasher::new();
    target.uid.as_ref()?.hash(&mut hasher);
    Some(hasher.finish())
}

/// `ready` lies where a Service publishes pods that are not; `serving` does not, but older servers leave it out.
fn is_ready(endpoint: &Endpoint) -> bool {
    let Some(conditions) = &endpoint.conditions else {
        return true;
    };
    conditions.serving.or(conditions.ready).unwrap_or(true) && !is_terminating(endpoint)
}

fn is_terminating(endpoint: &Endpoint) -> bool {
    let conditions = endpoint.conditions.as_ref();
    conditions.is_some_and(|it| it.terminating.unwrap_or(false))
}

fn number(port: i32) -> Option<u16> {
    u16::try_from(port).ok().filter(|port| *port != 0)
}
