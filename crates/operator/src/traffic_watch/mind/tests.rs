//! Decisions about a cluster in values.

use std::collections::BTreeSet;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Node};
use serde_json::{Value, json};
use weir_api::place::{TrafficWatch, names::FINALIZER};
use weir_place::{
    exposition,
    judge::State,
    plan::{self, Wish},
};
use weir_role::cluster::Update;

use super::*;
use crate::settings::exporters::Where;
use crate::traffic_watch::world::Told;

const KEY: &str = "web.traffic.example.com/unfit";

fn watch(name: &str, spec: &Value, metadata: &Value) -> TrafficWatch {
    let mut object = json!({
        "apiVersion": "traffic.example.com/v1alpha1", "kind": "TrafficWatch",
        "metadata": {
            "name": name, "namespace": "shop", "uid": name, "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER],
        },
        "spec": {
            "maxBandwidthPercent": "60",
            "deployment": {
                "selector": { "matchLabels": { "app": name } },
                "template": { "spec": { "containers": [] } },
            },
        },
    });
    for (field, more) in [("spec", spec), ("metadata", metadata)] {
        let own = object[field].as_object_mut().unwrap();
        own.extend(more.as_object().unwrap().clone());
    }
    serde_json::from_value(object).unwrap()
}

fn node(name: &str, labels: &Value) -> Node {
    serde_json::from_value(json!({
        "metadata": { "name": name, "uid": name, "labels": labels },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    }))
    .unwrap()
}

fn world(watches: Vec<TrafficWatch>, nodes: Vec<Node>, unreadable: Vec<ObjectId>) -> World {
    let mut world = World::new(1, Where::Nodes(9810));
    world.hear(Told::Watch(Some(Update::Restarted {
        namespace: None,
        objects: watches,
        unreadable,
    })));
    world.hear(Told::Node(Update::Restarted {
        namespace: None,
        objects: nodes,
        unreadable: Vec::new(),
    }));
    world.hear(Told::Deployment(Update::Restarted {
        namespace: None,
        objects: Vec::<Deployment>::new(),
        unreadable: Vec::new(),
    }));
    world
}

fn wish(decision: &Decision, node: &str) -> Option<Wish> {
    decision.claims[0].wishes.get(node).copied()
}

/// Bytes that a node has sent, at a moment.
fn hear(mind: &mut Mind, node: &str, at: u64, sent: u64) {
    let body = format!(
        "node_network_transmit_bytes_total{{device=\"eth0\"}} {sent}\nnode_network_speed_bytes{{device=\"eth0\"}} 1000\n"
    );
    let scrape = exposition::read(body.as_bytes()).unwrap();
    mind.schedule.answered(node, node, false);
    mind.hear(&Scraped {
        node,
        uid: node,
        at: Moment::from_secs(at),
        time: 1_700_000_000,
        scrape: &scrape,
    });
}

#[test]
fn a_new_node_is_unfit_until_it_has_been_measured() {
    let all = json!({});
    let world = world(
        vec![watch("web", &all, &all)],
        vec![node("a", &all)],
        Vec::new(),
    );
    let mut mind = Mind::default();
    let at = Moment::from_secs;
    let decision = mind.decide(&world, Options::default(), at(0));
    assert_eq!(wish(&decision, "a"), Some(Wish::Show(State::Unfit)));
    assert!(!decision.views[0].judged.as_ref().unwrap().ready);
    let due = mind.schedule.take(at(0)).map(|due| due.name);
    assert_eq!(due.as_deref(), Some("a"));
    hear(&mut mind, "a", 0, 0);
    hear(&mut mind, "a", 10, 5000);
    let decision = mind.decide(&world, Options::default(), at(10));
    assert_eq!(wish(&decision, "a"), Some(Wish::Show(State::Fit)));
    let judged = decision.views[0].judged.as_ref().unwrap();
    assert!(judged.ready && judged.measured.holds && judged.turned.is_empty());
    assert_eq!(judged.nodes.nodes["a"].current_bandwidth_percent, "5e+01");
    let of_eth0 = decision.utilization[&("a".to_owned(), "eth0".to_owned())];
    assert!((of_eth0 - 0.5).abs() < 1e-9, "{of_eth0}");
}

