//! What can be typed after `weir operator`, and what the help says of it.

use std::{ops::RangeInclusive, path::PathBuf};

use clap::{ArgAction, Args, builder::BoolishValueParser};
use weir_api::hold::{
    defaults::{
        CUT_OVER_TIMEOUT, FAIL_OPEN_AFTER, HOLD_TIMEOUT, OPERATOR_INTERNAL_PORT, POLLING_INTERVAL,
        RESOLVER_INTERNAL_PORT, RESOLVER_PROXY_PORT, SYNC_PERIOD,
    },
    names::environment,
};
use weir_role::units::{Span, positive};

use super::{
    bind::{MaybeBind, bind},
    kubelets::KubeletArgs,
    place::{Controller, PlaceArgs},
    ports::range,
};

/// Where Weir is installed, unless told otherwise.
const NAMESPACE: &str = "weir";
/// The resolvers' Service and their ServiceAccount.
const RESOLVER: &str = "weir-resolver";
/// The Lease of the operators.
const LEASE: &str = "weir-operator";

/// Flags of the operator. Durations are seconds, or have a unit (500ms, 2m).
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  weir operator                                        in a cluster, as the chart runs it
  weir operator --watch-namespace shop,blog            for these namespaces and its own; needs no ClusterRole
  weir operator --kubeconfig ~/.kube/config --leader-elect=false --require-token=false
                                                       outside, for a look; not beside another operator
  weir operator --controllers hold,place               place as well, which labels nodes
  weir operator --metrics-secure --metrics-bind-address :8443
                                                       metrics over TLS, for those who may get /metrics

An address to bind is host:port or :port; 0 turns it off.")]
#[allow(
    clippy::struct_excessive_bools,
    reason = "flags that have nothing to do with each other"
)]
pub struct OperatorArgs {
    /// The port for wake signals, metrics and the table of services
    #[arg(long, value_name = "PORT", env = environment::OPERATOR_PORT, default_value_t = OPERATOR_INTERNAL_PORT, help_heading = "Listen")]
    pub internal_port: u16,

    /// Where health is told; 0 turns it off
    #[arg(long, value_name = "ADDRESS", value_parser = bind, default_value = ":8081", help_heading = "Listen")]
    pub health_probe_bind_address: MaybeBind,

    /// Where metrics are told beside the internal port, or instead of it with --metrics-secure, then :8080 unless set; 0 turns it off
    #[arg(long, value_name = "ADDRESS", value_parser = bind, help_heading = "Listen")]
    pub metrics_bind_address: Option<MaybeBind>,

    /// Tell metrics only over TLS and only to those who may get the path /metrics; the certificate is self-signed
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new(), action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", help_heading = "Listen")]
    pub metrics_secure: bool,

    /// Take wake signals only with the token of the resolvers' ServiceAccount
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new(), action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", help_heading = "Listen")]
    pub require_token: bool,

