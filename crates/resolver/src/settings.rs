//! What can be set: flags and the peers' environment variables in, one typed [`Settings`] out.
//!
//! [`args`] is what can be typed, with its help. Nothing here does any work.

pub mod args;
mod header;
#[cfg(test)]
mod tests;

use std::{net::IpAddr, num::NonZeroUsize, path::PathBuf, thread, time::Duration};

use http::{HeaderName, Uri};
use thiserror::Error;
use weir_api::{
    form::cidr::Cidr,
    hold::{
        defaults::SHUTDOWN_REFUSE_BEFORE_END,
        names::environment::{ACCEPTED_AND_IGNORED, RESOLVER_NAMESPACE},
    },
};

pub use args::ResolverArgs;

/// Ranges of addresses that `--allow-from` may have.
const MOST_RANGES: usize = 1000;

/// How the resolver behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where it listens.
    pub listen: Listen,
    /// Where it learns of services.
    pub source: Source,
    /// The header that names the target on the shared port, before Host.
    pub header_for_host: Option<HeaderName>,
    /// The domain below which the cluster's Services have their names.
    pub cluster_domain: String,
    /// How much it holds.
    pub limits: Limits,
    /// How long things may take.
    pub times: Times,
    /// Its connections to pods.
    pub upstream: Upstream,
    /// Whether pods that start are asked before the kubelet says that they are ready.
    pub early_readiness: bool,
    /// How it wakes; none: nobody is woken.
    pub operator: Option<Operator>,
    /// Whether clients may speak HTTP/2 without TLS.
    pub h2c: bool,
    /// Whether each request is logged.
    pub access_log: bool,
    /// Threads that serve requests.
    pub threads: NonZeroUsize,
    /// What is to be said in the log once at start, a line each.
    pub notes: Vec<String>,
}

/// Where the resolver listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The address; none: all, IPv6 and IPv4, or IPv4 alone where there is no IPv6.
    pub address: Option<IpAddr>,
    /// The shared port, where a header names the target. 0 takes a free one.
    pub proxy_port: u16,
    /// The port for metrics and health. 0 takes a free one.
    pub internal_port: u16,
    /// The internal port of another resolver in this pod, which shares the others.
    pub sibling_port: Option<u16>,
    /// Whether ports that were allotted to services are opened.
    pub per_service_ports: bool,
    /// The most connections of clients, over all ports; none: as many as the limit of open files allows.
    pub max_connections: Option<usize>,
    /// Only clients with such addresses are served; empty: all.
    pub allow_from: Vec<Cidr>,
}

/// Where the resolver learns of services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file, read again on SIGHUP.
    File(PathBuf),
    /// A cluster.
    Cluster {
        /// How to reach it; none: as kubectl does, or from inside.
        kubeconfig: Option<PathBuf>,
        /// Only these namespaces; empty: all.
        namespaces: Vec<String>,
    },
}

/// How much is held; each limit per service lies within the one for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests, over all services.
    pub held: usize,
    /// Requests of one service.
    pub held_per_service: usize,
    /// Bytes of bodies, over all services.
    pub held_bytes: usize,
    /// Bytes of bodies of one service.
    pub held_bytes_per_service: usize,
    /// Bytes of one body that are kept so that the request can be sent again.
    pub body_replay: usize,
    /// Bytes of one request's line and headers.
    pub header_bytes: usize,
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// A request is held, at most.
    pub hold: Duration,
    /// A client takes to send its headers.
    pub headers: Duration,
    /// A pod takes to accept a connection.
    pub connect: Duration,
    /// The network takes to follow a changed EndpointSlice.
    pub sync_period: Duration,
    /// From SIGTERM to the end.
    pub termination_grace: Duration,
}

/// Connections to pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Idle ones, over all endpoints.
    pub max_idle: usize,
    /// Idle ones to one endpoint.
    pub max_idle_per_endpoint: usize,
    /// How long one may be idle.
    pub idle_timeout: Duration,
}

