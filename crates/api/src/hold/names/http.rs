//! Paths and headers of the operator's and the resolvers' HTTP surface. The peers' tools read them,
//! and so does the other half of ours.

/// Metrics of either process, on its internal port; read by Prometheus.
pub const METRICS_PATH: &str = "/metrics";
/// Whether the process lives; read by the kubelet.
pub const HEALTH_PATH: &str = "/healthz";
/// Whether the process may be sent requests; read by the kubelet.
pub const READY_PATH: &str = "/readyz";
/// Whether a resolver holds requests for `?namespace=&service=`; read by the peers' tools.
pub const QUEUE_STATUS_PATH: &str = "/queue-status";
/// Whether a resolver's table of services is filled; read by the peers' tools.
pub const RESOLVER_CACHE_STATUS_PATH: &str = "/crd-cache-status";
/// Whether a connection from `?peer=` that has said nothing is open at a resolver; read by the operator, which opened
/// it through a Service.
pub const SILENT_CONNECTIONS_PATH: &str = "/silent-connections";
/// How much the services are used that stay behind a resolver; read by the operator.
pub const USAGE_PATH: &str = "/usage";
/// The operator's table of services; read by the peers' resolvers.
pub const OPERATOR_CACHE_PATH: &str = "/crd-cache";
/// Where a resolver tells the operator that requests have come for a sleeping service.
pub const INCOMING_REQUEST_PATH: &str = "/informer/incoming-request";
/// The kubelet's figures on pods and their networks, for the `network` trigger.
pub const KUBELET_STATS_PATH: &str = "/stats/summary";

/// Header to which the resolver adds the client's address; read by applications.
pub const FORWARDED_FOR_HEADER: &str = "x-forwarded-for";
/// Header that the resolver sets to the host that the client asked for; read by applications.
pub const FORWARDED_HOST_HEADER: &str = "x-forwarded-host";
/// Header that the resolver sets, if it is absent, to the client's scheme; read by applications.
pub const FORWARDED_PROTO_HEADER: &str = "x-forwarded-proto";
/// Header of a 503 with the seconds after which a retry is likely to succeed; read by clients.
pub const RETRY_AFTER_HEADER: &str = "retry-after";
