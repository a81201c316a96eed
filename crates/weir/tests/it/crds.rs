//! `weir crds` by itself: what it prints, in which form, and how much.

use serde_json::Value;

use crate::output_of;

/// The documents of a YAML stream.
fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).expect("YAML that can be read back")
}

fn names(crds: &[Value]) -> Vec<&str> {
    crds.iter()
        .map(|crd| crd["metadata"]["name"].as_str().expect("a name"))
        .collect()
}

#[test]
fn the_three_are_printed_below_150_kb() {
    let yaml = output_of(&["crds"]);
    assert!(yaml.len() < 150_000, "{} bytes", yaml.len());
    assert_eq!(
        names(&documents(&yaml)),
        [
            "elastiservices.elasti.truefoundry.com",
            "trafficschedules.scheduling.carbonrouter.io",
            "trafficwatches.traffic.example.com",
        ]
    );
}

#[test]
fn yaml_and_json_say_the_same() {
    let yaml = documents(&output_of(&["crds"]));
    let json: Value =
        serde_json::from_str(&output_of(&["crds", "--format", "json"])).expect("JSON");
    assert_eq!(json["kind"], "List");
    assert_eq!(json["items"].as_array().expect("items"), &yaml);
}

#[test]
fn one_can_be_had_by_kind_plural_or_verb_in_any_case() {
    for (word, name) in [
        ("ElastiService", "elastiservices.elasti.truefoundry.com"),
        ("elastiservices", "elastiservices.elasti.truefoundry.com"),
        ("hold", "elastiservices.elasti.truefoundry.com"),
        (
            "trafficschedule",
            "trafficschedules.scheduling.carbonrouter.io",
        ),
        ("STEER", "trafficschedules.scheduling.carbonrouter.io"),
        ("place", "trafficwatches.traffic.example.com"),
    ] {
        assert_eq!(
            names(&documents(&output_of(&["crds", "--only", word]))),
            [name],
            "{word}"
        );
    }
}

#[test]
fn several_are_printed_once_each_and_always_in_the_same_order() {
    let wanted = [
        "crds",
        "--only",
        "place",
        "--only",
        "hold",
        "--only",
        "TrafficWatch",
    ];
    assert_eq!(
        names(&documents(&output_of(&wanted))),
        [
            "elastiservices.elasti.truefoundry.com",
            "trafficwatches.traffic.example.com"
        ]
    );
}
