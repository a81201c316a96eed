//! What steer calls things: its resource, the labels by which users opt in, and the objects it
//! derives from a Service.
//!
//! AMQP, HTTP, metrics, the environment and what is reported have files of their own below. Numbers
//! are in `defaults`.

pub mod broker;
pub mod environment;
pub mod http;
pub mod metrics;
pub mod report;

use crate::dns::{DNS_LABEL_MAX_LENGTH, DNS_SUBDOMAIN_MAX_LENGTH, LABEL_MAX_LENGTH, fit};

/// API group of the resource; the original's own, so that existing manifests work.
pub const GROUP: &str = "scheduling.carbonrouter.io";
/// Version of the resource.
pub const VERSION: &str = "v1alpha1";
/// Kind of the resource.
pub const KIND: &str = "TrafficSchedule";
/// Plural of the resource, in paths and roles.
pub const PLURAL: &str = "trafficschedules";

/// Label by which a Service opts in; read by the operator.
pub const ENABLED_LABEL: &str = "carbonrouter/enabled";
/// Value of [`ENABLED_LABEL`] that opts in.
pub const ENABLED: &str = "true";
/// Label on a flavour's Deployment with its precision; read by discovery, and on its pods by the
/// DestinationRule.
pub const PRECISION_LABEL: &str = "carbonstat.precision";
/// Label on a flavour's Deployment with its emissions per request; read by discovery.
pub const EMISSIONS_LABEL: &str = "carbonstat.emissions";
/// Label with the Service to which an object belongs: on flavours the users', on derived objects
/// ours, where selectors tell one Service's router from another's by it.
pub const PARENT_SERVICE_LABEL: &str = "carbonrouter/parent-service";
/// Annotation with the hash of what was last sent to the engine; read by the schedule controller.
pub const CONFIG_HASH_ANNOTATION: &str = "scheduling.carbonrouter.io/config-hash";

/// Label with the name of an application; ServiceMonitors select by it.
pub const APP_NAME_LABEL: &str = "app.kubernetes.io/name";
/// Value of [`APP_NAME_LABEL`] on routers.
pub const ROUTER_APP_NAME: &str = "buffer-service-router";
/// Value of [`APP_NAME_LABEL`] on consumers.
pub const CONSUMER_APP_NAME: &str = "buffer-service-consumer";
/// Label with the instance of an application; ServiceMonitors select by it.
pub const APP_INSTANCE_LABEL: &str = "app.kubernetes.io/instance";
/// Value of [`APP_INSTANCE_LABEL`].
pub const APP_INSTANCE: &str = "carbonrouter";
/// Label with the part that an object plays: [`ROUTER_COMPONENT`] or [`CONSUMER_COMPONENT`].
pub const APP_COMPONENT_LABEL: &str = "app.kubernetes.io/component";
/// Label with the application that an object is part of.
pub const APP_PART_OF_LABEL: &str = "app.kubernetes.io/part-of";
/// Value of [`APP_PART_OF_LABEL`].
pub const APP_PART_OF: &str = "carbonrouter";
/// Label with who looks after an object.
pub const APP_MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// Value of [`APP_MANAGED_BY_LABEL`].
pub const APP_MANAGED_BY: &str = "carbonrouter-operator";

/// The router, as a component in ceilings, payloads and labels.
pub const ROUTER_COMPONENT: &str = "router";
/// The consumer, as a component in ceilings, payloads and labels.
pub const CONSUMER_COMPONENT: &str = "consumer";
/// The flavours, as a component in ceilings and payloads.
pub const TARGET_COMPONENT: &str = "target";

/// Label on consumer pods that chooses Istio's revision; read by Istio.
pub const ISTIO_REVISION_LABEL: &str = "istio.io/rev";
/// Value of [`ISTIO_REVISION_LABEL`].
pub const ISTIO_REVISION: &str = "default";
/// Annotation on consumer pods that asks for a sidecar; read by Istio.
pub const ISTIO_INJECT_ANNOTATION: &str = "sidecar.istio.io/inject";
/// Value of [`ISTIO_INJECT_ANNOTATION`].
pub const ISTIO_INJECT: &str = "true";

