//! What matters, and what does not.

use k8s_openapi::{
    api::core::v1::ContainerImage, apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry,
};
use serde_json::{Value, json};

use super::*;

fn watch(name: &str, generation: i64) -> TrafficWatch {
    serde_json::from_value(json!({
        "apiVersion": "traffic.example.com/v1alpha1", "kind": "TrafficWatch",
        "metadata": { "name": name, "namespace": "shop", "uid": name, "generation": generation },
        "spec": { "maxBandwidthPercent": "60", "deployment": { "selector": {}, "template": {} } },
    }))
    .unwrap()
}

fn node(more: &Value) -> Node {
    let mut node = json!({
        "metadata": { "name": "n", "uid": "n", "resourceVersion": "1" },
        "status": {
            "addresses": [
                { "type": "Hostname", "address": "n" },
                { "type": "InternalIP", "address": "192.0.2.1" },
            ],
            "conditions": [{ "type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z" }],
        },
    });
    for (pointer, value) in more.as_object().unwrap() {
        *node.pointer_mut(pointer).unwrap() = value.clone();
    }
    serde_json::from_value(node).unwrap()
}

fn deployment(name: &str, generation: i64) -> Deployment {
    serde_json::from_value(json!({
        "metadata": { "name": name, "namespace": "shop", "generation": generation },
        "spec": { "selector": {}, "template": {} },
    }))
    .unwrap()
}

fn listed<K>(objects: Vec<K>) -> Update<K> {
    Update::Restarted {
        namespace: None,
        objects,
        unreadable: Vec::new(),
    }
}

fn set<K>(object: K) -> Update<K> {
    Update::Set(Box::new(object))
}

fn synced() -> World {
    let mut world = World::new(1, Where::Nodes(9810));
    assert!(!world.is_synced());
    world.hear(Told::Watch(Some(listed(vec![watch("web", 1)]))));
    world.hear(Told::Node(listed(vec![node(&json!({}))])));
    assert!(!world.is_synced());
    world.hear(Told::Deployment(listed(Vec::new())));
    assert!(world.is_synced());
    world
}

#[test]
fn statuses_and_heartbeats_do_not_matter() {
    let mut world = synced();
    let mut with_status = watch("web", 1);
    with_status.metadata.resource_version = Some("7".to_owned());
    with_status.status = Some(weir_api::place::TrafficWatchStatus::default());
    assert!(!world.hear(Told::Watch(Some(set(with_status)))));
    let kept = world.watches().next().unwrap().1;
    assert_eq!(
        kept.metadata.resource_version.as_deref(),
        Some("7"),
        "for the next write"
    );
    assert!(world.hear(Told::Watch(Some(set(watch("web", 2))))));

    let beat = json!({
        "/metadata/resourceVersion": "2",
        "/status/conditions/0/lastHeartbeatTime": "2026-01-01T00:05:00Z",
    });
    assert!(!world.hear(Told::Node(set(node(&beat)))));
    let kept = world.node("n").unwrap();
    assert_eq!(kept.version, "2", "for the next patch");
    assert_eq!(kept.address, Some([192, 0, 2, 1].into()));
    let down = json!({ "/status/conditions/0/status": "False" });
    assert!(world.hear(Told::Node(set(node(&down)))));
    let moved = json!({ "/status/addresses/1/address": "192.0.2.2" });
    assert!(world.hear(Told::Node(set(node(&moved)))));
}

#[test]
fn only_deployments_of_a_watchs_name_matter() {
    let mut world = synced();
    assert!(!world.hear(Told::Deployment(set(deployment("other", 1)))));
    assert!(world.hear(Told::Deployment(set(deployment("web", 1)))));
    assert!(
        !world.hear(Told::Deployment(set(deployment("web", 1)))),
        "its status alone"
    );
    assert!(
        world.hear(Told::Deployment(set(deployment("web", 2)))),
        "somebody changed it"
    );
    assert!(world.hear(Told::Deployment(Update::Gone(ObjectId::new("shop", "web")))));
}

/// Its key must not be taken for an orphan.
#[test]
fn a_watch_that_cannot_be_read_is_not_forgotten() {
    let mut world = synced();
    let odd = ObjectId::new("shop", "odd");
    let web = ObjectId::new("shop", "web");
    world.hear(Told::Watch(Some(Update::Restarted {
        namespace: None,
        objects: Vec::new(),
        unreadable: vec![odd.clone(), web],
    })));
    assert_eq!(world.watches().count(), 1, "what was known of it stays");
    assert_eq!(world.unreadable().collect::<Vec<_>>(), [&odd]);
    world.hear(Told::Watch(Some(Update::Gone(odd))));
    assert_eq!(world.unreadable().count(), 0);
}

#[test]
fn a_cluster_without_the_kind_is_known_as_such() {
    let mut world = World::new(1, Where::Nodes(9810));
    world.hear(Told::Node(listed(Vec::new())));
    world.hear(Told::Deployment(listed(Vec::new())));
    world.hear(Told::Watch(None));
    assert!(world.is_synced() && !world.has_kind());
    world.hear(Told::Watch(Some(listed(Vec::new()))));
    assert!(world.is_synced() && world.has_kind());
}

#[test]
fn a_lightened_node_is_the_same_node() {
    let mut whole = node(&json!({}));
    whole.metadata.managed_fields = Some(vec![ManagedFieldsEntry::default()]);
    whole.metadata.labels = Some([("pool".to_owned(), "blue".to_owned())].into());
    let status = whole.status.as_mut().unwrap();
    status.images = Some(vec![ContainerImage::default()]);
    let light = lightened(whole.clone());
    assert!(
        light.metadata.managed_fields.is_none() && light.status.as_ref().unwrap().images.is_none()
    );
    let mut world = synced();
    world.hear(Told::Node(set(whole)));
    assert!(
        !world.hear(Told::Node(set(light))),
        "nothing that matters is missing"
    );
}
