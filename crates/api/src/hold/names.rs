//! What hold calls things: its resource, the objects it derives from one, and the marks it leaves
//! on other people's objects.
//!
//! The HTTP surface, the metrics, the environment, what is installed and what is reported have files of their own
//! below. Numbers are in `defaults`.

pub mod environment;
pub mod http;
pub mod install;
pub mod metrics;
pub mod report;

use std::net::IpAddr;

use crate::dns::{DNS_LABEL_MAX_LENGTH, DNS_SUBDOMAIN_MAX_LENGTH, short_hash};

/// API group of the resource; the peers' own, so that existing manifests work.
pub const GROUP: &str = "elasti.truefoundry.com";
/// Version of the resource.
pub const VERSION: &str = "v1alpha1";
/// Kind of the resource.
pub const KIND: &str = "ElastiService";
/// Plural of the resource, in paths and roles.
pub const PLURAL: &str = "elastiservices";
/// Keeps an `ElastiService` until the operator has woken its target and tidied up.
pub const FINALIZER: &str = "elasti.truefoundry.com/finalizer";

/// Label on every derived object, with the UID of its `ElastiService`: the operator finds by it
/// what the present spec no longer calls for.
pub const UID_LABEL: &str = "elasti.truefoundry.com/elastiservice-uid";
/// Label that ties an EndpointSlice to its Service; read by kube-proxy and by every other proxy.
pub const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";
/// Label that tells Kubernetes' own EndpointSlice controller to leave a slice alone.
pub const SLICE_MANAGED_BY_LABEL: &str = "endpointslice.kubernetes.io/managed-by";
/// Value of [`SLICE_MANAGED_BY_LABEL`] on the operator's slices; see [`leads_to_resolvers`].
pub const SLICE_MANAGED_BY: &str = "weir";

/// Annotation that pauses a KEDA ScaledObject; read by KEDA.
pub const KEDA_PAUSED_ANNOTATION: &str = "autoscaling.keda.sh/paused";
/// Value of [`KEDA_PAUSED_ANNOTATION`] while the target sleeps.
pub const KEDA_PAUSED: &str = "true";
/// Annotation with the replicas that KEDA keeps while paused; read by KEDA.
pub const KEDA_PAUSED_REPLICAS_ANNOTATION: &str = "autoscaling.keda.sh/paused-replicas";
/// Value of [`KEDA_PAUSED_REPLICAS_ANNOTATION`] while the target sleeps.
pub const KEDA_PAUSED_REPLICAS: &str = "0";
/// Annotation on a ScaledObject with the name of the `ElastiService` that paused it; the operator
/// removes only pauses that carry it.
pub const PAUSED_BY_ANNOTATION: &str = "elasti.truefoundry.com/paused-by";

/// Annotation on our slice: the start of the phase for which it was last needed anew, so that a
/// removal which was decided before that fails.
pub const NEEDED_SINCE_ANNOTATION: &str = "elasti.truefoundry.com/needed-since";
/// What the annotations of [`fence`] begin with.
pub const FENCE_PREFIX: &str = "elasti.truefoundry.com/drain-undone-";
/// Who is named as the writer of what the controller of `ElastiService` keeps.
pub const FIELD_MANAGER: &str = "weir-elasti-service";

/// Annotation by which a user says what becomes of a sleeping target when its `ElastiService` is
/// deleted; read by the operator.
pub const ON_DELETE_ANNOTATION: &str = "elasti.truefoundry.com/on-delete";
/// Value of [`ON_DELETE_ANNOTATION`]: leave the target asleep instead of waking it first.
pub const ON_DELETE_LEAVE: &str = "leave";

/// The Lease that the peers' operator holds; while it is fresh, ours waits.
pub const PEER_LEASE: &str = "acf50383.truefoundry.io";

/// A family of addresses; an EndpointSlice holds one, and cannot change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl AddressFamily {
    /// Both.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The one that an address is of.
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// How `spec.ipFamilies` of a Service and `addressType` of an EndpointSlice spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

/// Name of the private Service beside a public one, at most 63 characters. Kept for those who use
/// the peers' private Services by name; nothing of ours reads it.
pub fn private_service(service: &str) -> String {
    hashed("elasti-", service, "-pvt-", "", DNS_LABEL_MAX_LENGTH)
}

/// Name of the EndpointSlice that leads a public Service to the resolvers, at most 253 characters.
/// The operator makes it; kube-proxy finds it by [`SERVICE_NAME_LABEL`].
pub fn resolver_slice(service: &str, family: AddressFamily) -> String {
    let suffix = match family {
        AddressFamily::V4 => "",
        AddressFamily::V6 => "-v6",
    };
    let middle = "-endpointslice-to-resolver-";
    hashed("elasti-", service, middle, suffix, DNS_SUBDOMAIN_MAX_LENGTH)
}

/// Whether an EndpointSlice of this Service leads to resolvers and not to pods. Ours say so by [`SLICE_MANAGED_BY_LABEL`]. The
/// peers' say it by their name alone, which is the same as ours: one that they left must be taken for what it is, and taken
/// over.
pub fn leads_to_resolvers(slice: &str, service: &str, managed_by: Option<&str>) -> bool {
    match managed_by {
        Some(by) => by == SLICE_MANAGED_BY,
        // The names are compared only where they may be the same, since a hash is in them.
        None => {
            slice.starts_with("elasti-")
                && AddressFamily::ALL
                    .iter()
                    .any(|family| resolver_slice(service, *family) == slice)
        }
    }
}

