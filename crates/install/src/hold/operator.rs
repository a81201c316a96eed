//! What the operator's pods are told.

use weir_api::hold::{
    defaults::{OPERATOR_HEALTH_PORT, OPERATOR_INTERNAL_PORT},
    names::environment::{OPERATOR_NAMESPACE, RESOLVER_NAMESPACE, RESOLVER_SERVICE_NAME},
};

use super::{
    part::Part,
    pods::{Command, watch_flags},
};
use crate::{ExporterService, Options};

/// What Kubernetes puts into each pod: the cluster's authority, and the token of the pod's own ServiceAccount.
const OWN_FILES: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

pub(super) fn command(options: &Options) -> Command {
    let mut arguments = vec![
        Part::Operator.role().to_owned(),
        "--leader-elect".to_owned(),
    ];
    if let Some(place) = &options.place {
        let controllers = if options.hold { "hold,place" } else { "place" };
        arguments.push(format!("--controllers={controllers}"));
        match &place.exporter_service {
            None => arguments.push(format!("--node-exporter-port={}", place.exporter_port)),
            Some(service) => {
                let ExporterService {
                    namespace,
                    name_and_port,
                    https,
                } = service;
                arguments.push(format!(
                    "--node-exporter-service={namespace}/{name_and_port}"
                ));
                if *https {
                    arguments.push("--node-exporter-scheme=https".to_owned());
                    arguments.push(format!("--node-exporter-ca-file={OWN_FILES}/ca.crt"));
                    arguments.push(format!("--node-exporter-token-file={OWN_FILES}/token"));
                }
            }
        }
        if place.allow_taints {
            arguments.push("--allow-taints".to_owned());
        }
    }
    if options.hold && options.kubelet_insecure_tls {
        arguments.push("--kubelet-insecure-tls".to_owned());
    }
    arguments.extend(watch_flags(options));
    let peers = options.peers().into_iter();
    arguments.extend(peers.map(|namespace| format!("--peer-namespace={namespace}")));
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
