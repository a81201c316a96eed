//! What is installed for place, and rules that hold whatever is chosen.

use std::collections::BTreeSet;

use crate::{
    ExporterService, Options, PlaceOptions,
    hold::tests::{of_kind, options, texts, values},
    objects,
};

pub(crate) fn place_options() -> PlaceOptions {
    PlaceOptions {
        exporter_namespace: "weir-node-exporter".to_owned(),
        exporter_image: "node-exporter:1".to_owned(),
        exporter_port: 9810,
        allow_taints: false,
        exporter_service: None,
    }
}

fn alone() -> Options {
    Options {
        hold: false,
        place: Some(place_options()),
        ..options()
    }
}

fn both() -> Options {
    Options {
        place: Some(place_options()),
        ..options()
    }
}

#[test]
fn what_is_installed_for_place_alone() {
    insta::assert_yaml_snapshot!(values(&objects(&alone())));
}

#[test]
fn nothing_of_hold_is_there_without_hold() {
    let all = serde_json::to_string(&objects(&alone())).expect("JSON");
    for word in [
        "elasti.truefoundry.com",
        "weir:1\",\"name\":\"resolver",
        "tokenreviews",
    ] {
        assert!(!all.contains(word), "{word}");
    }
    assert!(all.contains("--controllers=place"));
}

#[test]
fn both_share_one_operator_and_no_object_is_there_twice() {
    let all = objects(&both());
    let mut seen = BTreeSet::new();
    for object in &all {
        let metadata = object.metadata();
        let key = (
            object.kind(),
            metadata.namespace.clone(),
            metadata.name.clone(),
        );
        assert!(seen.insert(key.clone()), "{key:?} is there twice");
    }
    let text = serde_json::to_string(&all).expect("JSON");
    assert!(text.contains("--controllers=hold,place"));
    let mut tainting = both();
    tainting.place = Some(PlaceOptions {
        allow_taints: true,
        ..place_options()
    });
    let text = serde_json::to_string(&objects(&tainting)).expect("JSON");
    assert!(text.contains("--allow-taints"));
}

#[test]
fn nobody_may_do_everything() {
    for options in [alone(), both()] {
        let all = values(&objects(&options));
        let roles = [of_kind(&all, "ClusterRole"), of_kind(&all, "Role")].concat();
        for rule in roles
            .iter()
            .flat_map(|role| role["rules"].as_array().expect("rules"))
        {
            let mut found = Vec::new();
            texts(rule, &mut found);
            assert!(!found.iter().any(|text| text.contains('*')), "{rule}");
            for forbidden in [
                "secrets",
                "pods/exec",
                "nodes/proxy",
                "escalate",
                "bind",
                "impersonate",
            ] {
                assert!(!found.contains(&forbidden), "{rule}");
            }
            if found.contains(&"nodes") {
                assert!(
                    !found.contains(&"create") && !found.contains(&"delete"),
                    "{rule}"
                );
            }
        }
    }
}

/// It sees the host's network, and nothing else of the host.
#[test]
fn exporters_have_the_hosts_network_and_nothing_more() {
    let all = values(&objects(&alone()));
    let sets = of_kind(&all, "DaemonSet");
    let pod = &sets[0]["spec"]["template"]["spec"];
    assert_eq!(pod["hostNetwork"], true);
    assert_eq!(pod["automountServiceAccountToken"], false);
    for field in ["hostPID", "hostIPC", "volumes"] {
        assert!(pod[field].is_null(), "{field}");
    }
    let namespaces = of_kind(&all, "Namespace");
    let level = |name: &str| {
        let found = namespaces.iter().find(|it| it["metadata"]["name"] == name);
        found.expect("a namespace")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
            .clone()
    };
    assert_eq!(level("weir-node-exporter"), "privileged");
    assert_eq!(level("weir"), "restricted");
}

#[test]
fn exporters_of_others_take_the_place_of_ours() {
    let mut options = alone();
    if let Some(place) = &mut options.place {
        let service = ExporterService::parse("monitoring/node-exporter:https", true);
        place.exporter_service = Some(service.expect("a Service"));
    }
    let all = serde_json::to_string(&objects(&options)).expect("JSON");
    for word in [
        "--node-exporter-service=monitoring/node-exporter:https",
        "--node-exporter-scheme=https",
        "--node-exporter-token-file=/var/run/secrets/kubernetes.io/serviceaccount/token",
        "\"nonResourceURLs\":[\"/metrics\"]",
        "\"namespace\":\"monitoring\"",
    ] {
        assert!(all.contains(word), "{word}");
    }
    for word in [
        "DaemonSet\",\"metadata",
        "privileged",
        "--node-exporter-port",
    ] {
        assert!(!all.contains(word), "{word}");
    }
}
