//! What is installed, as a picture of the whole and as rules that hold whatever is chosen.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{Object, Options, hold};

/// The defaults, without the definition, which has tests of its own.
pub(crate) fn options() -> Options {
    Options {
        namespace: "weir".to_owned(),
        image: "weir:1".to_owned(),
        watch_namespaces: Vec::new(),
        peer_namespaces: Vec::new(),
        operator_replicas: 2,
        resolver_replicas: 2,
        resolver_siblings: true,
        resolver_may_scale: false,
        allow_from: Vec::new(),
        crds: false,
        kubelet_insecure_tls: false,
        hold: true,
        place: None,
    }
}

pub(crate) fn values(objects: &[Object]) -> Vec<Value> {
    let value = |object| serde_json::to_value(object).expect("an object as JSON");
    objects.iter().map(value).collect()
}

pub(crate) fn of_kind<'a>(all: &'a [Value], kind: &str) -> Vec<&'a Value> {
    all.iter().filter(|it| it["kind"] == kind).collect()
}

/// Every text in it, with the names of fields left out.
pub(crate) fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(all) => all.iter().for_each(|it| texts(it, found)),
        Value::Object(all) => all.values().for_each(|it| texts(it, found)),
        _ => {}
    }
}

#[test]
fn what_is_installed_for_all_namespaces() {
    insta::assert_yaml_snapshot!(values(&hold::objects(&options())));
}

#[test]
fn what_is_installed_for_some_namespaces() {
    let mut options = options();
    options.watch_namespaces = vec!["shop".to_owned()];
    insta::assert_yaml_snapshot!(values(&hold::objects(&options)));
}

#[test]
fn the_definition_comes_before_what_needs_it() {
    let mut options = options();
    options.crds = true;
    let kinds: Vec<&str> = hold::objects(&options).iter().map(Object::kind).collect();
    assert_eq!(kinds[..2], ["Namespace", "CustomResourceDefinition"]);
    assert_eq!(
        hold::objects(&options).len(),
        hold::objects(&self::options()).len() + 1
    );
}

#[test]
fn nobody_may_do_everything() {
    for namespaces in [vec![], vec!["shop".to_owned()]] {
        let mut options = options();
        options.watch_namespaces = namespaces;
        let all = values(&hold::objects(&options));
        let roles = [of_kind(&all, "ClusterRole"), of_kind(&all, "Role")].concat();
        for rule in roles
            .iter()
            .flat_map(|role| role["rules"].as_array().expect("rules"))
        {
            let mut found = Vec::new();
            texts(rule, &mut found);
            assert!(!found.iter().any(|text| text.contains('*')), "{rule}");
            // What would let them become somebody else.
            let forbidden = [
                "secrets",
                "pods/exec",
                "nodes/proxy",
                "escalate",
                "bind",
                "impersonate",
            ];
            for forbidden in forbidden {
                assert!(!found.contains(&forbidden), "{rule}");
            }
        }
    }
}

/// A kubelet tells of the pods of all namespaces.
#[test]
fn kubelets_are_asked_where_all_namespaces_are_watched_and_nowhere_else() {
    for (watched, hold, expected) in [
        (vec![], true, 1),
        (vec!["shop".to_owned()], true, 0),
        (vec![], false, 0),
    ] {
        let mut options = options();
        options.watch_namespaces = watched;
        options.hold = hold;
        options.place = (!hold).then(crate::place::tests::place_options);
        let all = values(&hold::objects(&options));
        let roles = [of_kind(&all, "ClusterRole"), of_kind(&all, "Role")].concat();
        let granted = roles
            .iter()
            .flat_map(|role| role["rules"].as_array().expect("rules"));
        let granted: Vec<&Value> = granted
            .filter(|rule| rule["resources"].to_string().contains("nodes/stats"))
            .collect();
        assert_eq!(granted.len(), expected);
        assert!(
            granted.iter().all(|rule| rule["verbs"] == json!(["get"])),
            "{granted:?}"
        );
    }
}

#[test]
fn the_certificates_of_kubelets_are_left_unseen_only_where_that_was_chosen() {
    let flag = "--kubelet-insecure-tls";
    let printed = |insecure: bool| {
        let mut options = options();
        options.kubelet_insecure_tls = insecure;
        Value::from(values(&hold::objects(&options))).to_string()
    };
    assert!(!printed(false).contains(flag));
    assert_eq!(printed(true).matches(flag).count(), 1);
}

