//! The private Service beside a public one: the same pods and ports, without the resolver in between. Kept for those who
//! used the peers' by name; nothing of ours leads through it.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Service, ServicePort, ServiceSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Resource, ResourceExt};
use weir_api::hold::{
    ElastiService,
    names::{UID_LABEL, private_service},
};

use super::sight::{PortSight, ServiceSight};

/// As it should be.
pub fn build(object: &ElastiService, public: &ServiceSight) -> Service {
    let labels = BTreeMap::from([(UID_LABEL.to_owned(), object.uid().unwrap_or_default())]);
    Service {
        metadata: ObjectMeta {
            name: Some(private_service(&object.spec.service)),
            namespace: object.namespace(),
            labels: Some(labels),
            owner_references: object.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(ServiceSpec {
            type_: Some("ClusterIP".to_owned()),
            selector: Some(public.selector.clone()),
            ports: Some(public.ports.iter().map(port).collect()),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// Whether it is as it should be.
pub fn is_right(actual: &ServiceSight, wanted: &Service) -> bool {
    let wanted = ServiceSight::of(wanted);
    actual.selector == wanted.selector
        && actual.ports == wanted.ports
        && actual.derived_from == wanted.derived_from
        && actual.type_ == wanted.type_
        && wanted.owners.iter().all(|owner| {
            let mut owners = actual.owners.iter();
            owners.any(|there| there.uid == owner.uid)
        })
}

fn port(port: &PortSight) -> ServicePort {
    ServicePort {
        name: Some(port.name.clone()).filter(|name| !name.is_empty()),
        port: port.number,
        target_port: port.target.clone(),
        protocol: Some(port.protocol.clone()),
        app_protocol: port.app_protocol.clone(),
        node_port: None,
    }
}
