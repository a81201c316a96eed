//! The peers' metrics, which dashboards know by these names, without `_total`.

/// Requests that a resolver holds, by [`SOURCE`] and [`NAMESPACE`].
pub const RESOLVER_QUEUED_COUNT: &str = "elasti_resolver_queued_count";
/// Histogram of the requests that a resolver answered, by [`SOURCE`], [`TARGET`], [`NAMESPACE`],
/// [`METHOD`] and [`STATUS`].
pub const RESOLVER_INCOMING_REQUESTS: &str = "elasti_resolver_incoming_requests";
/// How the target of a request on the shared port was found, by [`EXTRACTION_TYPE`].
pub const RESOLVER_HOST_EXTRACTION_COUNT: &str = "elasti_resolver_host_extraction_count";
/// Switches of traffic, by [`SOURCE`] and [`ENABLED`].
pub const RESOLVER_TRAFFIC_SWITCH_COUNT: &str = "elasti_resolver_traffic_switch_count";
/// Wake signals to the operator, by [`ERROR`], which is empty when all went well.
pub const RESOLVER_OPERATOR_RPC_COUNT: &str = "elasti_resolver_operator_rpc_count";

/// Reconciles, by [`CRD_NAME`].
pub const OPERATOR_RECONCILE: &str = "elasti_operator_reconcile";
/// Finalizers added and removed, by [`CRD_NAME`] and [`ACTION`].
pub const OPERATOR_CRD_FINALIZER_COUNTER: &str = "elasti_operator_CRD_finalizer_counter";
/// Changes of status, by [`CRD_NAME`] and [`MODE`].
pub const OPERATOR_CRD_UPDATE_COUNTER: &str = "elasti_operator_CRD_update_counter";
/// The mode by [`CRD_NAME`]: 1 is proxy.
pub const OPERATOR_MODE: &str = "elasti_operator_mode";
/// Watches now open, by [`CRD_NAME`].
pub const OPERATOR_INFORMER_COUNT: &str = "elasti_operator_informer_count";
/// Watches opened and closed, by [`CRD_NAME`], [`ACTION`] and [`KEY`].
pub const OPERATOR_INFORMER_COUNTER: &str = "elasti_operator_informer_counter";
/// Changes seen, by [`CRD_NAME`], [`KEY`] and [`INFORMER_NAME`].
pub const OPERATOR_INFORMER_HANDLER_COUNTER: &str = "elasti_operator_informer_handler_counter";
/// Scales, by [`SERVICE_NAME`], [`NAMESPACE`], [`TARGET`] and [`ERROR`].
pub const OPERATOR_SCALE_COUNTER: &str = "elasti_operator_scale_counter";

/// Label: the public Service.
pub const SOURCE: &str = "source";
/// Label: what a request was sent to, or the workload as [`scale_target`] writes it.
pub const TARGET: &str = "target";
/// Label: the namespace.
pub const NAMESPACE: &str = "namespace";
/// Label: the request's method.
pub const METHOD: &str = "method";
/// Label: the reason phrase of the response's status.
pub const STATUS: &str = "status";
/// Label: one of [`EXTRACTION_CACHE_HIT`], [`EXTRACTION_CACHE_MISS`] and [`EXTRACTION_ERROR`].
pub const EXTRACTION_TYPE: &str = "extractionType";
/// Label: [`SWITCH_ENABLED`] or [`SWITCH_DISABLED`].
pub const ENABLED: &str = "enabled";
/// Label: a bounded reason; [`SCALE_SUCCESS`] for a scale that went well.
pub const ERROR: &str = "error";
/// Label: the `ElastiService`, as `namespace/name`.
pub const CRD_NAME: &str = "crd_name";
/// Label: what was done.
pub const ACTION: &str = "action";
/// Label: what is watched.
pub const KEY: &str = "key";
/// Label: the watch that saw a change.
pub const INFORMER_NAME: &str = "informer_name";
/// Label: the mode that was entered.
pub const MODE: &str = "mode";
/// Label: the public Service of a scaled target.
pub const SERVICE_NAME: &str = "service_name";

/// Value of [`EXTRACTION_TYPE`]: the target was known.
pub const EXTRACTION_CACHE_HIT: &str = "cache-hit";
/// Value of [`EXTRACTION_TYPE`]: the target was looked up.
pub const EXTRACTION_CACHE_MISS: &str = "cache-miss";
/// Value of [`EXTRACTION_TYPE`]: the request names no target.
pub const EXTRACTION_ERROR: &str = "error";
/// Value of [`ENABLED`]: requests go to the resolver.
pub const SWITCH_ENABLED: &str = "enabled";
/// Value of [`ENABLED`]: requests go to the pods.
pub const SWITCH_DISABLED: &str = "disabled";
/// Value of [`ERROR`] of [`OPERATOR_SCALE_COUNTER`] when all went well.
pub const SCALE_SUCCESS: &str = "success";

/// Value of [`TARGET`] of [`OPERATOR_SCALE_COUNTER`]: `Deployment-web`.
pub fn scale_target(kind: &str, name: &str) -> String {
    format!("{kind}-{name}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_target_of_a_scale_is_written_as_the_peers_write_it() {
        assert_eq!(super::scale_target("Deployment", "web"), "Deployment-web");
    }
}
