//! Where the exporters are and how they are asked: Weir's own on each node, or somebody else's behind a Service.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use weir_api::{dns::check_dns_label, place::defaults::NODE_EXPORTER_PORT};

use super::SettingsError;

/// Flags about exporters.
#[derive(Args, Clone, Debug)]
pub struct ExporterArgs {
    /// The port of the exporters, on each node's InternalIP
    #[arg(long, value_name = "PORT", default_value_t = NODE_EXPORTER_PORT, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Place")]
    pub node_exporter_port: u16,

    /// Exporters that are there already, behind this Service: each endpoint tells of the node that it is on. A port is a number, or the name that the Service gives it; without one there must be only one
    #[arg(
        long,
        value_name = "NAMESPACE/NAME[:PORT]",
        value_parser = service,
        help_heading = "Place"
    )]
    pub node_exporter_service: Option<ServiceRef>,

    /// How exporters are asked
    #[arg(
        long,
        value_name = "SCHEME",
        ignore_case = true,
        default_value = "http",
        help_heading = "Place"
    )]
    pub node_exporter_scheme: Scheme,

    /// Trust exporters whose certificate is signed by one of these (PEM); without it those whom this machine trusts
    #[arg(long, value_name = "FILE", help_heading = "Place")]
    pub node_exporter_ca_file: Option<PathBuf>,

    /// The name that the exporters' certificates are for; without it NAME.NAMESPACE.svc of the Service, or else the node's address
    #[arg(long, value_name = "NAME", help_heading = "Place")]
    pub node_exporter_server_name: Option<String>,

    /// Send what is in this file as a bearer token; it is read again and again, as tokens of ServiceAccounts change
    #[arg(long, value_name = "FILE", help_heading = "Place")]
    pub node_exporter_token_file: Option<PathBuf>,
}

/// How exporters are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scheme {
    /// Without TLS
    Http,
    /// With TLS
    Https,
}

/// A Service and one of its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Which port.
    pub port: ServicePort,
}

/// Which port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServicePort {
    /// The only one.
    Only,
    /// The one of this name.
    Named(String),
    /// This one of the pods, whatever the Service says.
    Number(u16),
}

/// Where the exporters are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// On this port of each node.
    Nodes(u16),
    /// Behind a Service.
    Service(ServiceRef),
}

/// How exporters are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExporterSettings {
    /// Where they are.
    pub place: Where,
    /// What TLS takes; none: they are asked without.
    pub tls: Option<Tls>,
    /// A file with a token.
    pub token: Option<PathBuf>,
}

/// What TLS takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Whom to trust; none: whom this machine trusts.
    pub ca: Option<PathBuf>,
    /// Whose certificates they are; none: the address that is asked.
    pub server_name: Option<String>,
}

impl ExporterSettings {
    /// What was typed, as it is meant.
    pub(super) fn new(args: ExporterArgs) -> Result<Self, SettingsError> {
        let ExporterArgs {
            node_exporter_port,
            node_exporter_service,
            node_exporter_scheme,
            node_exporter_ca_file,
            node_exporter_server_name,
            node_exporter_token_file,
        } = args;
        let tls = match node_exporter_scheme {
            Scheme::Https => {
                let of_service = (node_exporter_service.as_ref())
                    .map(|service| format!("{}.{}.svc", service.name, service.namespace));
                Some(Tls {
                    ca: node_exporter_ca_file,
                    server_name: node_exporter_server_name.or(of_service),
                })
            }
            Scheme::Http => {
                for (flag, is_given) in [
                    ("--node-exporter-ca-file", node_exporter_ca_file.is_some()),
                    (
                        "--node-exporter-server-name",
                        node_exporter_server_name.is_some(),
                    ),
                    // Whoever listens on the way would have it.
                    (
                        "--node-exporter-token-file",
                        node_exporter_token_file.is_some(),
                    ),
                ] {
                    if is_given {
                        return Err(SettingsError::NeedsHttps(flag));
                    }
                }
                None
            }
        };
        let place = match node_exporter_service {
            Some(service) => Where::Service(service),
            None => Where::Nodes(node_exporter_port),
        };
        Ok(Self {
            place,
            tls,
            token: node_exporter_token_file,
        })
    }
}

/// `namespace/name`, `namespace/name:port`.
fn service(text: &str) -> Result<ServiceRef, String> {
    let form = || "use the form namespace/name or namespace/name:port".to_owned();
    let (namespace, rest) = text.split_once('/').ok_or_else(form)?;
    let (name, port) = match rest.split_once(':') {
        None => (rest, ServicePort::Only),
        Some((name, port)) => {
            let port = match port.parse() {
                Ok(0) => return Err("a port is a number from 1 to 65535, or a name".to_owned()),
                Ok(number) => ServicePort::Number(number),
                Err(_) if is_name(port) => ServicePort::Named(port.to_owned()),
                Err(_) => return Err(form()),
            };
            (name, port)
        }
    };
    for part in [namespace, name] {
        check_dns_label(part).map_err(|error| format!("`{part}`: {error}"))?;
    }
    Ok(ServiceRef {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        port,
    })
}

/// A port's name has a letter in it: so a number that is too large is none.
fn is_name(port: &str) -> bool {
    check_dns_label(port).is_ok() && port.contains(|it: char| it.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_named_with_its_namespace_and_maybe_a_port() {
        let named = |port| ServiceRef {
            namespace: "monitoring".to_owned(),
            name: "node-exporter".to_owned(),
            port,
        };
        for (text, port) in [
            ("monitoring/node-exporter", ServicePort::Only),
            ("monitoring/node-exporter:9100", ServicePort::Number(9100)),
            (
                "monitoring/node-exporter:https",
                ServicePort::Named("https".to_owned()),
            ),
        ] {
            assert_eq!(service(text), Ok(named(port)), "{text}");
        }
        for text in [
            "node-exporter",
            "a/b/c",
            "a/",
            "/b",
            "a/b:",
            "a/b:0",
            "a/b:70000",
            "A/b",
        ] {
            assert!(service(text).is_err(), "{text}");
        }
    }
}
