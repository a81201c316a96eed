//! What users see, from the first round to the last: labels, Deployments, restarts, keys that two watches want.

use serde_json::json;
use weir_place::judge::Why;

use super::cluster::{Cluster, node, watch};

#[test]
fn nodes_are_unfit_until_measured_and_the_deployment_waits_for_ready() {
    let mut cluster = Cluster::new(&["a", "b"], vec![watch("web", 1, &json!({}))]);
    cluster.load("a", 90);
    assert_eq!(cluster.round(), 2);
    assert_eq!(cluster.label("a", "web"), Some("true"));
    assert_eq!(cluster.label("b", "web"), Some("true"));
    assert!(cluster.watches[0].deployment.is_none());
    cluster.round();
    assert_eq!(cluster.label("a", "web"), Some("true"));
    assert_eq!(cluster.label("b", "web"), Some("false"));
    assert!(cluster.watches[0].ready);
    let deployment = cluster.watches[0].deployment.clone().expect("a Deployment");
    assert_eq!(deployment["spec"].get("replicas"), None);
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels, &json!({ "app": "web" }));
}

#[test]
fn what_does_not_change_is_not_written() {
    let mut cluster = Cluster::new(&["a", "b"], vec![watch("web", 1, &json!({}))]);
    cluster.load("a", 50);
    cluster.round();
    cluster.round();
    for _ in 0..10 {
        assert_eq!(cluster.round(), 0);
    }
}

#[test]
fn a_restart_writes_nothing() {
    let mut cluster = Cluster::new(&["a", "b"], vec![watch("web", 1, &json!({}))]);
    cluster.load("a", 90);
    cluster.round();
    cluster.round();
    cluster.restart();
    for _ in 0..10 {
        assert_eq!(cluster.round(), 0);
    }
    assert_eq!(cluster.why(0, "a"), Why::Measured);
}

#[test]
fn a_counter_that_begins_anew_changes_no_verdict() {
    let mut cluster = Cluster::new(&["a", "b"], vec![watch("web", 1, &json!({}))]);
    cluster.load("a", 90);
    cluster.round();
    cluster.round();
    cluster.sent.insert("a".to_owned(), 0);
    for _ in 0..5 {
        assert_eq!(cluster.round(), 0);
    }
}

#[test]
fn one_node_that_fails_does_not_stop_the_others() {
    let mut cluster = Cluster::new(&["a", "b"], vec![watch("web", 1, &json!({}))]);
    cluster.silence("a");
    for _ in 0..4 {
        cluster.round();
    }
    assert_eq!(cluster.label("b", "web"), Some("false"));
    assert_eq!(
        cluster.label("a", "web"),
        Some("true"),
        "new, and never measured"
    );
    assert!(cluster.watches[0].ready, "it has timed out once");
}

#[test]
fn a_node_that_joins_or_leaves_changes_nothing_for_the_others() {
    let mut cluster = Cluster::new(&["a", "b"], vec![watch("web", 1, &json!({}))]);
    cluster.round();
    cluster.round();
    cluster.nodes.push(node("c"));
    assert_eq!(cluster.round(), 1);
    assert_eq!(cluster.label("c", "web"), Some("true"), "at once");
    cluster.nodes.remove(0);
    assert_eq!(cluster.round(), 1);
    assert_eq!(cluster.label("c", "web"), Some("false"));
    assert_eq!(cluster.round(), 0);
    assert!(!cluster.watches[0].outcome.verdicts.contains_key("a"));
}

#[test]
fn when_all_are_full_the_least_loaded_stays_fit() {
    let mut cluster = Cluster::new(&["a", "b", "c"], vec![watch("web", 1, &json!({}))]);
    cluster.round();
    cluster.round();
    for (node, percent) in [("a", 95), ("b", 70), ("c", 99)] {
        cluster.load(node, percent);
    }
    cluster.round();
    cluster.round();
    let labels = ["a", "b", "c"].map(|node| cluster.label(node, "web"));
    assert_eq!(labels, [Some("true"), Some("false"), Some("true")]);
    assert_eq!(cluster.why(0, "b"), Why::KeptFit);
}

#[test]
fn two_watches_share_scrapes_and_nodes_but_not_keys() {
    let strict = watch("strict", 1, &json!({ "maxBandwidthPercent": "10" }));
    let mut cluster = Cluster::new(&["a", "b"], vec![strict, watch("web", 2, &json!({}))]);
    cluster.load("a", 30);
    cluster.round();
    cluster.round();
    assert_eq!(cluster.label("a", "strict"), Some("true"));
    assert_eq!(cluster.label("a", "web"), Some("false"));
    cluster.watches.remove(0);
    assert_eq!(cluster.round(), 2);
    assert_eq!(cluster.label("a", "strict"), None, "gone with its watch");
    assert_eq!(cluster.label("a", "web"), Some("false"));
}

#[test]
fn of_two_watches_with_one_key_the_oldest_writes_and_the_next_takes_over() {
    let old = watch(
        "old",
        1,
        &json!({ "label": "x", "maxBandwidthPercent": "10" }),
    );
    let young = watch("young", 2, &json!({ "label": "x" }));
    let mut cluster = Cluster::new(&["a", "b"], vec![young, old]);
    cluster.load("a", 30);
    cluster.round();
    cluster.round();
    assert_eq!(cluster.label("a", "x"), Some("true"), "as the oldest says");
    assert!(cluster.watches[0].deployment.is_none());
    cluster.watches.remove(1);
    cluster.round();
    assert_eq!(cluster.label("a", "x"), Some("false"), "as the next says");
    assert!(cluster.watches[0].deployment.is_some());
}

#[test]
fn a_changed_label_is_written_before_the_deployment_and_the_old_one_goes_after() {
    let mut cluster = Cluster::new(&["a", "b"], vec![watch("web", 1, &json!({}))]);
    cluster.load("a", 90);
    cluster.round();
    cluster.round();
    cluster.watches[0].object.spec.label = Some("new".to_owned());
    cluster.round();
    assert_eq!(
        cluster.label("a", "new"),
        Some("true"),
        "the verdict goes on"
    );
    assert_eq!(cluster.label("a", "web"), Some("true"), "still there");
    let text = cluster.watches[0]
        .deployment
        .clone()
        .expect("a Deployment")
        .to_string();
    assert!(text.contains("new.traffic.example.com/unfit") && !text.contains("web.traffic"));
    cluster.round();
    assert_eq!(cluster.label("a", "web"), None);
    assert_eq!(cluster.label("a", "new"), Some("true"));
    assert_eq!(cluster.round(), 0);
}

#[test]
fn a_taint_comes_and_goes_with_the_verdict() {
    let mut cluster = Cluster::new(
        &["a", "b"],
        vec![watch("web", 1, &json!({ "action": "taint" }))],
    );
    cluster.load("a", 90);
    cluster.round();
    cluster.round();
    assert_eq!(cluster.nodes[0].taints.len(), 1);
    assert!(cluster.nodes[1].taints.is_empty());
    cluster.load("a", 0);
    cluster.round();
    cluster.round();
    assert!(cluster.nodes[0].taints.is_empty());
}
