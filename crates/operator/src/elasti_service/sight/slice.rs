//! An EndpointSlice: where a Service leads to. Ours leads to resolvers, all others to pods; but for the one that an operator
//! of KubeElasti left, which counts as one of ours that is not right yet.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};
use kube::ResourceExt;
use weir_api::hold::names::{
    NEEDED_SINCE_ANNOTATION, SERVICE_NAME_LABEL, SLICE_MANAGED_BY_LABEL, UID_LABEL,
    leads_to_resolvers,
};

use weir_hold::facts::Version;

/// What of an EndpointSlice matters.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceSight {
    /// Its name.
    pub name: String,
    /// The Service whose it is.
    pub service: String,
    /// Its version.
    pub version: Version,
    /// It leads to resolvers.
    pub is_ours: bool,
    /// The UID of the ElastiService that it was made for.
    pub derived_from: Option<String>,
    /// Addresses that are `serving && !terminating`; of ours, all.
    pub ready: BTreeSet<IpAddr>,
    /// The nodes of those.
    pub nodes: BTreeSet<String>,
    /// Whose addresses those are; nobody's where it is not said. Not kept of ours.
    pub pods: BTreeMap<IpAddr, Option<PodSight>>,
    /// Its ports; kept only of ours.
    pub ports: Vec<EndpointPort>,
    /// The start of the phase for which it was last needed anew.
    pub needed_since: Option<Timestamp>,
}

/// The pod behind an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSight {
    /// Its UID.
    pub uid: Arc<str>,
    /// Its name.
    pub name: String,
    /// The node that it is on.
    pub node: Arc<str>,
}

impl SliceSight {
    /// What matters of this one; nothing of a slice that is no Service's.
    pub fn of(object: &EndpointSlice) -> Option<Self> {
        let labels = object.labels();
        let service = labels.get(SERVICE_NAME_LABEL)?.clone();
        let name = object.name_any();
        let by = labels.get(SLICE_MANAGED_BY_LABEL);
        let is_ours = leads_to_resolvers(&name, &service, by.map(String::as_str));
        let mut ready = BTreeSet::new();
        let mut nodes = BTreeSet::new();
        let mut pods = BTreeMap::new();
        for endpoint in &object.endpoints {
            let conditions = endpoint.conditions.clone().unwrap_or_default();
            // Old controllers do not say `serving`: then `ready` is all there is.
            let serving = conditions.serving.or(conditions.ready).unwrap_or(true);
            if !is_ours && (!serving || conditions.terminating == Some(true)) {
                continue;
            }
            let address = endpoint.addresses.first();
            let address = address.and_then(|address| address.parse::<IpAddr>().ok());
            ready.extend(address);
            if let Some(address) = address.filter(|_| !is_ours) {
                pods.insert(address, PodSight::of(endpoint));
            }
            nodes.extend(endpoint.node_name.clone());
        }
        let mark = object.annotations().get(NEEDED_SINCE_ANNOTATION);
        Some(Self {
            name,
            service,
            version: Version(object.resource_version().unwrap_or_default()),
            is_ours,
            derived_from: labels.get(UID_LABEL).cloned(),
            ready,
            nodes,
            pods,
            ports: if is_ours {
                object.ports.clone().unwrap_or_default()
            } else {
                Vec::new()
            },
            needed_since: mark.and_then(|mark| mark.parse().ok()),
        })
    }
}

impl PodSight {
    fn of(endpoint: &Endpoint) -> Option<Self> {
        let target = endpoint.target_ref.as_ref();
        let target = target.filter(|target| target.kind.as_deref() == Some("Pod"))?;
        Some(Self {
            uid: target.uid.as_deref()?.into(),
            name: target.name.clone()?,
            node: endpoint.node_name.as_deref()?.into(),
        })
    }
}