/// How the operator is told that a service is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// Its address, without a path.
    pub url: Uri,
    /// The longest pause between two signals for one service.
    pub retry: Duration,
    /// A file with the token that tells the operator who asks.
    pub token_file: PathBuf,
    /// After so long without an answer a service is woken without an operator; none: never.
    pub scale_after: Option<Duration>,
}

/// Why the settings cannot be used.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// There is nothing to scale.
    #[error("--resolver-may-scale needs a cluster; leave it out, or --targets")]
    MayScaleFile,
    /// It is for when the operator does not answer, so somebody must be asked.
    #[error("--resolver-may-scale needs an operator that is asked first; see --operator-url")]
    MayScaleWithoutOperator,
    /// One port for two things.
    #[error("--proxy-port and --internal-port are both {0}; give one of them another port")]
    SamePort(u16),
    /// The sibling's port is ours.
    #[error("--sibling-port {0} must be another resolver's internal port, not one of our own")]
    SiblingPort(u16),
    /// Each is compared with each client's address.
    #[error(
        "--allow-from has {0} ranges, and at most {MOST_RANGES} can be given; write fewer that are wider"
    )]
    TooManyRanges(usize),
    /// Half of an address.
    #[error(
        "the operator's namespace and its Service are needed together; set both, or --operator-url"
    )]
    HalfAnOperator,
    /// What was given does not make an address.
    #[error("`{0}` is not an address of the operator; use the form http://host:port")]
    OperatorUrl(String),
    /// The answer would be the same, but slower.
    #[error("the operator is asked without TLS; write {0} with http:// instead of https://")]
    OperatorTls(String),
}

