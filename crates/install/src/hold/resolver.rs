//! What the resolvers' pods are told.

use weir_api::hold::{
    defaults::{
        RESOLVER_INTERNAL_PORT, RESOLVER_PROXY_PORT, RESOLVER_SIBLING_PORT,
        RESOLVER_TERMINATION_GRACE_SECONDS,
    },
    names::environment::RESOLVER_NAMESPACE,
};

use super::{
    part::Part,
    pods::{Command, watch_flags},
};
use crate::Options;

/// Two of them in each pod, on the same ports: when one is killed, the other takes what comes, and nobody is refused until
/// the network has followed.
pub(super) fn commands(options: &Options) -> Vec<Command> {
    let mut first = one(options, RESOLVER_INTERNAL_PORT, RESOLVER_SIBLING_PORT);
    first.ports = vec![
        ("proxy", RESOLVER_PROXY_PORT),
        ("internal", RESOLVER_INTERNAL_PORT),
    ];
    if !options.resolver_siblings {
        return vec![first];
    }
    let mut second = one(options, RESOLVER_SIBLING_PORT, RESOLVER_INTERNAL_PORT);
    second.name = "sibling";
    second.ports = vec![("sibling", RESOLVER_SIBLING_PORT)];
    vec![first, second]
}

fn one(options: &Options, internal_port: u16, sibling_port: u16) -> Command {
    let mut arguments = vec![
        Part::Resolver.role().to_owned(),
        format!("--operator-namespace={}", options.namespace),
        format!("--operator-service={}", Part::Operator.name()),
        format!("--internal-port={internal_port}"),
    ];
    if options.resolver_siblings {
        arguments.push(format!("--sibling-port={sibling_port}"));
    }
    if options.resolver_may_scale {
        arguments.push("--resolver-may-scale".to_owned());
    }
    if !options.allow_from.is_empty() {
        let ranges: Vec<String> = options.allow_from.iter().map(ToString::to_string).collect();
        arguments.push(format!("--allow-from={}", ranges.join(",")));
    }
    arguments.extend(watch_flags(options));
    Command {
        name: Part::Resolver.role(),
        arguments,
        environment: vec![(RESOLVER_NAMESPACE, options.namespace.clone())],
        ports: Vec::new(),
        health_port: internal_port,
        metrics_port: RESOLVER_INTERNAL_PORT,
        // A whole hold, and time to end in order.
        grace_seconds: Some(RESOLVER_TERMINATION_GRACE_SECONDS),
        requests: ["50m", "64Mi"],
    }
}