#[test]
fn without_its_finalizer_a_watch_writes_nothing_on_nodes() {
    let none = json!({});
    let bare = watch("web", &none, &json!({ "finalizers": [] }));
    let world = world(vec![bare], vec![node("a", &none)], Vec::new());
    let decision = Mind::default().decide(&world, Options::default(), Moment::default());
    assert_eq!(wish(&decision, "a"), None);
    assert!(decision.views[0].judged.is_none());
}

#[test]
fn what_is_not_done_is_refused_and_its_labels_stay() {
    let taint = json!({ "action": "taint" });
    let odd = json!({ "maxBandwidthPercent": "much" });
    for (spec, reason) in [(taint, "TaintsNotAllowed"), (odd, "InvalidPercent")] {
        let refused = watch("web", &spec, &json!({}));
        let labels = json!({ KEY: "false" });
        let world = world(vec![refused], vec![node("a", &labels)], Vec::new());
        let decision = Mind::default().decide(&world, Options::default(), Moment::default());
        let found = &decision.views[0].findings;
        assert_eq!(found[0].reason, reason);
        let facts = world.nodes().map(|node| &node.facts);
        let changes = plan::changes(
            facts,
            &decision.claims,
            &BTreeMap::new(),
            Options::default(),
        );
        assert!(changes.is_empty(), "{changes:?}");
    }
}

#[test]
fn a_watch_that_is_deleted_claims_nothing_and_waits_for_its_keys() {
    let deleted = json!({ "deletionTimestamp": "2026-01-02T00:00:00Z" });
    let deleted = watch("web", &json!({}), &deleted);
    let labels = json!({ KEY: "false" });
    let world = world(vec![deleted], vec![node("a", &labels)], Vec::new());
    let decision = Mind::default().decide(&world, Options::default(), Moment::default());
    assert!(decision.views.is_empty() && decision.claims.is_empty());
    assert_eq!(decision.leaving[0].keys, BTreeSet::from([KEY.to_owned()]));
}

#[test]
fn keys_are_no_orphans_while_a_watch_cannot_be_read() {
    let labels = json!({ KEY: "false" });
    for (unreadable, changed) in [(vec![ObjectId::new("shop", "odd")], 0), (Vec::new(), 1)] {
        let world = world(Vec::new(), vec![node("a", &labels)], unreadable);
        let decision = Mind::default().decide(&world, Options::default(), Moment::default());
        let facts = world.nodes().map(|node| &node.facts);
        let changes = plan::changes(
            facts,
            &decision.claims,
            &BTreeMap::new(),
            Options::default(),
        );
        assert_eq!(changes.len(), changed);
    }
}

#[test]
fn watches_that_measure_alike_are_judged_apart() {
    let none = json!({});
    let strict = watch("strict", &json!({ "maxBandwidthPercent": "40" }), &none);
    let narrow = json!({ "interfaces": { "include": ["eth1"] } });
    let watches = vec![
        strict,
        watch("web", &none, &none),
        watch("narrow", &narrow, &none),
    ];
    let world = world(watches, vec![node("a", &none)], Vec::new());
    let mut mind = Mind::default();
    mind.decide(&world, Options::default(), Moment::from_secs(0));
    hear(&mut mind, "a", 0, 0);
    hear(&mut mind, "a", 10, 5000);
    let decision = mind.decide(&world, Options::default(), Moment::from_secs(10));
    let load = |name: &str| {
        let view = decision.views.iter().find(|view| &*view.id.name == name);
        let nodes = &view.unwrap().judged.as_ref().unwrap().nodes.nodes;
        let of_a = &nodes["a"];
        (of_a.current_bandwidth_percent.clone(), of_a.unfit)
    };
    assert_eq!(load("web"), ("5e+01".to_owned(), false));
    // The only node that there is stays fit.
    assert_eq!(load("strict"), ("5e+01".to_owned(), false));
    assert_eq!(load("narrow").0, "0", "its interface is not there");
}
