//! What place calls things: its resource, the keys it writes on nodes, the exporter it runs, its
//! metrics and conditions. Numbers are in `defaults`.

use crate::dns::DNS_SUBDOMAIN_MAX_LENGTH;

/// API group of the resource; the original's own, so that existing manifests work.
pub const GROUP: &str = "traffic.example.com";
/// Version of the resource.
pub const VERSION: &str = "v1alpha1";
/// Kind of the resource.
pub const KIND: &str = "TrafficWatch";
/// Plural of the resource, in paths and roles.
pub const PLURAL: &str = "trafficwatches";
/// Keeps a `TrafficWatch` until its keys are off all nodes.
pub const FINALIZER: &str = "traffic.example.com/finalizer";
/// Who wrote a field, as the API server notes it: labels and annotations of nodes, Deployments, statuses.
pub const FIELD_MANAGER: &str = "weir-traffic-watch";
/// The same for a Deployment's `replicas`, which must not be among what [`FIELD_MANAGER`] applies.
pub const REPLICAS_FIELD_MANAGER: &str = "weir-traffic-watch-replicas";
/// Annotation on a Deployment with the `replicas` that its user asked for when they were last set: only another wish of
/// the user changes them, not whoever scaled it since.
pub const TOLD_REPLICAS_ANNOTATION: &str = "traffic.example.com/replicas";
/// ClusterRole for those who write `TrafficWatch` objects.
pub const EDITOR_ROLE: &str = "trafficwatch-editor";
/// ClusterRole for those who read them.
pub const VIEWER_ROLE: &str = "trafficwatch-viewer";

/// How every key ends that Weir writes as a label or a taint on nodes; the admission policy lets it
/// write no other.
pub const UNFIT_KEY_SUFFIX: &str = ".traffic.example.com/unfit";
/// The most characters in `label`, so that the key's prefix is still a DNS subdomain.
pub const LABEL_MAX_LENGTH: usize = DNS_SUBDOMAIN_MAX_LENGTH - ".traffic.example.com".len();
/// Value of the key on a node that pods are kept off; read by the Deployment's node affinity.
pub const UNFIT: &str = "true";
/// Value of the key on a node that takes pods.
pub const FIT: &str = "false";
/// Effect of the taint, where `action` is `taint`; read by the scheduler.
pub const TAINT_EFFECT: &str = "PreferNoSchedule";

/// Annotation on a node with the bandwidth of its interfaces, such as `10Gbit`; written by users.
pub const BANDWIDTH_ANNOTATION: &str = "traffic.example.com/bandwidth";
/// Annotation on a node with its load in percent; read by schedulers that score by it.
pub const BANDWIDTH_PERCENT_ANNOTATION: &str = "traffic.example.com/bandwidth-percent";
/// Taint of control-plane nodes, which are not judged.
pub const CONTROL_PLANE_TAINT: &str = "node-role.kubernetes.io/control-plane";
/// Effect of [`CONTROL_PLANE_TAINT`] that keeps pods off.
pub const CONTROL_PLANE_TAINT_EFFECT: &str = "NoSchedule";

/// DaemonSet and headless Service of the node exporter that the operator runs.
pub const NODE_EXPORTER: &str = "weir-node-exporter";
/// DaemonSet and Service of the original's exporter; named in a condition where they are found.
pub const ORIGINAL_NODE_EXPORTER: &str = "traffic-operator-node-exporter";
/// Label on the exporter's namespace that lets it use the host's network; read by Kubernetes.
pub const POD_SECURITY_ENFORCE_LABEL: &str = "pod-security.kubernetes.io/enforce";
/// Value of [`POD_SECURITY_ENFORCE_LABEL`].
pub const POD_SECURITY_PRIVILEGED: &str = "privileged";
/// What an exporter is asked for: only the collectors that are read.
pub const EXPORTER_QUERY: &str = "collect[]=netdev&collect[]=netclass";
/// The exporter's counter of sent bytes.
pub const TRANSMIT_BYTES: &str = "node_network_transmit_bytes_total";
/// The exporter's counter of received bytes.
pub const RECEIVE_BYTES: &str = "node_network_receive_bytes_total";
/// The exporter's figure for an interface's speed; virtual ones say −1 or −125000.
pub const SPEED_BYTES: &str = "node_network_speed_bytes";

