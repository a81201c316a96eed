//! What can be set: flags and the peers' environment variables in, one typed [`Settings`] out.
//!
//! [`args`] is what can be typed, with its help, [`place`] the part of it that is about place, [`exporters`] whom that
//! asks, [`kubelets`] whom triggers ask; [`bind`] and `ports` read forms of their own. Nothing here does any work.

pub mod args;
pub mod bind;
pub mod exporters;
pub mod kubelets;
pub mod place;
mod ports;
#[cfg(test)]
mod tests;

use std::{ops::RangeInclusive, path::PathBuf, time::Duration};

pub use args::OperatorArgs;
pub use bind::Bind;
use bind::MaybeBind;
use http::{HeaderValue, Uri};
use kubelets::KubeletSettings;
pub use place::{Controller, Place};
use thiserror::Error;
use weir_api::hold::names::environment::{ACCEPTED_AND_IGNORED, PROMETHEUS_AUTHORIZATION_HEADER};

use crate::leader::LeaderSettings;

/// Where Kubernetes is told to write the pod's namespace and its name.
const POD_NAMESPACE: &str = "POD_NAMESPACE";
const POD_NAME: &str = "POD_NAME";
const HOSTNAME: &str = "HOSTNAME";
/// Where Weir is installed, unless told otherwise.
const NAMESPACE: &str = "weir";
/// Where the peers tell metrics.
const METRICS: Bind = Bind::port(8080);

/// How the operator behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which cluster, and which part of it.
    pub cluster: Cluster,
    /// Where it listens.
    pub listen: Listen,
    /// How a leader is chosen; none: this process leads.
    pub leader: Option<LeaderSettings>,
    /// Its resolvers.
    pub resolver: Resolver,
    /// Ports that are given to ports of Services; none: only the shared one is used.
    pub port_range: Option<RangeInclusive<u16>>,
    /// How long things may take.
    pub times: Times,
    /// The Prometheus server of triggers that name none.
    pub prometheus: Prometheus,
    /// How triggers of the type `network` ask.
    pub kubelets: KubeletSettings,
    /// What place does; none: it does not run.
    pub place: Option<Place>,
    /// Whether hold runs.
    pub runs_hold: bool,
    /// What is to be said in the log once at start, a line each.
    pub notes: Vec<String>,
}

/// The cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// How to reach it; none: as kubectl does, or from inside.
    pub kubeconfig: Option<PathBuf>,
    /// Only these namespaces, the operator's own among them; empty: all.
    pub namespaces: Vec<String>,
    /// The operator's own namespace.
    pub own_namespace: String,
    /// The name of this process among operators: its pod's, where there is one.
    pub own_name: String,
}

/// Where the operator listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Wake signals, the table of services, and metrics unless they are secured. 0 takes a free port.
    pub internal_port: u16,
    /// Health; none: nowhere.
    pub health: Option<Bind>,
    /// Metrics, beside the internal port or instead of it; none: nowhere else.
    pub metrics: Option<Bind>,
    /// Metrics over TLS, with a token, and not on the internal port.
    pub metrics_secure: bool,
    /// Whether a wake signal needs the token of the resolvers' ServiceAccount.
    pub require_token: bool,
}

/// The resolvers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolver {
    /// Their namespace.
    pub namespace: String,
    /// Their Service.
    pub service: String,
    /// Their ServiceAccount.
    pub service_account: String,
    /// Their internal port.
    pub internal_port: u16,
    /// Their shared port.
    pub proxy_port: u16,
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// From one question to a trigger to the next.
    pub polling_interval: Duration,
    /// The network takes to follow a changed EndpointSlice.
    pub sync_period: Duration,
    /// A cut-over takes to be seen.
    pub cut_over_timeout: Duration,
    /// There is no ready resolver, until what sleeps is woken.
    pub fail_open_after: Duration,
    /// A request is held, at most.
    pub hold: Duration,
}

/// What triggers of the type `prometheus` use where they say nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prometheus {
    /// The server.
    pub address: Option<Uri>,
    /// Its Authorization header, marked as secret: it is never shown.
    pub authorization: Option<HeaderValue>,
}