/// Schedule of a Service that none names, where one is called so.
pub const FALLBACK_SCHEDULE: &str = "traffic-schedule";
/// ClusterTriggerAuthentication of the rabbitmq triggers (a setting); read by KEDA.
pub const TRIGGER_AUTHENTICATION: &str = "carbonrouter-rabbitmq-auth";
/// Service of the decision engine (a setting).
pub const ENGINE_SERVICE: &str = "carbonrouter-decision-engine";
/// Namespace of the decision engine (a setting).
pub const ENGINE_NAMESPACE: &str = "carbonrouter-system";

const ROUTER_PREFIX: &str = "buffer-service-router-";
const CONSUMER_PREFIX: &str = "buffer-service-consumer-";

/// Name of a Service's router: its Deployment, its Service and its ScaledObject.
pub fn router(service: &str) -> String {
    fit(ROUTER_PREFIX, service, "", DNS_LABEL_MAX_LENGTH)
}

/// Name of a Service's consumer: its Deployment, its Service and its ScaledObject.
pub fn consumer(service: &str) -> String {
    fit(CONSUMER_PREFIX, service, "", DNS_LABEL_MAX_LENGTH)
}

/// Whether a Service is called as routers and consumers are. Such a one is not to be opted in: its
/// flavours' ScaledObjects could have the names of another Service's router or consumer.
pub fn is_named_like_a_derived_one(service: &str) -> bool {
    service.starts_with(ROUTER_PREFIX) || service.starts_with(CONSUMER_PREFIX)
}

/// ServiceAccount of a Service's router and consumer, and the Role and RoleBinding that let it read
/// schedules.
pub fn schedule_viewer(service: &str) -> String {
    fit(
        "",
        service,
        "-trafficschedule-viewer",
        DNS_SUBDOMAIN_MAX_LENGTH,
    )
}

/// ScaledObject of a flavour's Deployment. At most 63 characters: KEDA writes the name into a label.
pub fn flavour_scaled_object(service: &str, percent: u32) -> String {
    fit(
        "",
        service,
        &format!("-{}", flavour(percent)),
        LABEL_MAX_LENGTH,
    )
}

/// Istio DestinationRule of a Service.
pub fn destination_rule(service: &str) -> String {
    fit("", service, "-carbonrouter-dr", DNS_SUBDOMAIN_MAX_LENGTH)
}

/// Istio VirtualService of a Service.
pub fn virtual_service(service: &str) -> String {
    fit("", service, "-carbonrouter-vs", DNS_SUBDOMAIN_MAX_LENGTH)
}

/// Host of a Service's VirtualService and DestinationRule; read by Istio.
pub fn service_host(service: &str, namespace: &str, cluster_domain: &str) -> String {
    format!("{service}.{namespace}.svc.{cluster_domain}")
}

/// Value of [`PARENT_SERVICE_LABEL`]: the Service's name, which may be too long for a label only
/// where it is no valid name of a Service.
pub fn parent_service(service: &str) -> String {
    fit("", service, "", LABEL_MAX_LENGTH)
}

/// Name of a flavour in weights, queues, subsets and metrics: `precision-50`.
pub fn flavour(percent: u32) -> String {
    format!("{FLAVOUR_PREFIX}{percent}")
}

/// The precision, in percent, of a flavour that a client asks for as `precision-50` or `50`; read
/// by the router.
pub fn percent_of_flavour(text: &str) -> Option<u32> {
    let digits = text.strip_prefix(FLAVOUR_PREFIX).unwrap_or(text);
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits
        .parse()
        .ok()
        .filter(|percent| is_plain && *percent <= 100)
}

