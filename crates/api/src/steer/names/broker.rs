//! AMQP: exchanges, queues and message headers. Router and consumer must agree on them, and both
//! with the original's parts while a migration rolls.

use super::flavour;

/// Header of messages and bindings with the kind of queue: [`QUEUED`] or [`DIRECT`].
pub const Q_TYPE_HEADER: &str = "q_type";
/// Header of messages and bindings with the flavour's name.
pub const FLAVOUR_HEADER: &str = "flavour";
/// Header of messages with the Service's namespace.
pub const NAMESPACE_HEADER: &str = "namespace";
/// Header of messages with the Service's name.
pub const SERVICE_HEADER: &str = "service";
/// Argument of bindings that says how many headers must match.
pub const MATCH_ARGUMENT: &str = "x-match";
/// Value of [`MATCH_ARGUMENT`]: all of them.
pub const MATCH_ALL: &str = "all";
/// Value of [`Q_TYPE_HEADER`] for ordinary requests.
pub const QUEUED: &str = "queue";
/// Value of [`Q_TYPE_HEADER`] for urgent requests.
pub const DIRECT: &str = "direct";
/// Kind of the exchange.
pub const EXCHANGE_KIND: &str = "headers";

/// The exchange to which the router publishes a Service's requests.
pub fn exchange(namespace: &str, service: &str) -> String {
    format!("{namespace}.{service}")
}

/// The queue of a flavour's ordinary requests; the consumer takes from it, and KEDA counts it.
pub fn queue(namespace: &str, service: &str, percent: u32) -> String {
    format!("{namespace}.{service}.{QUEUED}.{}", flavour(percent))
}

/// The queue of a flavour's urgent requests.
pub fn direct_queue(namespace: &str, service: &str, percent: u32) -> String {
    format!("{namespace}.{service}.{DIRECT}.{}", flavour(percent))
}

/// The queue of requests that may wait; their flavour is chosen when they are taken.
pub fn deferred_queue(namespace: &str, service: &str) -> String {
    format!("{namespace}.{service}.deferred")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// The most bytes in the name of an exchange or a queue (AMQP 0-9-1, short string).
    const AMQP_NAME_MAX_LENGTH: usize = 255;

    #[test]
    fn known_names() {
        assert_eq!(exchange("shop", "web"), "shop.web");
        assert_eq!(queue("shop", "web", 50), "shop.web.queue.precision-50");
        assert_eq!(
            direct_queue("shop", "web", 50),
            "shop.web.direct.precision-50"
        );
        assert_eq!(deferred_queue("shop", "web"), "shop.web.deferred");
    }

    proptest! {
        #[test]
        fn queues_differ_and_are_not_too_long(
            services in proptest::collection::btree_set(
                ("[ab]{1,3}|a{63}", "[a-c]{1,3}|queue|deferred|b{63}"),
                1..20,
            ),
        ) {
            let mut queues = BTreeSet::new();
            let mut exchanges = BTreeSet::new();
            for (namespace, service) in &services {
                exchanges.insert(exchange(namespace, service));
                queues.insert(deferred_queue(namespace, service));
                for percent in [5, 50, 100] {
                    queues.insert(queue(namespace, service, percent));
                    queues.insert(direct_queue(namespace, service, percent));
                }
            }
            prop_assert_eq!(exchanges.len(), services.len());
            prop_assert_eq!(queues.len(), services.len() * 7);
            prop_assert!(queues.iter().all(|name| name.len() <= AMQP_NAME_MAX_LENGTH));
        }
    }
}
