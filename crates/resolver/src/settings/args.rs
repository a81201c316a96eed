//! What can be typed after `weir resolver`, and what the help says of it.

use std::{net::IpAddr, num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::{ArgAction, Args, builder::BoolishValueParser};
use weir_api::{
    form::cidr::Cidr,
    hold::{
        defaults::{
            HEADER_FOR_HOST, HOLD_TIMEOUT, OPERATOR_INTERNAL_PORT, RESOLVER_INTERNAL_PORT,
            RESOLVER_PROXY_PORT, RESOLVER_SCALES_AFTER, RESOLVER_TERMINATION_GRACE_SECONDS,
            SYNC_PERIOD,
        },
        names::environment,
    },
};
use weir_role::units::{Span, count, duration, positive, size};

use super::header::{MaybeHeader, header};

/// The environment variable of `--allow-from`; the peers have none.
const ALLOW_FROM: &str = "WEIR_ALLOW_FROM";
/// Where Kubernetes puts the token of a pod's ServiceAccount.
const TOKEN_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
/// Where the names of a cluster's Services end, unless it was installed otherwise.
const CLUSTER_DOMAIN: &str = "cluster.local";

/// Flags of the resolver. Durations are seconds, or have a unit (500ms, 2m); sizes are bytes, or have one (64MiB).
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  weir resolver                                   in a cluster, as the chart runs it
  weir resolver --kubeconfig ~/.kube/config       outside, for a look
  weir resolver --targets targets.yaml            without Kubernetes; read again on SIGHUP

A file of targets:
  services:
  - namespace: shop
    name: web
    ports:
    - {number: 80, resolverPort: 10240, endpoints: [\"127.0.0.1:8080\"]}")]
#[allow(
    clippy::struct_excessive_bools,
    reason = "flags that have nothing to do with each other"
)]
pub struct ResolverArgs {
    /// The shared port, where the Host header names the target as service.namespace or service.namespace:port
    #[arg(long, value_name = "PORT", env = environment::RESOLVER_PROXY_PORT, default_value_t = RESOLVER_PROXY_PORT, help_heading = "Listen")]
    pub proxy_port: u16,

    /// The port for metrics, health and what is held
    #[arg(long, value_name = "PORT", env = environment::RESOLVER_PORT, default_value_t = RESOLVER_INTERNAL_PORT, help_heading = "Listen")]
    pub internal_port: u16,

    /// The internal port of another resolver in the same pod, which shares all other ports with this one: then nobody is
    /// refused when one of them is killed
    #[arg(long, value_name = "PORT", help_heading = "Listen")]
    pub sibling_port: Option<u16>,

    /// Listen on this address only; without it on all, IPv6 and IPv4
    #[arg(long, value_name = "ADDRESS", help_heading = "Listen")]
    pub bind_address: Option<IpAddr>,

    /// Open the ports that the operator allotted to services; with `false` only the shared one
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new(), action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", help_heading = "Listen")]
    pub per_service_ports: bool,

    /// The most connections of clients, over all ports; for one more, one that does nothing is closed, or it is answered with 503. Without it three quarters of the open files that the system allows
    #[arg(long, value_name = "COUNT", value_parser = count, help_heading = "Listen")]
    pub max_connections: Option<usize>,

    /// Serve only clients with an address in this range, such as 10.0.0.0/8 or 2001:db8::/32; others are answered with 403, or
    /// closed where HTTP is not spoken, and wake nobody. May be given several times, or as a list with commas; without it all
    /// are served. Behind a proxy that rewrites addresses (masquerade) it is that one's address which counts
    #[arg(long, value_name = "CIDR", env = ALLOW_FROM, value_delimiter = ',', help_heading = "Listen")]
    pub allow_from: Vec<Cidr>,

    /// Speak HTTP/2 without TLS with clients that begin with it, gRPC among them
    #[arg(long, value_name = "BOOL", env = environment::ENABLE_H2C, value_parser = BoolishValueParser::new(), action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", help_heading = "Listen")]
    pub h2c: bool,

