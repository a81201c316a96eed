//! The peers' environment variables, which the operator and the resolvers still read.

/// Seconds that a request is held, at most.
pub const REQ_TIMEOUT: &str = "REQ_TIMEOUT";
/// The most requests that a resolver holds over all services.
pub const QUEUE_SIZE: &str = "QUEUE_SIZE";
/// The header that names the target on the shared port, before the Host header.
pub const HEADER_FOR_HOST: &str = "HEADER_FOR_HOST";
/// The most idle connections that a resolver keeps to pods.
pub const MAX_IDLE_PROXY_CONNS: &str = "MAX_IDLE_PROXY_CONNS";
/// The most idle connections that a resolver keeps to one pod.
pub const MAX_IDLE_PROXY_CONNS_PER_HOST: &str = "MAX_IDLE_PROXY_CONNS_PER_HOST";
/// Seconds between two wake signals for one service.
pub const OPERATOR_RETRY_DURATION: &str = "OPERATOR_RETRY_DURATION";
/// Whether the resolver speaks HTTP/2 without TLS.
pub const ENABLE_H2C: &str = "ENABLE_H2C";
/// Where errors are reported.
pub const SENTRY_DSN: &str = "SENTRY_DSN";
/// The environment under which errors are reported.
pub const SENTRY_ENVIRONMENT: &str = "SENTRY_ENVIRONMENT";
/// Namespace of the resolvers.
pub const RESOLVER_NAMESPACE: &str = "ELASTI_RESOLVER_NAMESPACE";
/// Name of the resolvers' Deployment.
pub const RESOLVER_DEPLOYMENT_NAME: &str = "ELASTI_RESOLVER_DEPLOYMENT_NAME";
/// Name of the resolvers' Service.
pub const RESOLVER_SERVICE_NAME: &str = "ELASTI_RESOLVER_SERVICE_NAME";
/// The resolvers' internal port.
pub const RESOLVER_PORT: &str = "ELASTI_RESOLVER_PORT";
/// The resolvers' shared proxy port.
pub const RESOLVER_PROXY_PORT: &str = "ELASTI_RESOLVER_PROXY_PORT";
/// Namespace of the operator.
pub const OPERATOR_NAMESPACE: &str = "ELASTI_OPERATOR_NAMESPACE";
/// Name of the operator's Deployment.
pub const OPERATOR_DEPLOYMENT_NAME: &str = "ELASTI_OPERATOR_DEPLOYMENT_NAME";
/// Name of the operator's Service.
pub const OPERATOR_SERVICE_NAME: &str = "ELASTI_OPERATOR_SERVICE_NAME";
/// The operator's internal port.
pub const OPERATOR_PORT: &str = "ELASTI_OPERATOR_PORT";
/// The domain below which the cluster's Services have their names.
pub const CLUSTER_DOMAIN: &str = "KUBERNETES_CLUSTER_DOMAIN";
/// How often triggers are asked, as a Go duration.
pub const POLLING_INTERVAL: &str = "POLLING_INTERVAL";
/// The namespaces to watch, separated by commas; our own is added.
pub const WATCH_NAMESPACES: &str = "WATCH_NAMESPACES";
/// The Prometheus server of triggers that name none.
pub const PROMETHEUS_SERVER_ADDRESS: &str = "PROMETHEUS_TRIGGER_SERVER_ADDRESS";
/// The Authorization header of triggers that give none.
pub const PROMETHEUS_AUTHORIZATION_HEADER: &str = "PROMETHEUS_TRIGGER_AUTHORIZATION_HEADER";

/// Variables that say nothing to us; one that is set is named in one log line.
pub const ACCEPTED_AND_IGNORED: [&str; 6] = [
    "MAX_QUEUE_CONCURRENCY",
    "INITIAL_CAPACITY",
    "QUEUE_RETRY_DURATION",
    "TRAFFIC_RE_ENABLE_DURATION",
    "TRAFFIC_DISABLE_GRACE_DURATION",
    "CRD_CACHE_POLL_INTERVAL_MINUTES",
];
