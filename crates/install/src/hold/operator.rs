//! What the operator's pods are told.

use weir_api::hold::{
    defaults::{OPERATOR_HEALTH_PORT, OPERATOR_INTERNAL_PORT},
    names::environment::{OPERATOR_NAMESPACE, RESOLVER_NAMESPACE, RESOLVER_SERVICE_NAME},
};

use super::{
    part::Part,
    pods::{Command, watch_flags},
};
use crate::Options;

pub(super) fn command(options: &Options) -> Command {
    let mut arguments = vec![
        Part::Operator.role().to_owned(),
        "--leader-elect".to_owned(),
    ];
    if let Some(place) = &options.place {
        let controllers = if options.hold { "hold,place" } else { "place" };
        arguments.push(format!("--controllers={controllers}"));
        arguments.push(format!("--node-exporter-port={}", place.exporter_port));
        if place.allow_taints {
            arguments.push("--allow-taints".to_owned());
        }
    }
    arguments.extend(watch_flags(options));
    if options.watched().is_some() {
        // It may not ask whose a token is; see `rights`.
        arguments.push("--require-token=false".to_owned());
    }
    Command {
        name: Part::Operator.role(),
        arguments,
        environment: vec![
            (OPERATOR_NAMESPACE, options.namespace.clone()),
            (RESOLVER_NAMESPACE, options.namespace.clone()),
            (RESOLVER_SERVICE_NAME, Part::Resolver.name().to_owned()),
        ],
        ports: vec![
            ("internal", OPERATOR_INTERNAL_PORT),
            ("health", OPERATOR_HEALTH_PORT),
        ],
        health_port: OPERATOR_HEALTH_PORT,
        metrics_port: OPERATOR_INTERNAL_PORT,
        grace_seconds: None,
        requests: ["50m", "64Mi"],
    }
}