    /// Learn of services from this YAML or JSON file instead of a cluster; it is read again on SIGHUP
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "kubeconfig",
        help_heading = "Services"
    )]
    pub targets: Option<PathBuf>,

    /// How to reach the cluster; without it as kubectl does, or from inside a pod
    #[arg(long, value_name = "FILE", help_heading = "Services")]
    pub kubeconfig: Option<PathBuf>,

    /// Watch only this namespace; may be given several times, or as a list with commas
    #[arg(long, value_name = "NAMESPACE", env = environment::WATCH_NAMESPACES, value_delimiter = ',', help_heading = "Services")]
    pub watch_namespace: Vec<String>,

    /// On the shared port, this header names the target before the Host header does; empty: only Host does
    #[arg(long, value_name = "HEADER", env = environment::HEADER_FOR_HOST, value_parser = header, default_value = HEADER_FOR_HOST, help_heading = "Services")]
    pub header_for_host: MaybeHeader,

    /// The domain below which the cluster's Services have their names
    #[arg(long, value_name = "DOMAIN", env = environment::CLUSTER_DOMAIN, default_value = CLUSTER_DOMAIN, help_heading = "Services")]
    pub cluster_domain: String,

    /// A request is held this long at most, then it is answered with 504
    #[arg(long, value_name = "DURATION", env = environment::REQ_TIMEOUT, value_parser = positive, default_value_t = Span(HOLD_TIMEOUT), help_heading = "Hold")]
    pub hold_timeout: Span,

    /// The most requests that are held, over all services; further ones are answered with 503
    #[arg(long, value_name = "COUNT", env = environment::QUEUE_SIZE, value_parser = count, default_value = "20000", help_heading = "Hold")]
    pub max_held: usize,

    /// The most requests that are held for one service
    #[arg(long, value_name = "COUNT", value_parser = count, default_value = "10000", help_heading = "Hold")]
    pub max_held_per_service: usize,

    /// The most bytes of bodies that are kept in memory, over all services
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "256MiB", help_heading = "Hold")]
    pub max_held_bytes: usize,

    /// The most bytes of bodies that are kept in memory for one service
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "64MiB", help_heading = "Hold")]
    pub max_held_bytes_per_service: usize,

    /// Keep so much of a body that the request can be sent again; a longer one is sent once
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1MiB", help_heading = "Hold")]
    pub max_body_replay: usize,

    /// The most bytes of a request's line and headers
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "64KiB", help_heading = "Time and size")]
    pub max_header_bytes: usize,

    /// A client has so long to send a request's headers
    #[arg(long, value_name = "DURATION", value_parser = positive, default_value = "10s", help_heading = "Time and size")]
    pub header_timeout: Span,

    /// A pod has so long to accept a connection, then another one is tried
    #[arg(long, value_name = "DURATION", value_parser = positive, default_value = "1s", help_heading = "Time and size")]
    pub connect_timeout: Span,

    /// The network takes so long to follow a changed EndpointSlice; after SIGTERM requests are accepted for as long
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value_t = Span(SYNC_PERIOD), help_heading = "Time and size")]
    pub sync_period: Span,

    /// After SIGTERM, end within this time: the pod's terminationGracePeriodSeconds
    #[arg(long, value_name = "DURATION", value_parser = positive, default_value_t = Span(Duration::from_secs(RESOLVER_TERMINATION_GRACE_SECONDS.unsigned_abs())), help_heading = "Time and size")]
    pub termination_grace: Span,

    /// The most idle connections to pods; 0 keeps none
    #[arg(long, value_name = "COUNT", env = environment::MAX_IDLE_PROXY_CONNS, default_value_t = 4096, help_heading = "Pods")]
    pub max_idle_upstream: usize,

    /// The most idle connections to one pod; 0 keeps none
    #[arg(long, value_name = "COUNT", env = environment::MAX_IDLE_PROXY_CONNS_PER_HOST, default_value_t = 256, help_heading = "Pods")]
    pub max_idle_upstream_per_endpoint: usize,

    /// Close a connection to a pod that was idle so long; should be shorter than the pod's own limit
    #[arg(long, value_name = "DURATION", value_parser = positive, default_value = "30s", help_heading = "Pods")]
    pub idle_upstream_timeout: Span,

    /// While requests are held, ask pods that start by their own startup and readiness probes, and forward as soon as these succeed; with `false` wait until the kubelet has asked. An ElastiService with `earlyReadiness: false` is left out
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new(), action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", help_heading = "Pods")]
    pub early_readiness: bool,

    /// Where to ask for a wake, as http://host:port; without it, made from the operator's namespace and Service
    #[arg(long, value_name = "URL", help_heading = "Operator")]
    pub operator_url: Option<String>,

    /// Namespace of the operator
    #[arg(long, value_name = "NAMESPACE", env = environment::OPERATOR_NAMESPACE, help_heading = "Operator")]
    pub operator_namespace: Option<String>,

    /// Name of the operator's Service
    #[arg(long, value_name = "SERVICE", env = environment::OPERATOR_SERVICE_NAME, help_heading = "Operator")]
    pub operator_service: Option<String>,

    /// The operator's internal port
    #[arg(long, value_name = "PORT", env = environment::OPERATOR_PORT, default_value_t = OPERATOR_INTERNAL_PORT, help_heading = "Operator")]
    pub operator_port: u16,

    /// Ask again after this time while requests are held; a signal that failed is repeated sooner, after 0.1 s and then twice as long each time, up to this
    #[arg(long, value_name = "DURATION", env = environment::OPERATOR_RETRY_DURATION, value_parser = positive, default_value = "10s", help_heading = "Operator")]
    pub operator_retry: Span,

    /// The token that tells the operator who asks; read each time, left out where there is no such file
    #[arg(long, value_name = "FILE", default_value = TOKEN_FILE, help_heading = "Operator")]
    pub token_file: PathBuf,

    /// Wake a service without an operator when none answers: take our pause from its ScaledObject, then scale it up from zero. Needs more rights, which `weir manifests --resolver-may-scale` gives
    #[arg(long, help_heading = "Operator")]
    pub resolver_may_scale: bool,

    /// No operator has answered for so long before that is done
    #[arg(long, value_name = "DURATION", value_parser = positive, default_value_t = Span(RESOLVER_SCALES_AFTER), help_heading = "Operator")]
    pub scale_after: Span,

    /// Write a log line for each request
    #[arg(long, help_heading = "Process")]
    pub access_log: bool,

    /// Threads that serve requests; without it one for each processor
    #[arg(long, value_name = "COUNT", help_heading = "Process")]
    pub threads: Option<NonZeroUsize>,
}
