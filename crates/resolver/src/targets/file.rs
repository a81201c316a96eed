//! What may stand in a file of targets, and the views that are made of it.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::Arc,
};

use serde::Deserialize;
use weir_api::{dns::check_dns_label, hold::ProbeResponse};

use crate::{
    probe::ProbeRules,
    view::{PortView, Protocol, ServiceId, ServiceView},
};

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct File {
    services: Vec<Service>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Service {
    namespace: String,
    name: String,
    /// The label `target` of metrics; without it the service's name.
    target: Option<String>,
    #[serde(default)]
    switched: bool,
    #[serde(default)]
    probe_response: Vec<ProbeResponse>,
    ports: Vec<TargetPort>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TargetPort {
    #[serde(default)]
    name: String,
    number: u16,
    resolver_port: Option<u16>,
    #[serde(default)]
    protocol: Spoken,
    #[serde(default)]
    endpoints: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Spoken {
    Http1,
    Http2,
    Tls,
    Tcp,
    #[default]
    Sniff,
}

/// A value that cannot be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bad {
    pub(super) field: String,
    pub(super) message: String,
}

impl Bad {
    fn new(field: String, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { field, message }
    }
}

impl File {
    pub(super) fn views(self) -> Result<Vec<ServiceView>, Bad> {
        let mut known = HashMap::new();
        let mut taken = HashMap::new();
        let mut views = Vec::with_capacity(self.services.len());
        for (index, service) in self.services.into_iter().enumerate() {
            let at = format!("services[{index}]");
            let view = service.view(&at, &mut taken)?;
            if let Some(first) = known.insert(view.id.clone(), index) {
                let message = format!("{} is services[{first}] already", view.id);
                return Err(Bad::new(at, message));
            }
            views.push(view);
        }
        Ok(views)
    }
}

impl Service {
    /// `taken` are the resolver's ports and who has them.
    fn view(self, at: &str, taken: &mut HashMap<u16, String>) -> Result<ServiceView, Bad> {
        for (field, value) in [("namespace", &self.namespace), ("name", &self.name)] {
            check_dns_label(value)
                .map_err(|error| Bad::new(format!("{at}.{field}"), error.to_string()))?;
        }
        if self.ports.is_empty() {
            let message = "there is none; add one such as {number: 80}";
            return Err(Bad::new(format!("{at}.ports"), message));
        }
        let (probes, problems) = ProbeRules::compile(&self.probe_response);
        if let Some(problem) = problems.into_iter().next() {
            return Err(Bad::new(at.to_owned(), problem));
        }
        let mut names = HashSet::new();
        let mut numbers = HashSet::new();
        let mut ports = Vec::with_capacity(self.ports.len());
        for (index, port) in self.ports.into_iter().enumerate() {
            let at = format!("{at}.ports[{index}]");
            if !names.insert(port.name.clone()) {
                let message = "another port has this name; give each port a name of its own";
                return Err(Bad::new(format!("{at}.name"), message));
            }
            if !numbers.insert(port.number) {
                let message = "another port has this number";
                return Err(Bad::new(format!("{at}.number"), message));
            }
            ports.push(port.view(&at, taken)?);
        }
        Ok(ServiceView {
            held_by: None,
            target: self.target.as_deref().unwrap_or(&self.name).into(),
            id: ServiceId::new(&self.namespace, &self.name),
            ports,
            probes: Arc::new(probes),
            behind: false,
            switched: self.switched,
        })
    }
}

impl TargetPort {
    fn view(self, at: &str, taken: &mut HashMap<u16, String>) -> Result<PortView, Bad> {
        let numbers = [
            ("number", Some(self.number)),
            ("resolverPort", self.resolver_port),
        ];
        for (field, number) in numbers {
            if number == Some(0) {
                let message = "a port is a number from 1 to 65535";
                return Err(Bad::new(format!("{at}.{field}"), message));
            }
        }
        if let Some(number) = self.resolver_port
            && let Some(first) = taken.insert(number, at.to_owned())
        {
            let message = format!("{number} belongs to {first} already; take another");
            return Err(Bad::new(format!("{at}.resolverPort"), message));
        }
        let mut endpoints = Vec::with_capacity(self.endpoints.len());
        for (index, text) in self.endpoints.iter().enumerate() {
            match text.parse::<SocketAddr>() {
                Ok(address) if address.port() != 0 => endpoints.push(address),
                _ => {
                    let message =
                        format!("`{text}` is not an address and a port, such as 127.0.0.1:8080");
                    return Err(Bad::new(format!("{at}.endpoints[{index}]"), message));
                }
            }
        }
        endpoints.sort_unstable();
        endpoints.dedup();
        Ok(PortView {
            name: self.name.into(),
            number: self.number,
            resolver_port: self.resolver_port,
            protocol: match self.protocol {
                Spoken::Http1 => Protocol::Http1,
                Spoken::Http2 => Protocol::Http2,
                Spoken::Tls => Protocol::Tls,
                Spoken::Tcp => Protocol::Tcp,
                Spoken::Sniff => Protocol::Sniff,
            },
            endpoints: endpoints.into(),
            starting: Arc::default(),
        })
    }
}
