//! What is added to the user's Deployment, and that nothing of theirs is lost or loosened.

use k8s_openapi::api::apps::v1::DeploymentSpec;
use proptest::{collection::vec, option, prelude::*};

use super::*;
use crate::{fixture, node::NodeFacts, scheduling::Constraints};

const KEY: &str = "web.traffic.example.com/unfit";

fn built(deployment: &Value) -> Value {
    build(&fixture::watch(&json!({ "deployment": deployment })))
}

fn with_affinity(affinity: &Value) -> Value {
    built(&json!({
        "selector": { "matchLabels": { "app": "web" } },
        "template": { "spec": { "affinity": affinity, "containers": [] } },
    }))
}

fn terms(deployment: &Value) -> &Value {
    let affinity = &deployment["spec"]["template"]["spec"]["affinity"]["nodeAffinity"];
    &affinity[REQUIRED][TERMS]
}

fn not_unfit() -> Value {
    json!({ "key": KEY, "operator": "NotIn", "values": ["true"] })
}

#[test]
fn the_users_template_is_whole_and_owned_by_the_watch() {
    let deployment = json!({
        "replicas": 3,
        "selector": { "matchLabels": { "app": "web" } },
        "strategy": { "type": "Recreate" },
        "ofALaterKubernetes": { "a": [1, null] },
        "template": {
            "metadata": { "annotations": { "x": "y" }, "labels": { "app": "web", "tier": "front" } },
            "spec": { "containers": [{ "name": "web", "image": "web:1" }], "nodeSelector": { "disk": "ssd" } },
        },
    });
    let found = built(&deployment);
    let mut expected = deployment;
    let spec = expected.as_object_mut().unwrap();
    spec.remove("replicas");
    spec["template"]["spec"]["affinity"] = json!({ "nodeAffinity": {
        REQUIRED: { TERMS: [{ EXPRESSIONS: [not_unfit()] }] },
    } });
    assert_eq!(found["spec"], expected);
    assert_eq!(found["metadata"]["name"], "web");
    assert_eq!(found["metadata"]["namespace"], "shop");
    assert_eq!(found["metadata"]["labels"], json!({ "app": "web" }));
    let owner = &found["metadata"]["ownerReferences"][0];
    assert_eq!(owner["apiVersion"], "traffic.example.com/v1alpha1");
    assert_eq!(
        (&owner["kind"], &owner["controller"]),
        (&json!("TrafficWatch"), &json!(true))
    );
}

#[test]
fn only_a_deployment_whose_controller_is_the_watch_is_ours() {
    let watch = fixture::watch(&json!({}));
    assert_eq!(ownership(&build(&watch), &watch), Ownership::Ours);
    let owned_by = |owner: Value| json!({ "metadata": { "ownerReferences": [owner] } });
    let helm = owned_by(json!({ "kind": "App", "name": "shop", "uid": "9", "controller": true }));
    assert_eq!(
        ownership(&helm, &watch),
        Ownership::Theirs(Some("App shop".to_owned()))
    );
    let not_controlled = owned_by(json!({ "kind": "TrafficWatch", "name": "web", "uid": "1" }));
    assert_eq!(ownership(&not_controlled, &watch), Ownership::Theirs(None));
    assert_eq!(ownership(&json!({}), &watch), Ownership::Theirs(None));
    let mut anew = watch.clone();
    anew.metadata.uid = Some("2".to_owned());
    let theirs = Ownership::Theirs(Some("TrafficWatch web".to_owned()));
    assert_eq!(ownership(&build(&watch), &anew), theirs);
}

#[test]
fn replicas_is_never_in_the_apply() {
    let deployment = json!({ "replicas": 5, "selector": {}, "template": {} });
    assert_eq!(built(&deployment)["spec"].get("replicas"), None);
    let watch = |replicas: Value| {
        let deployment = json!({ "replicas": replicas, "selector": {}, "template": {} });
        super::replicas(&fixture::watch(&json!({ "deployment": deployment })))
    };
    assert_eq!(watch(json!(5)), Some(5));
    assert_eq!(watch(json!(0)), Some(0));
    assert_eq!(watch(json!(null)), None);
    assert_eq!(watch(json!(-1)), None);
}

#[test]
fn replicas_is_set_at_creation_and_when_the_user_changes_it() {
    assert_eq!(scale(Some(3), None, true), Scale::To(3));
    assert_eq!(scale(None, None, true), Scale::Leave);
    assert_eq!(scale(Some(3), Some(3), false), Scale::Leave);
    assert_eq!(scale(Some(4), Some(3), false), Scale::To(4));
    assert_eq!(scale(None, Some(3), false), Scale::Leave);
    assert_eq!(scale(Some(4), None, false), Scale::Leave, "after a restart");
}

#[test]
fn pods_have_the_templates_labels_and_what_it_lacks_of_the_selectors() {
    for (metadata, expected) in [
        (json!({}), json!({ "app": "web", "x": "y" })),
        (json!(null), json!({ "app": "web", "x": "y" })),
        (json!({ "labels": null }), json!({ "app": "web", "x": "y" })),
        (
            json!({ "labels": { "app": "other", "tier": "front" } }),
            json!({ "app": "other", "tier": "front", "x": "y" }),
        ),
    ] {
        let found = built(&json!({
            "selector": { "matchLabels": { "app": "web", "x": "y" } },
            "template": { "metadata": metadata, "spec": {} },
        }));
        assert_eq!(found["spec"]["template"]["metadata"]["labels"], expected);
    }
}

