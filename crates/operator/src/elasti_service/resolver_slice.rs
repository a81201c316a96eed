//! Our EndpointSlices: what leads a Service to the resolvers. One for each family of addresses that the Service has, since a
//! slice holds one family and cannot change it; elsewhere they count as one.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Resource, ResourceExt};
use weir_api::hold::{
    ElastiService, PortAllotment,
    names::{
        AddressFamily, NEEDED_SINCE_ANNOTATION, SERVICE_NAME_LABEL, SLICE_MANAGED_BY,
        SLICE_MANAGED_BY_LABEL, UID_LABEL, resolver_slice,
    },
};

use super::sight::ServiceSight;
use crate::resolvers::Resolver;

/// The names of our slices for this Service.
pub fn names(object: &ElastiService, service: &ServiceSight) -> Vec<String> {
    let families = service.families.iter();
    families
        .map(|family| resolver_slice(&object.spec.service, *family))
        .collect()
}

/// The ports that lead to the resolvers. A port of the Service that got none of its own leads to the shared one.
pub fn ports(service: &ServiceSight, allotted: &[PortAllotment], shared: u16) -> Vec<EndpointPort> {
    let mut ports: Vec<EndpointPort> = service
        .tcp_ports()
        .map(|port| {
            let own = allotted.iter().find(|allotted| allotted.name == port.name);
            let number = own.map_or(shared, |own| own.resolver_port);
            EndpointPort {
                name: Some(port.name.clone()),
                port: Some(i32::from(number)),
                protocol: Some("TCP".to_owned()),
                app_protocol: port.app_protocol.clone(),
            }
        })
        .collect();
    ports.sort_by(|a, b| a.name.cmp(&b.name));
    ports
}

/// The one of a family, as it should be: with those of the wanted resolvers' addresses that are of it.
pub fn build(
    object: &ElastiService,
    family: AddressFamily,
    ports: Vec<EndpointPort>,
    resolvers: &[Resolver],
    wanted: &BTreeSet<IpAddr>,
    mark: Option<Timestamp>,
) -> EndpointSlice {
    let labels = BTreeMap::from([
        (SERVICE_NAME_LABEL.to_owned(), object.spec.service.clone()),
        (
            SLICE_MANAGED_BY_LABEL.to_owned(),
            SLICE_MANAGED_BY.to_owned(),
        ),
        (UID_LABEL.to_owned(), object.uid().unwrap_or_default()),
    ]);
    let mark = mark.map(|mark| {
        let value = (NEEDED_SINCE_ANNOTATION.to_owned(), mark.to_string());
        BTreeMap::from([value])
    });
    let endpoints = resolvers
        .iter()
        .filter(|resolver| AddressFamily::of(resolver.address) == family)
        .filter(|resolver| wanted.contains(&resolver.address))
        .map(endpoint)
        .collect();
    EndpointSlice {
        address_type: family.as_str().to_owned(),
        endpoints,
        metadata: ObjectMeta {
            name: Some(resolver_slice(&object.spec.service, family)),
            namespace: object.namespace(),
            labels: Some(labels),
            annotations: mark,
            owner_references: object.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        ports: Some(ports),
    }
}

fn endpoint(resolver: &Resolver) -> Endpoint {
    Endpoint {
        addresses: vec![resolver.address.to_string()],
        conditions: Some(EndpointConditions {
            ready: Some(true),
            serving: Some(true),
            terminating: Some(false),
        }),
        node_name: resolver.node.clone(),
        zone: resolver.zone.clone(),
        ..Endpoint::default()
    }
}