/// Why the settings cannot be used.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// One port for two things.
    #[error("{first} and {second} both take port {port}; give one of them another")]
    SamePort {
        /// A flag.
        first: &'static str,
        /// Another flag.
        second: &'static str,
        /// The port.
        port: u16,
    },
    /// A port of the resolvers that would be given away.
    #[error("--port-range contains {0}, on which the resolvers listen already; take another range")]
    PortInRange(u16),
    /// A secret, or trust, without anything that protects it.
    #[error("{0} has a meaning over TLS alone; give --node-exporter-scheme https")]
    NeedsHttps(&'static str),
    /// Labels of watches that are not seen would be taken for orphans.
    #[error(
        "place with --watch-namespace would remove the node labels of watches in other namespaces; give --node-selector too, or watch all namespaces"
    )]
    PlaceInSomeNamespaces,
    /// What was given does not make an address. It is not repeated, since it may hold a password.
    #[error(
        "--prometheus-address is not the address of a server; use the form http://host:port or https://host:port/path, without a user and a password: those go to {PROMETHEUS_AUTHORIZATION_HEADER}"
    )]
    PrometheusAddress,
    /// The value itself is a secret, and not repeated.
    #[error(
        "{PROMETHEUS_AUTHORIZATION_HEADER} cannot be sent as a header; it must be one line, such as `Bearer …`"
    )]
    PrometheusAuthorization,
}

impl Settings {
    /// What was typed, as it is meant. `environment` is asked for what is never typed, and for variables that are only
    /// noted.
    #[allow(
        clippy::too_many_lines,
        reason = "one line for each flag, nothing else"
    )]
    pub fn new(
        args: OperatorArgs,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        // Every flag by name: one that is forgotten here does not compile.
        let OperatorArgs {
            internal_port,
            health_probe_bind_address: MaybeBind(health),
            metrics_bind_address,
            metrics_secure,
            require_token,
            kubeconfig,
            watch_namespace,
            operator_namespace,
            leader_elect,
            lease_name,
            peer_namespace,
            resolver_namespace,
            resolver_service,
            resolver_service_account,
            resolver_port,
            resolver_proxy_port,
            per_service_ports,
            port_range,
            sync_period,
            cut_over_timeout,
            fail_open_after,
            hold_timeout,
            polling_interval,
            prometheus_address,
            kubelets,
            controllers,
            place,
            ignored,
        } = args;
        let set = |name: &str| environment(name).filter(|value| !value.is_empty());
        let own_namespace = operator_namespace
            .filter(|namespace| !namespace.is_empty())
            .or_else(|| set(POD_NAMESPACE))
            .unwrap_or_else(|| NAMESPACE.to_owned());
        let own_name = set(POD_NAME)
            .or_else(|| set(HOSTNAME))
            .unwrap_or_else(|| "operator".to_owned());
        let listen = Listen {
            internal_port,
            health,
            metrics: match metrics_bind_address {
                Some(MaybeBind(bind)) => bind,
                None => metrics_secure.then_some(METRICS),
            },
            metrics_secure,
            require_token,
        }
        .checked()?;
        let taken = [resolver_proxy_port, resolver_port];
        if per_service_ports
            && let Some(port) = taken.into_iter().find(|port| port_range.contains(port))
        {
            return Err(SettingsError::PortInRange(port));
        }
        let kubelets = KubeletSettings::new(kubelets);
        let place = Place::new(place)?;
        let place = controllers.contains(&Controller::Place).then_some(place);
        let namespaces = namespaces(watch_namespace, &own_namespace);
        if place.as_ref().is_some_and(|place| place.nodes.is_none()) && !namespaces.is_empty() {
            return Err(SettingsError::PlaceInSomeNamespaces);
        }
        Ok(Self {
            leader: leader_elect
                .then(|| LeaderSettings::new(&own_namespace, &lease_name, &own_name))
                .map(|leader| leader.with_peers_in(&peer_namespace))
                .map(|leader| leader.in_a_pod(set(POD_NAME).is_some())),
            cluster: Cluster {
                kubeconfig,
                namespaces,
                own_namespace,
                own_name,
            },
            place,
            runs_hold: controllers.contains(&Controller::Hold),
            notes: worth_saying(&listen, &kubelets, ignored, &set),
            listen,
            resolver: Resolver {
                namespace: resolver_namespace,
                service: resolver_service,
                service_account: resolver_service_account,
                internal_port: resolver_port,
                proxy_port: resolver_proxy_port,
            },
            port_range: per_service_ports.then_some(port_range),
            times: Times {
                polling_interval: polling_interval.0,
                sync_period: sync_period.0,
                cut_over_timeout: cut_over_timeout.0,
                fail_open_after: fail_open_after.0,
                hold: hold_timeout.0,
            },
            kubelets,
            prometheus: Prometheus {
                address: prometheus_address
                    .filter(|address| !address.is_empty())
                    .map(|address| server(&address))
                    .transpose()?,
                authorization: set(PROMETHEUS_AUTHORIZATION_HEADER)
                    .map(|value| secret(&value))
                    .transpose()?,
            },
        })
    }

    /// The part of it that decisions rest on.
    pub fn plan(&self) -> weir_hold::Settings {
        let Times {
            polling_interval: _,
            sync_period,
            cut_over_timeout,
            fail_open_after,
            hold,
        } = self.times;
        weir_hold::Settings {
            sync_period,
            cut_over_timeout,
            fail_open_after,
            hold_timeout: hold,
            ..weir_hold::Settings::default()
        }
    }
}