/// Load by node and interface.
pub const NODE_UTILIZATION_RATIO: &str = "weir_place_node_utilization_ratio";
/// Nodes by `watch` and `state`.
pub const NODES: &str = "weir_place_nodes";
/// How long scrapes take.
pub const SCRAPE_SECONDS: &str = "weir_place_scrape_seconds";
/// Scrapes that failed.
pub const SCRAPE_ERRORS_TOTAL: &str = "weir_place_scrape_errors_total";
/// Writes of labels to nodes.
pub const LABEL_WRITES_TOTAL: &str = "weir_place_label_writes_total";
/// Pods evicted.
pub const EVICTIONS_TOTAL: &str = "weir_place_evictions_total";

/// Type of a condition of a `TrafficWatch`, true when all is well. `Accepted` comes from the
/// findings about the object itself, which all three resources share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionType {
    /// Every worker gives figures.
    Measured,
    /// The Deployment is as the spec says, and enough nodes are fit.
    Placed,
    /// Every worker has been measured or has timed out once.
    Ready,
    /// Nothing of the original operator is left beside this one. Only told where something is.
    Alone,
}

impl ConditionType {
    /// The type as the condition has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Measured => "Measured",
            Self::Placed => "Placed",
            Self::Ready => "Ready",
            Self::Alone => "Alone",
        }
    }
}

/// The key of the label and the taint that a watch with this `label` writes on nodes. A valid one
/// for every DNS subdomain of at most [`LABEL_MAX_LENGTH`]; `validate` refuses others.
pub fn unfit_label_key(label: &str) -> String {
    format!("{label}{UNFIT_KEY_SUFFIX}")
}

/// The `label` that a key on a node belongs to; none if the key is not one of ours. The operator
/// finds by it the keys that no watch claims.
pub fn label_of_unfit_key(key: &str) -> Option<&str> {
    key.strip_suffix(UNFIT_KEY_SUFFIX)
        .filter(|label| !label.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dns::{
        NameError, check_dns_label, check_dns_subdomain, check_label_key, check_label_value,
    };

    #[test]
    fn known_keys() {
        assert_eq!(unfit_label_key("web"), "web.traffic.example.com/unfit");
        assert_eq!(
            label_of_unfit_key("web.traffic.example.com/unfit"),
            Some("web")
        );
        assert_eq!(label_of_unfit_key(".traffic.example.com/unfit"), None);
        assert_eq!(label_of_unfit_key("traffic.example.com/unfit"), None);
        assert_eq!(label_of_unfit_key(BANDWIDTH_ANNOTATION), None);
    }

    #[test]
    fn the_longest_label_is_just_valid() {
        assert_eq!(LABEL_MAX_LENGTH, 233);
        assert_eq!(
            check_label_key(&unfit_label_key(&"a".repeat(LABEL_MAX_LENGTH))),
            Ok(())
        );
        assert_eq!(
            check_label_key(&unfit_label_key(&"a".repeat(LABEL_MAX_LENGTH + 1))),
            Err(NameError::TooLong {
                length: 254,
                max: 253
            })
        );
    }

    #[test]
    fn marks_and_objects_are_valid() {
        for key in [
            FINALIZER,
            TOLD_REPLICAS_ANNOTATION,
            BANDWIDTH_ANNOTATION,
            BANDWIDTH_PERCENT_ANNOTATION,
            CONTROL_PLANE_TAINT,
            POD_SECURITY_ENFORCE_LABEL,
        ] {
            assert_eq!(check_label_key(key), Ok(()), "{key}");
        }
        for value in [UNFIT, FIT, POD_SECURITY_PRIVILEGED] {
            assert_eq!(check_label_value(value), Ok(()), "{value}");
        }
        for name in [NODE_EXPORTER, ORIGINAL_NODE_EXPORTER] {
            assert_eq!(check_dns_label(name), Ok(()), "{name}");
        }
    }

    proptest! {
        #[test]
        fn keys_are_valid_and_lead_back_to_their_label(
            label in "[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?){0,8}",
        ) {
            prop_assert!(check_dns_subdomain(&label).is_ok() || label.len() > 253);
            let key = unfit_label_key(&label);
            prop_assert_eq!(check_label_key(&key).is_ok(), label.len() <= LABEL_MAX_LENGTH);
            // Leading back means that two labels never share a key.
            prop_assert_eq!(label_of_unfit_key(&key), Some(label.as_str()));
        }
    }
}