#[test]
fn the_affinity_goes_into_every_term_that_the_user_has() {
    let zone = json!({ "key": "zone", "operator": "In", "values": ["a"] });
    let name = json!({ "key": "metadata.name", "operator": "In", "values": ["n1"] });
    let found = with_affinity(&json!({
        "podAffinity": { "x": 1 },
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [],
            REQUIRED: { TERMS: [{ EXPRESSIONS: [zone] }, { FIELDS: [name] }] },
        },
    }));
    let expected = json!([
        { EXPRESSIONS: [zone, not_unfit()] },
        { FIELDS: [name], EXPRESSIONS: [not_unfit()] },
    ]);
    assert_eq!(terms(&found), &expected);
}

#[test]
fn a_deployment_says_which_key_it_looks_at() {
    let other =
        json!({ "key": "api.traffic.example.com/unfit", "operator": "NotIn", "values": ["true"] });
    let affinity = json!({ "nodeAffinity": { REQUIRED: { TERMS: [{ EXPRESSIONS: [other] }] } } });
    let deployment = json!({
        "selector": {}, "template": { "spec": { "affinity": affinity } },
    });
    let mut watch = fixture::watch(&json!({ "deployment": deployment, "label": "old" }));
    let live = build(&watch);
    watch.spec.label = Some("new".to_owned());
    let old = BTreeSet::from(["old.traffic.example.com/unfit".to_owned()]);
    assert_eq!(keys_in_use(&live, &watch), old, "but not the user's own");
    assert_eq!(keys_in_use(&json!({}), &watch), BTreeSet::new());
}

#[test]
fn a_term_without_requirements_matches_nothing_and_stays_so() {
    for term in [
        json!({}),
        json!({ EXPRESSIONS: [] }),
        json!({ EXPRESSIONS: null, FIELDS: [] }),
    ] {
        let found = with_affinity(&json!({ "nodeAffinity": { REQUIRED: { TERMS: [term] } } }));
        assert_eq!(terms(&found), &json!([term]));
    }
    let none = with_affinity(&json!({ "nodeAffinity": { REQUIRED: { TERMS: [] } } }));
    assert_eq!(terms(&none), &json!([]), "for the API server to refuse");
}

#[test]
fn what_is_no_affinity_is_left_to_the_api_server() {
    for affinity in [json!("x"), json!({ "nodeAffinity": [1] })] {
        let found = with_affinity(&affinity);
        assert_eq!(found["spec"]["template"]["spec"]["affinity"], affinity);
    }
    let odd = json!({ "nodeAffinity": { REQUIRED: { TERMS: ["x", { EXPRESSIONS: "y" }] } } });
    assert_eq!(
        with_affinity(&odd)["spec"]["template"]["spec"]["affinity"],
        odd
    );
}

fn requirement() -> impl Strategy<Value = Value> {
    let operator = prop_oneof![
        Just("In"),
        Just("NotIn"),
        Just("Exists"),
        Just("DoesNotExist"),
        Just("Gt"),
        Just("Lt"),
    ];
    let key = prop_oneof![Just("zone"), Just("disk"), Just(KEY)];
    (key, operator, vec("true|1|2|3", 1..3)).prop_map(|(key, operator, values)| {
        let values = if operator.ends_with("xists") || operator.ends_with("Exist") {
            Vec::new()
        } else {
            values
        };
        json!({ "key": key, "operator": operator, "values": values })
    })
}

fn term() -> impl Strategy<Value = Value> {
    let field = "n[12]"
        .prop_map(|name| json!({ "key": "metadata.name", "operator": "In", "values": [name] }));
    (
        option::of(vec(requirement(), 0..3)),
        option::of(vec(field, 0..2)),
    )
        .prop_map(|(expressions, fields)| {
            let mut term = json!({});
            if let Some(expressions) = expressions {
                term[EXPRESSIONS] = json!(expressions);
            }
            if let Some(fields) = fields {
                term[FIELDS] = json!(fields);
            }
            term
        })
}

fn any_node() -> impl Strategy<Value = NodeFacts> {
    let labels = proptest::collection::btree_map(
        prop_oneof![Just("zone"), Just("disk"), Just(KEY)].prop_map(str::to_owned),
        "true|false|1|2|3",
        0..4,
    );
    ("n[123]", labels).prop_map(|(name, labels)| NodeFacts {
        labels,
        ..fixture::node(&name)
    })
}

fn constraints(spec: Value) -> Constraints {
    let spec: DeploymentSpec = serde_json::from_value(spec).unwrap();
    Constraints::of(&spec.template.spec.unwrap())
}

proptest! {
    #[test]
    fn the_affinity_never_loosens_the_users_terms_and_keeps_off_unfit_nodes(
        terms in option::of(vec(term(), 1..4)), nodes in vec(any_node(), 1..8),
    ) {
        let affinity = terms.map_or(json!({}), |terms| {
            json!({ "nodeAffinity": { REQUIRED: { TERMS: terms } } })
        });
        let users = json!({
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "spec": { "affinity": affinity, "containers": [] } },
        });
        let ours = built(&users);
        let (users, ours) = (constraints(users), constraints(ours["spec"].clone()));
        for node in nodes {
            let is_unfit = node.labels.get(KEY).is_some_and(|value| value == "true");
            let expected = users.admit(&node).is_ok() && !is_unfit;
            prop_assert_eq!(ours.admit(&node).is_ok(), expected, "{:?}", node.labels);
        }
    }

    #[test]
    fn building_from_what_was_built_changes_nothing(terms in vec(term(), 1..4)) {
        let once = with_affinity(&json!({ "nodeAffinity": { REQUIRED: { TERMS: terms } } }));
        prop_assert_eq!(&built(&once["spec"])["spec"], &once["spec"]);
    }
}