const FLAVOUR_PREFIX: &str = "precision-";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::dns::{check_dns_label, check_dns_subdomain, check_label_key, check_label_value};

    #[test]
    fn known_names() {
        assert_eq!(router("web"), "buffer-service-router-web");
        assert_eq!(consumer("web"), "buffer-service-consumer-web");
        assert_eq!(schedule_viewer("web"), "web-trafficschedule-viewer");
        assert_eq!(flavour_scaled_object("web", 50), "web-precision-50");
        assert_eq!(destination_rule("web"), "web-carbonrouter-dr");
        assert_eq!(virtual_service("web"), "web-carbonrouter-vs");
        assert_eq!(
            service_host("web", "shop", "cluster.local"),
            "web.shop.svc.cluster.local"
        );
        assert_eq!(parent_service("web"), "web");
        // printf 'a%.0s' {1..63} | sha256sum
        let long = "a".repeat(63);
        assert_eq!(
            router(&long),
            format!("buffer-service-router-{}-7d3e74a05d", "a".repeat(30))
        );
        assert_eq!(parent_service(&long), long);
    }

    #[test]
    fn flavours_by_name_and_by_number() {
        assert_eq!(flavour(50), "precision-50");
        for text in ["precision-50", "50"] {
            assert_eq!(percent_of_flavour(text), Some(50));
        }
        for text in [
            "",
            "precision-",
            "precision-x",
            "+50",
            "-50",
            "101",
            "5.0",
            "precision-+5",
        ] {
            assert_eq!(percent_of_flavour(text), None, "{text}");
        }
    }

    #[test]
    fn marks_are_valid() {
        for key in [
            ENABLED_LABEL,
            PRECISION_LABEL,
            EMISSIONS_LABEL,
            PARENT_SERVICE_LABEL,
            CONFIG_HASH_ANNOTATION,
            APP_NAME_LABEL,
            APP_INSTANCE_LABEL,
            APP_COMPONENT_LABEL,
            APP_PART_OF_LABEL,
            APP_MANAGED_BY_LABEL,
            ISTIO_REVISION_LABEL,
            ISTIO_INJECT_ANNOTATION,
        ] {
            assert_eq!(check_label_key(key), Ok(()), "{key}");
        }
        for value in [
            ROUTER_APP_NAME,
            CONSUMER_APP_NAME,
            APP_INSTANCE,
            APP_MANAGED_BY,
        ] {
            assert_eq!(check_label_value(value), Ok(()), "{value}");
        }
    }

    /// All names that one Service gives rise to, by kind: names of one kind must differ.
    fn scaled_objects(service: &str) -> Vec<String> {
        let mut names = vec![router(service), consumer(service)];
        names.extend([0, 5, 50, 100].map(|percent| flavour_scaled_object(service, percent)));
        names
    }

    proptest! {
        #[test]
        fn derived_names_are_valid(
            service in "[a-z]([a-z0-9-]{0,61}[a-z0-9])?",
            percent in 0_u32..=100,
        ) {
            for name in [router(&service), consumer(&service)] {
                prop_assert_eq!(check_dns_label(&name), Ok(()), "{}", name);
            }
            for name in [
                schedule_viewer(&service),
                destination_rule(&service),
                virtual_service(&service),
                flavour_scaled_object(&service, percent),
            ] {
                prop_assert_eq!(check_dns_subdomain(&name), Ok(()), "{}", name);
            }
            for value in [
                parent_service(&service),
                flavour_scaled_object(&service, percent),
                flavour(percent),
            ] {
                prop_assert_eq!(check_label_value(&value), Ok(()), "{}", value);
            }
            prop_assert_eq!(percent_of_flavour(&flavour(percent)), Some(percent));
        }

        /// Lengths around the limits, and starts and ends that look like our own.
        #[test]
        fn services_never_share_a_name(
            services in proptest::collection::btree_set(
                "(carbonrouter-|consumer-)?a{20}-{0,2}[ab]{1,24}(-precision-50?)?",
                2..30,
            ),
        ) {
            let all = |names: fn(&str) -> Vec<String>| -> (usize, usize) {
                let names: Vec<String> = services.iter().flat_map(|s| names(s)).collect();
                (names.len(), names.iter().collect::<BTreeSet<_>>().len())
            };
            for (made, different) in [
                all(scaled_objects),
                all(|s| vec![router(s), consumer(s)]),
                all(|s| vec![schedule_viewer(s)]),
                all(|s| vec![destination_rule(s)]),
                all(|s| vec![virtual_service(s)]),
                all(|s| vec![parent_service(s)]),
            ] {
                prop_assert_eq!(made, different);
            }
        }

        #[test]
        fn a_derived_service_is_told_from_others(service in "[a-z]([a-z0-9-]{0,61}[a-z0-9])?") {
            prop_assert!(is_named_like_a_derived_one(&router(&service)));
            prop_assert!(is_named_like_a_derived_one(&consumer(&service)));
        }
    }
}
