//! The scheduler's rules, as far as we look.

use serde_json::{Value, json};

use super::*;
use crate::fixture;

fn constraints(spec: &Value) -> Constraints {
    let mut whole = json!({ "containers": [] });
    if let (Some(whole), Some(spec)) = (whole.as_object_mut(), spec.as_object()) {
        whole.extend(spec.clone());
    }
    Constraints::of(&serde_json::from_value(whole).unwrap())
}

fn required(terms: &Value) -> Value {
    json!({ "affinity": { "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms },
    } } })
}

fn node(labels: &[(&str, &str)]) -> NodeFacts {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    NodeFacts {
        labels: labels.iter().map(own).collect(),
        ..fixture::node("n1")
    }
}

fn tainted(effect: &str) -> NodeFacts {
    let taint = json!({ "key": "dedicated", "value": "db", "effect": effect });
    NodeFacts {
        taints: vec![serde_json::from_value(taint).unwrap()],
        ..fixture::node("n1")
    }
}

#[test]
fn eligible_means_ready_schedulable_and_matching_selector_affinity_and_tolerations() {
    let any = constraints(&json!({}));
    assert_eq!(any.admit(&node(&[])), Ok(()));
    let down = NodeFacts {
        ready: false,
        ..node(&[])
    };
    assert_eq!(any.admit(&down), Err(Refusal::NotReady));
    let cordoned = NodeFacts {
        unschedulable: true,
        ..node(&[])
    };
    assert_eq!(any.admit(&cordoned), Err(Refusal::Unschedulable));
    let ssd = constraints(&json!({ "nodeSelector": { "disk": "ssd" } }));
    assert_eq!(ssd.admit(&node(&[("disk", "ssd")])), Ok(()));
    assert_eq!(ssd.admit(&node(&[("disk", "hdd")])), Err(Refusal::Selector));
    let term = json!([{ "matchExpressions": [{ "key": "disk", "operator": "Exists" }] }]);
    let any_disk = constraints(&required(&term));
    assert_eq!(any_disk.admit(&node(&[])), Err(Refusal::Affinity));
    assert_eq!(any.admit(&tainted("NoSchedule")), Err(Refusal::Taint));
    assert_eq!(any.admit(&tainted("NoExecute")), Err(Refusal::Taint));
    assert_eq!(any.admit(&tainted("PreferNoSchedule")), Ok(()));
}

#[test]
fn every_operator_of_a_requirement() {
    for (operator, values, holds) in [
        ("In", json!(["5", "6"]), true),
        ("In", json!(["6"]), false),
        ("NotIn", json!(["5"]), false),
        ("NotIn", json!(["6"]), true),
        ("Exists", json!([]), true),
        ("DoesNotExist", json!([]), false),
        ("Gt", json!(["4"]), true),
        ("Gt", json!(["5"]), false),
        ("Lt", json!(["6"]), true),
        ("Lt", json!(["x"]), false),
        ("OfALaterKubernetes", json!(["5"]), false),
    ] {
        let requirement = json!({ "key": "size", "operator": operator, "values": values });
        let terms = json!([{ "matchExpressions": [requirement] }]);
        let found = constraints(&required(&terms)).admit(&node(&[("size", "5")]));
        assert_eq!(found.is_ok(), holds, "{operator} {values}");
    }
    let absent = |operator: &str| {
        let requirement = json!({ "key": "size", "operator": operator, "values": ["5"] });
        let terms = json!([{ "matchExpressions": [requirement] }]);
        constraints(&required(&terms)).admit(&node(&[])).is_ok()
    };
    assert!(absent("NotIn") && absent("DoesNotExist"));
    assert!(!absent("In") && !absent("Exists") && !absent("Gt") && !absent("Lt"));
}

#[test]
fn terms_are_or_ed_and_requirements_and_ed() {
    let is = |key: &str| json!({ "key": key, "operator": "Exists" });
    let name = json!({ "key": "metadata.name", "operator": "In", "values": ["n1"] });
    let admits = |terms: Value| {
        constraints(&required(&terms))
            .admit(&node(&[("a", "")]))
            .is_ok()
    };
    assert!(admits(
        json!([{ "matchExpressions": [is("b")] }, { "matchExpressions": [is("a")] }])
    ));
    assert!(!admits(json!([{ "matchExpressions": [is("a"), is("b")] }])));
    assert!(admits(json!([{ "matchFields": [name] }])));
    assert!(!admits(
        json!([{ "matchFields": [name], "matchExpressions": [is("b")] }])
    ));
    assert!(!admits(json!([{}])), "an empty term matches nothing");
    assert!(!admits(json!([])), "nor do no terms");
}

#[test]
fn tolerations_by_key_value_operator_and_effect() {
    for (toleration, tolerates) in [
        (json!({ "operator": "Exists" }), true),
        (json!({ "key": "dedicated", "operator": "Exists" }), true),
        (json!({ "key": "dedicated", "value": "db" }), true),
        (
            json!({ "key": "dedicated", "operator": "Equal", "value": "db", "effect": "NoSchedule" }),
            true,
        ),
        (json!({ "key": "dedicated", "value": "web" }), false),
        (json!({ "key": "other", "operator": "Exists" }), false),
        (
            json!({ "key": "dedicated", "operator": "Exists", "effect": "NoExecute" }),
            false,
        ),
        (
            json!({ "key": "dedicated", "operator": "OfALaterKubernetes" }),
            false,
        ),
    ] {
        let found = constraints(&json!({ "tolerations": [toleration] }));
        assert_eq!(
            found.admit(&tainted("NoSchedule")).is_ok(),
            tolerates,
            "{toleration}"
        );
    }
}

fn asked_cpu(spec: Value) -> u128 {
    let spec = serde_json::from_value(spec).unwrap();
    Resources::asked_by(&spec).cpu / 1_000_000
}

fn container(cpu: &str) -> Value {
    json!({ "name": "c", "resources": { "requests": { "cpu": cpu } } })
}

fn sidecar(cpu: &str) -> Value {
    json!({ "name": "s", "restartPolicy": "Always", "resources": { "requests": { "cpu": cpu } } })
}

#[test]
fn a_pod_asks_for_its_containers_its_start_and_its_overhead() {
    let containers = json!([container("200m"), container("0.3"), { "name": "asks for nothing" }]);
    assert_eq!(asked_cpu(json!({ "containers": containers })), 500);
    let init = json!([container("1"), sidecar("100m"), container("700m")]);
    assert_eq!(
        asked_cpu(json!({ "containers": containers, "initContainers": init })),
        1000
    );
    let init = json!([sidecar("600m"), container("300m")]);
    assert_eq!(
        asked_cpu(json!({ "containers": containers, "initContainers": init })),
        1100
    );
    let overhead = json!({ "cpu": "50m" });
    assert_eq!(
        asked_cpu(json!({ "containers": containers, "overhead": overhead })),
        550
    );
    let whole = json!({ "requests": { "cpu": "2" } });
    assert_eq!(
        asked_cpu(json!({ "containers": containers, "resources": whole })),
        2000
    );
}

#[test]
fn a_request_that_cannot_be_read_fits_nowhere() {
    let spec = serde_json::from_value(json!({ "containers": [container("lots")] })).unwrap();
    let room = fixture::node("a").allocatable.minus(Resources {
        cpu: 1,
        ..Resources::default()
    });
    assert!(!Resources::asked_by(&spec).fit_into(room));
}
