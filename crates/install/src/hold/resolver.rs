//! What the resolvers' pods are told.

use weir_api::hold::{
    defaults::{RESOLVER_INTERNAL_PORT, RESOLVER_PROXY_PORT, RESOLVER_TERMINATION_GRACE_SECONDS},
    names::environment::RESOLVER_NAMESPACE,
};

use super::{
    part::Part,
    pods::{Command, watch_flags},
};
use crate::Options;

pub(super) fn command(options: &Options) -> Command {
    let mut arguments = vec![
        Part::Resolver.role().to_owned(),
        format!("--operator-namespace={}", options.namespace),
        format!("--operator-service={}", Part::Operator.name()),
    ];
    arguments.extend(watch_flags(options));
    Command {
        arguments,
        environment: vec![(RESOLVER_NAMESPACE, options.namespace.clone())],
        ports: vec![
            ("proxy", RESOLVER_PROXY_PORT),
            ("internal", RESOLVER_INTERNAL_PORT),
        ],
        health_port: RESOLVER_INTERNAL_PORT,
        metrics_port: RESOLVER_INTERNAL_PORT,
        // A whole hold, and time to end in order.
        grace_seconds: Some(RESOLVER_TERMINATION_GRACE_SECONDS),
        requests: ["100m", "128Mi"],
    }
}
