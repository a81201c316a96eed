//! A Service, as far as it is held or kept.

use std::{collections::BTreeMap, net::IpAddr};

use k8s_openapi::{
    api::core::v1::{Service, ServicePort},
    apimachinery::pkg::{apis::meta::v1::OwnerReference, util::intstr::IntOrString},
};
use kube::ResourceExt;
use weir_api::hold::names::{AddressFamily, UID_LABEL};

/// What of a Service matters.
#[derive(Clone, Debug, PartialEq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "fields of a Service that have nothing to do with each other"
)]
pub struct ServiceSight {
    /// `spec.type`; empty is ClusterIP.
    pub type_: String,
    /// Its addresses, unless it is headless.
    pub cluster_ips: Vec<IpAddr>,
    /// It has none on purpose.
    pub is_headless: bool,
    /// Which pods it leads to.
    pub selector: BTreeMap<String, String>,
    /// Its ports, of all protocols.
    pub ports: Vec<PortSight>,
    /// A client keeps the endpoint that it had.
    pub session_affinity: bool,
    /// Some clients reach endpoints on their own node only.
    pub is_local: bool,
    /// Clients in the cluster do.
    pub is_local_inside: bool,
    /// The families of its addresses, the first one first. At least one.
    pub families: Vec<AddressFamily>,
    /// The UID of the ElastiService that it was derived from, if it was.
    pub derived_from: Option<String>,
    /// Its owners.
    pub owners: Vec<OwnerReference>,
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSight {
    /// Its name; empty for the only one.
    pub name: String,
    /// Its number.
    pub number: i32,
    /// Where it leads to on the pod.
    pub target: Option<IntOrString>,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// What is spoken on it, if that was said.
    pub app_protocol: Option<String>,
}

impl ServiceSight {
    /// What matters of this one.
    pub fn of(object: &Service) -> Self {
        let spec = object.spec.clone().unwrap_or_default();
        let local = |policy: &Option<String>| policy.as_deref() == Some("Local");
        let ips = spec.cluster_ips.clone().unwrap_or_default();
        Self {
            type_: spec.type_.unwrap_or_default(),
            cluster_ips: ips.iter().filter_map(|ip| ip.parse().ok()).collect(),
            is_headless: spec.cluster_ip.as_deref() == Some("None"),
            selector: spec.selector.unwrap_or_default(),
            ports: spec.ports.iter().flatten().map(PortSight::of).collect(),
            session_affinity: spec.session_affinity.as_deref() == Some("ClientIP"),
            is_local: local(&spec.internal_traffic_policy) || local(&spec.external_traffic_policy),
            is_local_inside: local(&spec.internal_traffic_policy),
            families: families(&spec.ip_families.unwrap_or_default(), &ips),
            derived_from: object.labels().get(UID_LABEL).cloned(),
            owners: object.owner_references().to_vec(),
        }
    }

    /// The ports that can be held.
    pub fn tcp_ports(&self) -> impl Iterator<Item = &PortSight> {
        self.ports.iter().filter(|port| port.is_tcp())
    }

    /// Whether it leads to pods with these labels.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        !self.selector.is_empty()
            && self
                .selector
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// As the Service says. One that nobody has given addresses says nothing; then the addresses do, or it is as all once were.
fn families(said: &[String], ips: &[String]) -> Vec<AddressFamily> {
    let named = |name: &String| {
        let mut all = AddressFamily::ALL.into_iter();
        all.find(|family| family.as_str() == name)
    };
    let families: Vec<AddressFamily> = said.iter().filter_map(named).collect();
    if !families.is_empty() {
        return families;
    }
    let addresses = ips.iter().filter_map(|ip| ip.parse().ok());
    let families: Vec<AddressFamily> = addresses.map(AddressFamily::of).collect();
    if families.is_empty() {
        vec![AddressFamily::V4]
    } else {
        families
    }
}

impl PortSight {
    fn of(port: &ServicePort) -> Self {
        Self {
            name: port.name.clone().unwrap_or_default(),
            number: port.port,
            target: port.target_port.clone(),
            protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
            app_protocol: port.app_protocol.clone(),
        }
    }

    /// Whether it can be held.
    pub fn is_tcp(&self) -> bool {
        self.protocol == "TCP"
    }
}