impl Listen {
    /// Metrics that are told on the internal port anyway need no second place.
    fn checked(mut self) -> Result<Self, SettingsError> {
        let same =
            |bind: Option<Bind>, port: u16| bind.is_some_and(|bind| bind.port == port && port != 0);
        let error = |first, second, port| SettingsError::SamePort {
            first,
            second,
            port,
        };
        let (internal, health, metrics) = (
            "--internal-port",
            "--health-probe-bind-address",
            "--metrics-bind-address",
        );
        if same(self.health, self.internal_port) {
            return Err(error(internal, health, self.internal_port));
        }
        if let Some(bind) = self.health
            && same(self.metrics, bind.port)
        {
            return Err(error(health, metrics, bind.port));
        }
        if same(self.metrics, self.internal_port) {
            if self.metrics_secure {
                return Err(error(internal, metrics, self.internal_port));
            }
            self.metrics = None;
        }
        Ok(self)
    }
}

fn worth_saying(
    listen: &Listen,
    kubelets: &KubeletSettings,
    ignored: args::IgnoredArgs,
    set: &dyn Fn(&str) -> Option<String>,
) -> Vec<String> {
    let variables = ACCEPTED_AND_IGNORED
        .into_iter()
        .filter(|name| set(name).is_some());
    let mut notes: Vec<String> = ignored
        .given()
        .chain(variables)
        .map(|name| format!("{name} is set and has no meaning here; it can be removed"))
        .collect();
    if !listen.require_token {
        notes.push(
            "wake signals are taken from anybody who reaches the internal port, since --require-token is false"
                .to_owned(),
        );
    }
    if listen.metrics_secure && listen.metrics.is_none() {
        notes.push(
            "metrics are told nowhere: --metrics-secure takes them off the internal port and --metrics-bind-address is 0"
                .to_owned(),
        );
    }
    notes.extend(kubelets.note());
    notes
}

/// Without any: all of them. With some: our own as well, as the peers have it.
fn namespaces(mut given: Vec<String>, own: &str) -> Vec<String> {
    given.retain(|namespace| !namespace.is_empty());
    if !given.is_empty() {
        given.push(own.to_owned());
    }
    given.sort_unstable();
    given.dedup();
    given
}

fn server(text: &str) -> Result<Uri, SettingsError> {
    let bad = SettingsError::PrometheusAddress;
    let Ok(url) = text.parse::<Uri>() else {
        return Err(bad);
    };
    let named = url.host().is_some_and(|host| !host.is_empty());
    // What is before an @ would be shown wherever the address is.
    let open = url
        .authority()
        .is_some_and(|all| !all.as_str().contains('@'));
    match url.scheme_str() {
        Some("http" | "https") if named && open && url.query().is_none() => Ok(url),
        _ => Err(bad),
    }
}

fn secret(text: &str) -> Result<HeaderValue, SettingsError> {
    let mut value =
        HeaderValue::try_from(text.trim()).map_err(|_| SettingsError::PrometheusAuthorization)?;
    value.set_sensitive(true);
    Ok(value)
}
