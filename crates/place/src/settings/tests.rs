//! What absent fields mean, and that an object with the original's fields alone is taken.

use serde_json::{Value, json};

use super::*;
use crate::fixture;

fn settings(spec: &Value) -> Result<Settings, SettingsError> {
    Settings::of(&fixture::watch(spec))
}

#[test]
fn with_the_originals_fields_alone_the_rest_is_as_the_contract_says() {
    let found = settings(&json!({ "maxBandwidthPercent": "1.5e-03" })).unwrap();
    assert_eq!((found.max_percent, found.clear_percent), (0.0015, 0.0015));
    assert_eq!(found.key, "web.traffic.example.com/unfit");
    assert_eq!(found.direction, Direction::Transmit);
    assert_eq!(found.interval, Duration::from_secs(10));
    assert_eq!(found.window, Duration::from_secs(10));
    assert_eq!((found.samples_unfit, found.samples_fit), (2, 2));
    assert_eq!(found.min_dwell, Duration::ZERO);
    assert_eq!(found.min_fit_nodes, 1);
    assert_eq!(found.on_unknown, OnUnknown::Keep);
    assert_eq!(found.max_sample_age, Duration::from_mins(3));
    assert_eq!(found.action, Action::Label);
    assert_eq!(found.rebalance.mode, RebalanceMode::Never);
    assert_eq!(found.rebalance.after, Duration::from_mins(5));
    assert!(found.judged.is_empty());
}

#[test]
fn absent_fields_follow_others() {
    let found = settings(&json!({ "interval": "5m" })).unwrap();
    assert_eq!(found.window, Duration::from_mins(5), "the interval");
    assert_eq!(found.max_sample_age, Duration::from_mins(10), "two of them");
    let template = json!({
        "selector": {}, "template": { "spec": { "nodeSelector": { "disk": "ssd" }, "containers": [] } },
    });
    let found = settings(&json!({ "deployment": template })).unwrap();
    assert_eq!(
        found.judged,
        BTreeMap::from([("disk".to_owned(), "ssd".to_owned())])
    );
    let all = settings(&json!({ "deployment": template, "nodeSelector": {} })).unwrap();
    assert!(all.judged.is_empty(), "said to be all");
    assert_eq!(all.constraints.node_selector.len(), 1);
}

#[test]
fn what_should_have_been_refused_says_which_field() {
    for (spec, field) in [
        (
            json!({ "maxBandwidthPercent": "0" }),
            "spec.maxBandwidthPercent",
        ),
        (json!({ "clearPercent": "x" }), "spec.clearPercent"),
        (json!({ "interval": "soon" }), "spec.interval"),
        (json!({ "minDwell": "-1s" }), "spec.minDwell"),
        (
            json!({ "interfaces": { "include": ["eth 0"] } }),
            "spec.interfaces.include",
        ),
        (
            json!({ "deployment": { "selector": [] } }),
            "spec.deployment",
        ),
    ] {
        let error = settings(&spec).unwrap_err().to_string();
        assert!(error.starts_with(field), "{error}");
    }
}