impl Settings {
    /// What was typed, as it is meant. `environment` is asked for variables that are only noted.
    #[allow(
        clippy::too_many_lines,
        reason = "one line for each flag, nothing else"
    )]
    pub fn new(
        args: ResolverArgs,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        // Every flag by name: one that is forgotten here does not compile.
        let ResolverArgs {
            proxy_port,
            internal_port,
            sibling_port,
            bind_address,
            per_service_ports,
            max_connections,
            allow_from,
            targets,
            kubeconfig,
            watch_namespace,
            header_for_host,
            cluster_domain,
            hold_timeout,
            max_held,
            max_held_per_service,
            max_held_bytes,
            max_held_bytes_per_service,
            max_body_replay,
            max_header_bytes,
            header_timeout,
            connect_timeout,
            sync_period,
            termination_grace,
            max_idle_upstream,
            max_idle_upstream_per_endpoint,
            idle_upstream_timeout,
            early_readiness,
            operator_url,
            operator_namespace,
            operator_service,
            operator_port,
            operator_retry,
            token_file,
            resolver_may_scale,
            scale_after,
            h2c,
            access_log,
            threads,
        } = args;
        if proxy_port == internal_port && proxy_port != 0 {
            return Err(SettingsError::SamePort(proxy_port));
        }
        if let Some(port) =
            sibling_port.filter(|port| [0, proxy_port, internal_port].contains(port))
        {
            return Err(SettingsError::SiblingPort(port));
        }
        if allow_from.len() > MOST_RANGES {
            return Err(SettingsError::TooManyRanges(allow_from.len()));
        }
        let cluster_domain = cluster_domain.trim_matches('.').to_ascii_lowercase();
        let operator_service = match (operator_namespace, operator_service) {
            (None, None) => None,
            (Some(namespace), Some(service)) => Some(format!(
                "http://{service}.{namespace}.svc.{cluster_domain}:{operator_port}"
            )),
            _ if operator_url.is_some() => None,
            _ => return Err(SettingsError::HalfAnOperator),
        };
        let url = operator_url.or(operator_service);
        let operator = url.map(|url| checked_url(&url)).transpose()?;
        if resolver_may_scale && targets.is_some() {
            return Err(SettingsError::MayScaleFile);
        }
        if resolver_may_scale && operator.is_none() {
            return Err(SettingsError::MayScaleWithoutOperator);
        }
        let source = match targets {
            Some(file) => Source::File(file),
            None => Source::Cluster {
                kubeconfig,
                namespaces: namespaces(watch_namespace, environment(RESOLVER_NAMESPACE)),
            },
        };
        let limits = Limits {
            held: max_held,
            held_per_service: max_held_per_service,
            held_bytes: max_held_bytes,
            held_bytes_per_service: max_held_bytes_per_service,
            body_replay: max_body_replay,
            header_bytes: max_header_bytes,
        };
        let mut settings = Self {
            listen: Listen {
                address: bind_address,
                proxy_port,
                internal_port,
                sibling_port,
                per_service_ports,
                max_connections,
                allow_from,
            },
            source,
            header_for_host: header_for_host.0,
            cluster_domain,
            limits: limits.nested(),
            times: Times {
                hold: hold_timeout.0,
                headers: header_timeout.0,
                connect: connect_timeout.0,
                sync_period: sync_period.0,
                termination_grace: termination_grace.0,
            },
            upstream: Upstream {
                max_idle: max_idle_upstream,
                max_idle_per_endpoint: max_idle_upstream_per_endpoint,
                idle_timeout: idle_upstream_timeout.0,
            },
            early_readiness,
            operator: operator.map(|url| Operator {
                url,
                retry: operator_retry.0,
                token_file,
                scale_after: resolver_may_scale.then_some(scale_after.0),
            }),
            h2c,
            access_log,
            threads: threads
                .or_else(|| thread::available_parallelism().ok())
                .unwrap_or(NonZeroUsize::MIN),
            notes: Vec::new(),
        };
        settings.notes = settings.worth_saying(environment);
        Ok(settings)
    }

    fn worth_saying(&self, environment: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        let is_set = |name: &str| environment(name).is_some_and(|value| !value.is_empty());
        let mut notes: Vec<String> = ACCEPTED_AND_IGNORED
            .into_iter()
            .filter(|name| is_set(name))
            .map(|name| format!("{name} is set and has no meaning here; it can be removed"))
            .collect();
        if self.operator.is_none() {
            notes.push("no operator is named, so nothing is woken; see --operator-url".to_owned());
        }
        let needed = self.times.hold + self.times.sync_period + SHUTDOWN_REFUSE_BEFORE_END;
        if self.times.termination_grace < needed {
            notes.push(format!(
                "requests that are held when the resolver is told to end may be refused: --termination-grace is below {} s, which is --hold-timeout, --sync-period and some seconds together",
                needed.as_secs()
            ));
        }
        notes
    }
}

impl Limits {
    /// What one may have is never more than what all may have.
    fn nested(self) -> Self {
        let bytes = self.held_bytes_per_service.min(self.held_bytes);
        Self {
            held_per_service: self.held_per_service.min(self.held),
            held_bytes_per_service: bytes,
            body_replay: self.body_replay.min(bytes),
            ..self
        }
    }
}

fn checked_url(text: &str) -> Result<Uri, SettingsError> {
    let bad = || SettingsError::OperatorUrl(text.to_owned());
    let url: Uri = text.parse().map_err(|_| bad())?;
    let plain = url.path() == "/" && url.query().is_none();
    match url.scheme_str() {
        Some("http") if plain && url.host().is_some_and(|host| !host.is_empty()) => Ok(url),
        Some("https") => Err(SettingsError::OperatorTls(text.to_owned())),
        _ => Err(bad()),
    }
}

/// Without any: all of them. With some: our own as well, as the peers have it.
fn namespaces(mut given: Vec<String>, own: Option<String>) -> Vec<String> {
    given.retain(|namespace| !namespace.is_empty());
    if !given.is_empty() {
        given.extend(own.filter(|own| !own.is_empty()));
    }
    given.sort_unstable();
    given.dedup();
    given
}
