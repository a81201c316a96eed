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
    all.extend(exporter::objects(place));
    all
}

/// What the operator may do for place. Nodes it may only patch, and the policies say what in them.
pub(crate) fn operator_rules() -> Vec<PolicyRule> {
    let [status, finalizers] = ["status", "finalizers"].map(|sub| format!("{PLURAL}/{sub}"));
    vec![
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
    ]
}

fn original(rule: PolicyRule) -> PolicyRule {
    PolicyRule {
        resource_names: Some(vec![ORIGINAL_NODE_EXPORTER.to_owned()]),
        ..rule
    }
}