#[test]
fn one_alone_has_no_budget_that_would_keep_its_node_from_being_drained() {
    let mut options = options();
    options.operator_replicas = 1;
    let all = values(&hold::objects(&options));
    let budgets = of_kind(&all, "PodDisruptionBudget");
    assert_eq!(budgets.len(), 1);
    assert_eq!(budgets[0]["metadata"]["name"], "weir-resolver");
}

/// A node that lacks the label of one constraint is left out of all of them, and then nothing is spread.
#[test]
fn pods_are_spread_by_a_label_that_every_node_has() {
    let all = values(&hold::objects(&options()));
    for deployment in of_kind(&all, "Deployment") {
        let spread = &deployment["spec"]["template"]["spec"]["topologySpreadConstraints"];
        let spread = spread.as_array().expect("constraints");
        let keys: Vec<&Value> = spread.iter().map(|it| &it["topologyKey"]).collect();
        assert_eq!(keys, ["kubernetes.io/hostname"]);
    }
}

#[test]
fn siblings_share_all_but_their_internal_ports_and_one_alone_has_none() {
    let containers = |siblings: bool| {
        let mut options = options();
        options.resolver_siblings = siblings;
        let all = values(&hold::objects(&options));
        let deployments = of_kind(&all, "Deployment");
        let resolvers = deployments
            .iter()
            .find(|it| it["metadata"]["name"] == "weir-resolver");
        let pod = &resolvers.expect("resolvers")["spec"]["template"]["spec"];
        pod["containers"].as_array().expect("containers").clone()
    };
    let has = |container: &Value, flag: &str| {
        let arguments = container["args"].as_array().expect("arguments");
        arguments.iter().any(|argument| argument == flag)
    };
    let two = containers(true);
    assert_eq!(two.len(), 2);
    assert!(has(&two[0], "--internal-port=8013") && has(&two[0], "--sibling-port=8014"));
    assert!(has(&two[1], "--internal-port=8014") && has(&two[1], "--sibling-port=8013"));
    assert_eq!(two[1]["readinessProbe"]["httpGet"]["port"], 8014);
    let one = containers(false);
    assert_eq!(one.len(), 1);
    assert!(!one[0]["args"].to_string().contains("sibling"));
}

/// What it takes to wake, and nothing that puts to sleep.
#[test]
fn resolvers_have_rights_to_scale_only_if_they_may() {
    for namespaces in [vec![], vec!["shop".to_owned()]] {
        let objects = |may: bool| {
            let mut options = options();
            options.watch_namespaces.clone_from(&namespaces);
            options.resolver_may_scale = may;
            values(&hold::objects(&options))
        };
        let rules_of = |all: &[Value]| -> Vec<Value> {
            let roles = [of_kind(all, "ClusterRole"), of_kind(all, "Role")].concat();
            let theirs = roles.iter();
            let theirs = theirs.filter(|it| it["metadata"]["name"] == "weir-resolver");
            theirs.map(|it| it["rules"].clone()).collect()
        };
        let (without, with) = (objects(false), objects(true));
        let more = serde_json::json!([
            {"apiGroups": ["apps"], "resources": ["deployments/scale", "statefulsets/scale"], "verbs": ["get", "update"]},
            {"apiGroups": ["argoproj.io"], "resources": ["rollouts/scale"], "verbs": ["get", "update"]},
            {"apiGroups": ["keda.sh"], "resources": ["scaledobjects"], "verbs": ["get", "patch"]},
        ]);
        let pairs = rules_of(&without).into_iter().zip(rules_of(&with));
        let mut roles = 0;
        for (without, with) in pairs {
            let (without, with) = (without.as_array().unwrap(), with.as_array().unwrap());
            assert_eq!(with[..without.len()], without[..]);
            assert_eq!(with[without.len()..], more.as_array().unwrap()[..]);
            roles += 1;
        }
        // With some namespaces one in each, and in our own.
        assert_eq!(roles, if namespaces.is_empty() { 1 } else { 2 });

        let flagged = |all: &[Value]| {
            let deployments = of_kind(all, "Deployment");
            let containers = deployments.iter().flat_map(|it| {
                it["spec"]["template"]["spec"]["containers"]
                    .as_array()
                    .unwrap()
            });
            let flag = "--resolver-may-scale";
            let has = |it: &&Value| it["args"].as_array().unwrap().iter().any(|arg| arg == flag);
            containers.filter(has).count()
        };
        assert_eq!((flagged(&without), flagged(&with)), (0, 2), "both siblings");
    }
}

