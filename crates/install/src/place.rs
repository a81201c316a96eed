//! Place's objects beside the operator: the definition, who may write it, exporters on every node, and policies that keep
//! both the operator and a namespace's users within bounds.
//!
//! - [`exporter`]: node_exporter on every node, in a namespace of its own;
//! - [`policies`]: what the API server refuses, whatever rights say;
//! - [`roles`]: ClusterRoles for people.

mod exporter;
mod policies;
mod roles;
#[cfg(test)]
pub(crate) mod tests;

use k8s_openapi::api::rbac::v1::PolicyRule;
use weir_api::{
    crd::Kind,
    place::names::{GROUP, ORIGINAL_NODE_EXPORTER, PLURAL},
};

use crate::{Object, Options, PlaceOptions, hold::rights::rule};

/// All that place needs beside the operator, in an order in which it can be applied.
pub fn objects(options: &Options, place: &PlaceOptions) -> Vec<Object> {
    let mut all = Vec::new();
    if options.crds {
        all.push(Kind::TrafficWatch.crd().into());
    }
    all.extend(roles::objects());
    all.extend(policies::objects(options));
    if place.exporter_service.is_none() {
        all.extend(exporter::objects(place));
    }
    all
}

/// What the operator may do for place. Nodes it may only patch, and the policies say what in them.
pub(crate) fn operator_rules(place: &PlaceOptions) -> Vec<PolicyRule> {
    let [status, finalizers] = ["status", "finalizers"].map(|sub| format!("{PLURAL}/{sub}"));
    let mut rules = vec![
        rule(GROUP, &[PLURAL], &["get", "list", "watch", "patch"]),
        rule(GROUP, &[&status], &["update"]),
        // Deployments name their TrafficWatch as an owner that waits for them.
        rule(GROUP, &[&finalizers], &["update"]),
        rule("", &["nodes"], &["get", "list", "watch", "patch"]),
        rule(
            "apps",
            &["deployments"],
            &["get", "list", "watch", "create", "patch"],
        ),
        rule("apps", &["deployments/scale"], &["patch"]),
        // Which pods are the watch's own, whether they fit elsewhere, and to move them there.
        rule("apps", &["replicasets"], &["list"]),
        rule("", &["pods"], &["list"]),
        rule("", &["pods/eviction"], &["create"]),
        // Is the original's exporter still there? Of all DaemonSets and Services only that one.
        original(rule("apps", &["daemonsets"], &["list"])),
        original(rule("", &["services"], &["list"])),
    ];
    if place.exporter_service.as_ref().is_some_and(|it| it.https) {
        // Whoever guards exporters by tokens asks the API server whether we may read their metrics.
        rules.push(PolicyRule {
            non_resource_urls: Some(vec!["/metrics".to_owned()]),
            verbs: vec!["get".to_owned()],
            ..PolicyRule::default()
        });
    }
    rules
}

/// What it may do where the exporters of somebody else are: see where they are.
pub(crate) fn exporter_rules() -> Vec<PolicyRule> {
    let read = &["get", "list", "watch"];
    vec![rule("discovery.k8s.io", &["endpointslices"], read)]
}

fn original(rule: PolicyRule) -> PolicyRule {
    PolicyRule {
        resource_names: Some(vec![ORIGINAL_NODE_EXPORTER.to_owned()]),
        ..rule
    }
}
