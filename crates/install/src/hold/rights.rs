//! What operators and resolvers may do, and nothing that they do not need.
//!
//! Where all namespaces are watched that is a ClusterRole for each; where only some are, a Role in each of them and in our own.
//! To ask the API server whose token a wake signal carries takes a right that no Role can give: there the operator
//! does not ask, and the NetworkPolicy alone says who may wake. Nor can one give the right to ask kubelets: there triggers of the
//! type `network` cannot be used.

use k8s_openapi::{
    api::rbac::v1::{
        ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use weir_api::hold::names::{GROUP, PEER_LEASE, PLURAL};

use super::part::Part;
use crate::{Object, Options, place};

const RBAC: &str = "rbac.authorization.k8s.io";
const READ: &[&str] = &["get", "list", "watch"];

/// The roles, and who has them.
pub(super) fn objects(options: &Options) -> Vec<Object> {
    let mut all = Vec::new();
    for &part in Part::of(options) {
        match options.watched() {
            None => all.extend(everywhere(part, options)),
            Some(namespaces) => {
                for namespace in namespaces {
                    all.extend(within(
                        part,
                        options,
                        namespace,
                        part.name(),
                        rules(part, options),
                    ));
                }
            }
        }
    }
    let lease = format!("{}-lease", Part::Operator.name());
    all.extend(within(
        Part::Operator,
        options,
        &options.namespace,
        &lease,
        vec![lease_rule()],
    ));
    for namespace in options.peers() {
        let name = format!("{}-peers", Part::Operator.name());
        let rules = vec![peer_lease_rule()];
        all.extend(within(Part::Operator, options, namespace, &name, rules));
    }
    let exporters = options.place.as_ref();
    if let Some(service) = exporters.and_then(|place| place.exporter_service.as_ref()) {
        let name = format!("{}-exporters", Part::Operator.name());
        let rules = place::exporter_rules();
        all.extend(within(
            Part::Operator,
            options,
            &service.namespace,
            &name,
            rules,
        ));
    }
    all
}

fn everywhere(part: Part, options: &Options) -> [Object; 2] {
    let mut rules = rules(part, options);
    if part == Part::Operator && options.hold {
        rules.extend(review_rules());
        rules.extend(kubelet_rules());
    }
    [
        Object::from(ClusterRole {
            metadata: part.cluster_metadata(),
            rules: Some(rules),
            ..ClusterRole::default()
        }),
        Object::from(ClusterRoleBinding {
            metadata: part.cluster_metadata(),
            role_ref: role_ref("ClusterRole", part.name()),
            subjects: Some(vec![account(part, options)]),
        }),
    ]
}

fn within(
    part: Part,
    options: &Options,
    namespace: &str,
    name: &str,
    rules: Vec<PolicyRule>,
) -> [Object; 2] {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        ..part.cluster_metadata()
    };
    [
        Object::from(Role {
            metadata: metadata.clone(),
            rules: Some(rules),
        }),
        Object::from(RoleBinding {
            metadata,
            role_ref: role_ref("Role", name),
            subjects: Some(vec![account(part, options)]),
        }),
    ]
}

fn rules(part: Part, options: &Options) -> Vec<PolicyRule> {
    match part {
        Part::Operator => {
            let mut rules = Vec::new();
            if options.hold {
                rules.extend(operator_rules());
            }
            if let Some(place) = &options.place {
                rules.extend(place::operator_rules(place));
            }
            rules.push(rule("events.k8s.io", &["events"], &["create", "patch"]));
            rules
        }
        Part::Resolver => {
            let mut rules = vec![
                rule(GROUP, &[PLURAL], READ),
                rule("", &["services"], READ),
                rule("discovery.k8s.io", &["endpointslices"], READ),
                // Their probes, by which a pod that starts is asked.
                rule("", &["pods"], READ),
            ];
            if options.resolver_may_scale {
                rules.extend(waking_rules());
            }
            rules
        }
    }
}

/// What it takes to wake a target without an operator: its pause taken away, its scale raised.
fn waking_rules() -> [PolicyRule; 3] {
    let scale = &["get", "update"];
    [
        rule("apps", &["deployments/scale", "statefulsets/scale"], scale),
        rule("argoproj.io", &["rollouts/scale"], scale),
        rule("keda.sh", &["scaledobjects"], &["get", "patch"]),
    ]
}

fn operator_rules() -> Vec<PolicyRule> {
    let keep = &[
        "get", "list", "watch", "create", "update", "patch", "delete",
    ];
    let read_and_patch = &["get", "list", "watch", "patch"];
    let scale = &["get", "update", "patch"];
    let [status, finalizers] = ["status", "finalizers"].map(|sub| format!("{PLURAL}/{sub}"));
    vec![
        rule(
            GROUP,
            &[PLURAL],
            &["get", "list", "watch", "update", "patch"],
        ),
        rule(GROUP, &[&status], &["get", "update", "patch"]),
        // Derived objects name their ElastiService as an owner that waits for them.
        rule(GROUP, &[&finalizers], &["update"]),
        rule("", &["services"], keep),
        rule("discovery.k8s.io", &["endpointslices"], keep),
        rule("apps", &["deployments", "statefulsets"], read_and_patch),
        rule("apps", &["deployments/scale", "statefulsets/scale"], scale),
        rule("argoproj.io", &["rollouts"], read_and_patch),
        rule("argoproj.io", &["rollouts/scale"], scale),
        rule("keda.sh", &["scaledobjects"], read_and_patch),
        rule("autoscaling", &["horizontalpodautoscalers"], READ),
        // Is it being deleted? Then nothing in it is woken.
        rule("", &["namespaces"], &["get"]),
    ]
}

/// Whose token is this, and may they read the metrics?
fn review_rules() -> [PolicyRule; 2] {
    [
        rule("authentication.k8s.io", &["tokenreviews"], &["create"]),
        rule(
            "authorization.k8s.io",
            &["subjectaccessreviews"],
            &["create"],
        ),
    ]
}

/// How much traffic have the pods of a node, and where is its kubelet? Not `nodes/proxy`, with which one may run what one likes
/// in every pod of the node.
fn kubelet_rules() -> [PolicyRule; 2] {
    [
        rule("", &["nodes/stats"], &["get"]),
        rule("", &["nodes"], &["get"]),
    ]
}

/// Which operator leads.
fn lease_rule() -> PolicyRule {
    rule(
        "coordination.k8s.io",
        &["leases"],
        &["get", "create", "update", "patch"],
    )
}

/// Whether an older operator still leads.
fn peer_lease_rule() -> PolicyRule {
    PolicyRule {
        resource_names: Some(vec![PEER_LEASE.to_owned()]),
        ..rule("coordination.k8s.io", &["leases"], &["get"])
    }
}

pub(crate) fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}

fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef {
        api_group: RBAC.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
    }
}

fn account(part: Part, options: &Options) -> Subject {
    Subject {
        kind: "ServiceAccount".to_owned(),
        name: part.name().to_owned(),
        namespace: Some(options.namespace.clone()),
        ..Subject::default()
    }
}