/// Annotation on a target or a ScaledObject with the start of the drain that an `ElastiService` undid
/// last: writing it changes the object's version, so that what was sent for that drain fails. One key
/// for each `ElastiService`, since several may share a target.
pub fn fence(elasti_service: &str) -> String {
    format!("{FENCE_PREFIX}{}", short_hash(elasti_service))
}

/// `<prefix><service><middle><hash><suffix>`, the service cut so that all of it fits. The peers
/// always add the hash, so there is no short form as in [`crate::dns::fit`].
fn hashed(prefix: &str, service: &str, middle: &str, suffix: &str, max: usize) -> String {
    let hash = short_hash(service);
    let room = max.saturating_sub(prefix.len() + middle.len() + hash.len() + suffix.len());
    let cut = service
        .get(..service.floor_char_boundary(room))
        .unwrap_or_default();
    format!(
        "{prefix}{}{middle}{hash}{suffix}",
        cut.trim_end_matches('-')
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::dns::{check_dns_label, check_dns_subdomain, check_label_key, check_label_value};

    #[test]
    fn known_names() {
        // printf httpbin | sha256sum
        assert_eq!(private_service("httpbin"), "elasti-httpbin-pvt-abbea20e59");
        let slice = "elasti-httpbin-endpointslice-to-resolver-abbea20e59";
        assert_eq!(resolver_slice("httpbin", AddressFamily::V4), slice);
        assert_eq!(
            resolver_slice("httpbin", AddressFamily::V6),
            format!("{slice}-v6")
        );
    }

    #[test]
    fn a_slice_leads_to_resolvers_by_its_label_or_by_the_peers_name() {
        let name = resolver_slice("httpbin", AddressFamily::V4);
        let pods = Some("endpointslice-controller.k8s.io");
        for (slice, managed_by, expected) in [
            (&*name, Some(SLICE_MANAGED_BY), true),
            ("any", Some(SLICE_MANAGED_BY), true),
            (&*name, None, true),
            (&*resolver_slice("httpbin", AddressFamily::V6), None, true),
            (&*name, pods, false),
            // Another Service's, and a user's own.
            (&*resolver_slice("other", AddressFamily::V4), None, false),
            ("elasti-httpbin", None, false),
            ("httpbin-x7k2p", None, false),
        ] {
            let is = leads_to_resolvers(slice, "httpbin", managed_by);
            assert_eq!(is, expected, "{slice} {managed_by:?}");
        }
    }

    #[test]
    fn long_services_are_cut_where_the_peers_cut_them() {
        // printf 'a%.0s' {1..63} | sha256sum
        let hash = "7d3e74a05d";
        let service = "a".repeat(63);
        let private = private_service(&service);
        assert_eq!(private, format!("elasti-{}-pvt-{hash}", "a".repeat(41)));
        assert_eq!(private.len(), 63);
        // A Service's name is never that long, but the limit holds by itself.
        let slice = resolver_slice(&"a".repeat(300), AddressFamily::V4);
        assert!(slice.starts_with(&format!("elasti-{}-endpointslice", "a".repeat(209))));
        assert_eq!(slice.len(), 253);
        assert_eq!(
            resolver_slice(&"a".repeat(300), AddressFamily::V6).len(),
            253
        );
        // The cut falls on a hyphen.
        let service = format!("{}--{}", "a".repeat(39), "b".repeat(10));
        assert!(private_service(&service).starts_with(&format!("elasti-{}-pvt-", "a".repeat(39))));
    }

    #[test]
    fn marks_are_valid() {
        for key in [
            FINALIZER,
            UID_LABEL,
            SERVICE_NAME_LABEL,
            SLICE_MANAGED_BY_LABEL,
            KEDA_PAUSED_ANNOTATION,
            KEDA_PAUSED_REPLICAS_ANNOTATION,
            NEEDED_SINCE_ANNOTATION,
            &fence(&"a".repeat(253)),
            PAUSED_BY_ANNOTATION,
            ON_DELETE_ANNOTATION,
        ] {
            assert_eq!(check_label_key(key), Ok(()), "{key}");
        }
        assert_eq!(check_label_value(SLICE_MANAGED_BY), Ok(()));
        assert_eq!(check_dns_subdomain(PEER_LEASE), Ok(()));
    }

    proptest! {
        #[test]
        fn derived_names_are_valid(service in "[a-z]([a-z0-9-]{0,61}[a-z0-9])?") {
            let private = private_service(&service);
            prop_assert_eq!(check_dns_label(&private), Ok(()), "{}", private);
            for family in [AddressFamily::V4, AddressFamily::V6] {
                let slice = resolver_slice(&service, family);
                prop_assert_eq!(check_dns_subdomain(&slice), Ok(()), "{}", slice);
            }
        }

        /// Few letters and a long common start, so that many are alike where they are cut.
        #[test]
        fn services_never_share_a_name(
            services in proptest::collection::btree_set("a{38}-{0,3}[ab]{1,20}", 2..40),
        ) {
            let names: BTreeSet<String> = services
                .iter()
                .flat_map(|service| {
                    [
                        private_service(service),
                        resolver_slice(service, AddressFamily::V4),
                        resolver_slice(service, AddressFamily::V6),
                    ]
                })
                .collect();
            prop_assert_eq!(names.len(), services.len() * 3);
        }
    }
}