/// One Lease, to be looked at, and nothing else.
#[test]
fn where_an_older_operator_may_run_only_its_lease_can_be_read() {
    let mut options = options();
    options.peer_namespaces = ["elasti", "weir", "elasti"].map(str::to_owned).to_vec();
    let all = values(&hold::objects(&options));
    let elsewhere: Vec<&Value> = all
        .iter()
        .filter(|it| it["metadata"]["namespace"] == "elasti")
        .collect();
    assert_eq!(elsewhere.len(), 2, "a Role and its RoleBinding");
    let rules = serde_json::json!([{
        "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
        "resourceNames": ["acf50383.truefoundry.io"], "verbs": ["get"],
    }]);
    assert_eq!(elsewhere[0]["rules"], rules);
    let deployments = of_kind(&all, "Deployment");
    let told = |name: &str| {
        let found = deployments.iter().find(|it| it["metadata"]["name"] == name);
        found
            .expect("a Deployment")
            .pointer("/spec/template/spec/containers/0/args")
            .cloned()
    };
    let flags = |name: &str| {
        let args = told(name).unwrap_or_default().to_string();
        args.matches("--peer-namespace=").count()
    };
    assert_eq!((flags("weir-operator"), flags("weir-resolver")), (1, 0));
}

/// One of two on the same ports that lets others in would let them in every second time.
#[test]
fn both_resolvers_of_a_pod_are_told_whom_to_serve() {
    let mut options = options();
    let ranges = ["10.0.0.0/8", "fd00::/8"].map(|it| it.parse().expect("a range"));
    options.allow_from = ranges.to_vec();
    let all = values(&hold::objects(&options));
    let mut told = 0;
    for deployment in of_kind(&all, "Deployment") {
        let containers = &deployment["spec"]["template"]["spec"]["containers"];
        for container in containers.as_array().expect("containers") {
            let text = container["args"].to_string();
            told += text.matches("\"--allow-from=10.0.0.0/8,fd00::/8\"").count();
        }
    }
    assert_eq!(told, 2);
}

fn any_options() -> impl Strategy<Value = Options> {
    let name = "[a-z]{1,8}";
    let watched = proptest::collection::vec(name, 0..4);
    (name, watched, 1_u16..5, 1_u16..5, any::<bool>()).prop_map(
        |(namespace, watch_namespaces, operator_replicas, resolver_replicas, crds)| Options {
            namespace,
            watch_namespaces,
            operator_replicas,
            resolver_replicas,
            crds,
            ..options()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_object_is_there_twice_and_all_lie_where_they_may(options in any_options()) {
        let all = hold::objects(&options);
        let mut seen = BTreeSet::new();
        for object in &all {
            let metadata = object.metadata();
            let name = metadata.name.clone().expect("a name");
            let key = (object.kind(), metadata.namespace.clone(), name);
            prop_assert!(seen.insert(key.clone()), "{key:?} is there twice");
            if let Some(namespace) = &metadata.namespace {
                let is_role = object.kind().starts_with("Role");
                let is_watched = is_role && options.watch_namespaces.contains(namespace);
                prop_assert!(*namespace == options.namespace || is_watched, "{key:?}");
            }
        }
    }

    #[test]
    fn with_some_namespaces_nothing_is_had_in_others(options in any_options()) {
        let kinds: Vec<&str> = hold::objects(&options).iter().map(Object::kind).collect();
        let everywhere = kinds.iter().any(|kind| kind.starts_with("ClusterRole"));
        prop_assert_eq!(everywhere, options.watch_namespaces.is_empty());
    }

    /// A Service, a budget or a policy that selects nothing would go unnoticed.
    #[test]
    fn every_selector_finds_the_pods_of_its_own_part(options in any_options()) {
        let all = values(&hold::objects(&options));
        let deployments = of_kind(&all, "Deployment");
        for (kind, path) in [
            ("Service", "/spec/selector"),
            ("PodDisruptionBudget", "/spec/selector/matchLabels"),
            ("NetworkPolicy", "/spec/podSelector/matchLabels"),
            ("Deployment", "/spec/selector/matchLabels"),
        ] {
            for object in of_kind(&all, kind) {
                let own = deployments.iter().find(|it| it["metadata"]["name"] == object["metadata"]["name"]);
                let own = own.expect("a Deployment of the same name");
                prop_assert_eq!(object.pointer(path), own.pointer("/spec/template/metadata/labels"), "{}", kind);
            }
        }
    }
}
