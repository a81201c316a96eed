//! Watches and nodes for tests: what is not said is as a user would leave it.

use serde_json::{Value, json};
use weir_api::place::TrafficWatch;

use crate::{node::NodeFacts, scheduling::Resources, settings::Settings};

/// A watch with these fields of the spec beside the required ones.
pub(crate) fn watch(spec: &Value) -> TrafficWatch {
    let mut whole = json!({
        "maxBandwidthPercent": "60",
        "deployment": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": {}, "spec": { "containers": [{ "name": "web" }] } },
        },
    });
    if let (Some(whole), Some(spec)) = (whole.as_object_mut(), spec.as_object()) {
        whole.extend(spec.clone());
    }
    let watch = json!({
        "apiVersion": "traffic.example.com/v1alpha1",
        "kind": "TrafficWatch",
        "metadata": { "name": "web", "namespace": "shop", "uid": "1" },
        "spec": whole,
    });
    serde_json::from_value(watch).expect("a watch")
}

pub(crate) fn settings(spec: &Value) -> Settings {
    Settings::of(&watch(spec)).expect("settings")
}

/// A ready Linux worker with room for anything.
pub(crate) fn node(name: &str) -> NodeFacts {
    NodeFacts {
        name: name.to_owned(),
        uid: format!("uid of {name}"),
        ready: true,
        linux: true,
        allocatable: Resources {
            cpu: u128::MAX,
            memory: u128::MAX,
            pods: u128::MAX,
        },
        ..NodeFacts::default()
    }
}