    /// What to do; may be given several times, or as a list with commas
    #[arg(
        long,
        value_name = "CONTROLLER",
        value_delimiter = ',',
        ignore_case = true,
        default_value = "hold",
        help_heading = "Cluster"
    )]
    pub controllers: Vec<Controller>,

    /// How to reach the cluster; without it as kubectl does, or from inside a pod
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub kubeconfig: Option<PathBuf>,

    /// Watch only this namespace and the operator's own; may be given several times, or as a list with commas
    #[arg(long, value_name = "NAMESPACE", env = environment::WATCH_NAMESPACES, value_delimiter = ',', help_heading = "Cluster")]
    pub watch_namespace: Vec<String>,

    /// Namespace of the operator itself; without it the pod's own (POD_NAMESPACE), or `weir`
    #[arg(long, value_name = "NAMESPACE", env = environment::OPERATOR_NAMESPACE, help_heading = "Cluster")]
    pub operator_namespace: Option<String>,

    /// Of several operators one keeps objects and puts to sleep; `false` only where there is one at all
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new(), action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", help_heading = "Cluster")]
    pub leader_elect: bool,

    /// The Lease, in the operator's namespace, that the leader holds
    #[arg(long, value_name = "LEASE", default_value = LEASE, help_heading = "Cluster")]
    pub lease_name: String,

    /// Namespace in which an operator of KubeElasti may still run, beside this one's own: this one waits until it has ended; may be given several times, or as a list with commas
    #[arg(
        long,
        value_name = "NAMESPACE",
        value_delimiter = ',',
        help_heading = "Cluster"
    )]
    pub peer_namespace: Vec<String>,

    /// Namespace of the resolvers
    #[arg(long, value_name = "NAMESPACE", env = environment::RESOLVER_NAMESPACE, default_value = NAMESPACE, help_heading = "Resolvers")]
    pub resolver_namespace: String,

    /// Name of the resolvers' Service
    #[arg(long, value_name = "SERVICE", env = environment::RESOLVER_SERVICE_NAME, default_value = RESOLVER, help_heading = "Resolvers")]
    pub resolver_service: String,

    /// The ServiceAccount of the resolvers, whose token a wake signal carries
    #[arg(long, value_name = "ACCOUNT", default_value = RESOLVER, help_heading = "Resolvers")]
    pub resolver_service_account: String,

    /// The resolvers' internal port
    #[arg(long, value_name = "PORT", env = environment::RESOLVER_PORT, default_value_t = RESOLVER_INTERNAL_PORT, help_heading = "Resolvers")]
    pub resolver_port: u16,

    /// The resolvers' shared port, where the Host header names the target
    #[arg(long, value_name = "PORT", env = environment::RESOLVER_PROXY_PORT, default_value_t = RESOLVER_PROXY_PORT, help_heading = "Resolvers")]
    pub resolver_proxy_port: u16,

    /// Give each port of a Service a port of its own at the resolvers; with `false` only the shared one is used
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new(), action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", help_heading = "Resolvers")]
    pub per_service_ports: bool,

    /// Take such ports from this range; it should lie below the ephemeral ports of the nodes
    #[arg(long, value_name = "FROM-TO", value_parser = range, default_value = "10240-32767", help_heading = "Resolvers")]
    pub port_range: RangeInclusive<u16>,

    /// The network takes so long to follow a changed EndpointSlice: pods and resolvers overlap for as long
    #[arg(long, value_name = "DURATION", value_parser = positive, default_value_t = Span(SYNC_PERIOD), help_heading = "Time")]
    pub sync_period: Span,

    /// A Service must be seen to lead to a resolver within this time, or its target is not put to sleep
    #[arg(long, value_name = "DURATION", value_parser = positive, default_value_t = Span(CUT_OVER_TIMEOUT), help_heading = "Time")]
    pub cut_over_timeout: Span,

    /// Wake what sleeps when no resolver was ready for this time
    #[arg(long, value_name = "DURATION", value_parser = positive, default_value_t = Span(FAIL_OPEN_AFTER), help_heading = "Time")]
    pub fail_open_after: Span,

    /// Resolvers hold a request this long at most; a deletion waits no longer for a target to wake
    #[arg(long, value_name = "DURATION", env = environment::REQ_TIMEOUT, value_parser = positive, default_value_t = Span(HOLD_TIMEOUT), help_heading = "Time")]
    pub hold_timeout: Span,

    /// Ask triggers this often
    #[arg(long, value_name = "DURATION", env = environment::POLLING_INTERVAL, value_parser = positive, default_value_t = Span(POLLING_INTERVAL), help_heading = "Triggers")]
    pub polling_interval: Span,

    /// The Prometheus server of triggers that name none. PROMETHEUS_TRIGGER_AUTHORIZATION_HEADER, in the environment alone, is what it is sent as Authorization
    #[arg(long, value_name = "URL", env = environment::PROMETHEUS_SERVER_ADDRESS, hide_env_values = true, help_heading = "Triggers")]
    pub prometheus_address: Option<String>,

    /// What is about kubelets.
    #[command(flatten)]
    pub kubelets: KubeletArgs,

    /// What is about place.
    #[command(flatten)]
    pub place: PlaceArgs,

    /// What the peers' operator took and has no meaning here.
    #[command(flatten)]
    pub ignored: IgnoredArgs,
}

/// Flags of the peers' operator without a meaning here: accepted, so that old manifests start.
#[derive(Args, Clone, Debug, Default)]
pub struct IgnoredArgs {
    /// Without meaning
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub enable_http2: Option<String>,
    /// Without meaning
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub zap_devel: Option<String>,
    /// Without meaning
    #[arg(long, hide = true)]
    pub zap_encoder: Option<String>,
    /// Without meaning
    #[arg(long, hide = true)]
    pub zap_log_level: Option<String>,
    /// Without meaning
    #[arg(long, hide = true)]
    pub zap_stacktrace_level: Option<String>,
    /// Without meaning
    #[arg(long, hide = true)]
    pub zap_time_encoding: Option<String>,
}

impl IgnoredArgs {
    /// Those that were given, as they are typed.
    pub(super) fn given(self) -> impl Iterator<Item = &'static str> {
        let Self {
            enable_http2,
            zap_devel,
            zap_encoder,
            zap_log_level,
            zap_stacktrace_level,
            zap_time_encoding,
        } = self;
        [
            ("--enable-http2", enable_http2),
            ("--zap-devel", zap_devel),
            ("--zap-encoder", zap_encoder),
            ("--zap-log-level", zap_log_level),
            ("--zap-stacktrace-level", zap_stacktrace_level),
            ("--zap-time-encoding", zap_time_encoding),
        ]
        .into_iter()
        .filter_map(|(flag, value)| value.map(|_| flag))
    }
}
