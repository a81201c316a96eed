//! Who is touched by what, and that nobody is kept who is gone.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service, discovery::v1::EndpointSlice};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn made<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn meta(name: &str) -> Value {
    json!({"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "resourceVersion": "1"})
}

fn elasti_service(name: &str, service: &str, target: &str, created: &str) -> Told {
    let mut meta = meta(name);
    meta["creationTimestamp"] = json!(created);
    Told::ElastiService(Update::Set(Box::new(made(json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
        "metadata": meta,
        "spec": {
            "service": service, "minTargetReplicas": 1,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
        },
    })))))
}

fn service(name: &str, labels: &Value, owner: Option<&str>) -> Told {
    let mut meta = meta(name);
    if let Some(owner) = owner {
        meta["labels"] =
            json!({"elasti.truefoundry.com/elastiservice-uid": format!("uid-{owner}")});
    }
    Told::Service(Update::Set(Box::new(made::<Service>(json!({
        "metadata": meta, "spec": {"selector": labels, "ports": [{"port": 80}]},
    })))))
}

fn slice(name: &str, of: &str) -> Told {
    let mut meta = meta(name);
    meta["labels"] = json!({"kubernetes.io/service-name": of});
    Told::Slice(Update::Set(Box::new(made::<EndpointSlice>(json!({
        "metadata": meta, "addressType": "IPv4",
        "endpoints": [
            {"addresses": ["10.0.0.1"], "conditions": {"ready": true, "serving": true, "terminating": false}},
            {"addresses": ["10.0.0.2"], "conditions": {"ready": false, "serving": true, "terminating": true}},
            {"addresses": ["10.0.0.3"], "conditions": {"ready": true, "serving": false}},
        ],
    })))))
}

fn deployment(name: &str, replicas: i32) -> Deployment {
    made(json!({
        "metadata": meta(name),
        "spec": {
            "replicas": replicas, "selector": {},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "a"}]}},
        },
    }))
}

fn id(name: &str) -> ObjectId {
    ObjectId::new("shop", name)
}

fn ids<const N: usize>(names: [&str; N]) -> Touched {
    names.into_iter().map(id).collect()
}

/// Two on one target, one of them older; and one that has nothing to do with them.
fn world() -> World {
    let mut world = World::new(1);
    world.hear(elasti_service(
        "young",
        "web",
        "app",
        "2026-02-01T00:00:00Z",
    ));
    world.hear(elasti_service("old", "web", "app", "2026-01-01T00:00:00Z"));
    world.hear(elasti_service(
        "other",
        "admin",
        "else",
        "2026-01-01T00:00:00Z",
    ));
    world
}

#[test]
fn a_change_touches_those_who_name_its_object_and_nobody_else() {
    let mut world = world();
    let app = json!({"app": "app"});
    assert_eq!(
        world.hear(service("web", &app, None)),
        ids(["old", "young"])
    );
    assert_eq!(
        world.hear(service("web", &app, None)),
        ids([]),
        "nothing changed"
    );
    assert_eq!(world.hear(service("stranger", &app, None)), ids([]));
    assert_eq!(world.hear(slice("web-abc", "web")), ids(["old", "young"]));
    assert_eq!(world.hear(slice("admin-abc", "admin")), ids(["other"]));
    let set = |replicas| Told::Deployment(Update::Set(Box::new(deployment("app", replicas))));
    assert_eq!(world.hear(set(1)), ids(["old", "young"]));
    assert_eq!(world.hear(set(0)), ids(["old", "young"]));
    // What was made for one touches it, whatever its name is.
    let private = service("private", &json!({}), Some("other"));
    assert_eq!(world.hear(private), ids(["other"]));
    // An edit touches those whom it leaves as well.
    let moved = elasti_service("young", "admin", "app", "2026-02-01T00:00:00Z");
    assert_eq!(world.hear(moved), ids(["old", "other", "young"]));
}

#[test]
fn the_oldest_holds_a_service_and_all_on_a_target_are_a_group() {
    let mut world = world();
    let holder = |world: &World| world.holder(&id("web")).map(|object| object.name_any());
    assert_eq!(holder(&world).as_deref(), Some("old"));
    let old = Arc::clone(world.object(&id("old")).unwrap());
    let group: Vec<String> = world.group(&old).iter().map(|it| it.name_any()).collect();
    assert_eq!(group, ["young"]);
    let gone = Told::ElastiService(Update::Gone(id("old")));
    assert_eq!(world.hear(gone), ids(["old", "young"]));
    assert_eq!(holder(&world).as_deref(), Some("young"));
    assert!(world.sight(&id("old")).is_none());
}

#[test]
fn what_was_not_listed_yet_is_not_taken_for_missing() {
    let mut world = world();
    let target = |world: &World| world.sight(&id("old")).unwrap().target;
    assert_eq!(target(&world), Seen::NotYet);
    let list = |objects| {
        Told::Deployment(Update::Restarted {
            namespace: None,
            objects,
            unreadable: Vec::new(),
        })
    };
    world.hear(list(vec![]));
    assert_eq!(target(&world), Seen::Missing);
    world.hear(list(vec![deployment("app", 2)]));
    assert_eq!(target(&world).there().map(|it| it.replicas), Some(2));
    // It is gone, and nobody saw it go.
    assert_eq!(world.hear(list(vec![])), ids(["old", "young"]));
    assert_eq!(target(&world), Seen::Missing);
    assert!(!world.is_synced());
    // A kind that is not there is no reason to wait.
    assert!(world.rollouts.is_pending());
    world.hear(Told::Rollout(None));
    assert!(!world.rollouts.is_pending());
}

#[test]
fn ready_are_endpoints_that_serve_and_do_not_end() {
    let mut world = world();
    world.hear(slice("web-abc", "web"));
    let sight = world.sight(&id("old")).unwrap();
    let ready: Vec<String> = sight.slices[0]
        .ready
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(ready, ["10.0.0.1"]);
}

#[test]
fn services_of_a_pod_are_found_by_their_selector() {
    let mut world = world();
    let labels = BTreeMap::from([
        ("app".to_owned(), "app".to_owned()),
        ("tier".to_owned(), "1".to_owned()),
    ]);
    world.hear(service("web", &json!({"app": "app"}), None));
    world.hear(service("both", &json!({"app": "app", "tier": "1"}), None));
    world.hear(service(
        "stricter",
        &json!({"app": "app", "tier": "2"}),
        None,
    ));
    world.hear(service("all", &json!({}), None));
    let found = world.selecting(&id("web").namespace, &labels);
    assert_eq!(found, ids(["both", "web"]));
    world.hear(Told::Service(Update::Gone(id("both"))));
    assert_eq!(world.selecting(&id("web").namespace, &labels), ids(["web"]));
}

#[test]
fn a_label_that_all_services_share_does_not_make_each_look_at_all_of_them() {
    let mut world = world();
    let labels = |name: &str| json!({"a-tier": "backend", "app": name});
    for number in 0..100 {
        let name = format!("web-{number}");
        world.hear(service(&name, &labels(&name), None));
    }
    // The first of all may stand under the shared label, and nobody after it.
    let most = world.selectors.values().map(BTreeSet::len).max();
    assert_eq!(most, Some(1));
    let found = |world: &World, name: &str| {
        let labels: BTreeMap<String, String> = made(labels(name));
        world.selecting(&id("web").namespace, &labels)
    };
    assert_eq!(found(&world, "web-0"), ids(["web-0"]));
    assert_eq!(found(&world, "web-99"), ids(["web-99"]));
    // Whichever label it stood under.
    for name in ["web-0", "web-99"] {
        world.hear(service(name, &json!({"a-tier": "front"}), None));
        assert_eq!(found(&world, name), ids([]));
        world.hear(Told::Service(Update::Gone(id(name))));
    }
    assert_eq!(world.selectors.len(), 98);
}

#[test]
fn scaled_objects_are_found_by_who_paused_them() {
    let mut world = world();
    let scaler = |name: &str, by: Option<&str>| {
        let mut meta = meta(name);
        if let Some(by) = by {
            meta["annotations"] = json!({"elasti.truefoundry.com/paused-by": by});
        }
        made::<ScaledObject>(json!({
            "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": meta, "spec": {},
        }))
    };
    let set = |object| Told::ScaledObject(Some(Update::Set(Box::new(object))));
    world.hear(set(scaler("one", Some("old"))));
    world.hear(set(scaler("two", Some("other"))));
    world.hear(set(scaler("three", None)));
    assert_eq!(world.paused_by(&id("old")), [id("one")]);
    assert_eq!(world.paused_by(&ObjectId::new("elsewhere", "old")), []);
    world.hear(set(scaler("one", Some("other"))));
    assert_eq!(world.paused_by(&id("old")), []);
    assert_eq!(world.paused_by(&id("other")), [id("one"), id("two")]);
    // KEDA is removed, and comes back with other objects.
    world.hear(Told::ScaledObject(None));
    assert_eq!(world.paused_by(&id("other")), []);
    world.hear(Told::ScaledObject(Some(Update::Restarted {
        namespace: None,
        objects: vec![scaler("four", Some("old"))],
        unreadable: Vec::new(),
    })));
    assert_eq!(world.paused_by(&id("old")), [id("four")]);
}

#[test]
fn a_list_that_is_told_object_by_object_counts_when_it_is_complete() {
    let mut world = world();
    let target = |world: &World| world.sight(&id("old")).unwrap().target;
    let set = |name| Told::Deployment(Update::Set(Box::new(deployment(name, 1))));
    let end = |there| {
        Told::Deployment(Update::Restarted {
            namespace: None,
            objects: Vec::new(),
            unreadable: there,
        })
    };
    world.hear(set("else"));
    assert_eq!(target(&world), Seen::NotYet);
    assert_eq!(world.hear(set("app")), ids(["old", "young"]));
    assert!(!world.deployments.is_listed());
    assert_eq!(world.hear(end(vec![id("app"), id("else")])), ids([]));
    assert_eq!(target(&world).there().map(|it| it.replicas), Some(1));
    // Listed once more, it is not among them.
    world.hear(set("else"));
    assert_eq!(world.hear(end(vec![id("else")])), ids(["old", "young"]));
    assert_eq!(target(&world), Seen::Missing);
}

#[test]
fn a_target_that_is_not_watched_is_forgotten_with_the_last_who_names_it() {
    let mut world = World::new(1);
    let object = |target: &str| {
        Told::ElastiService(Update::Set(Box::new(made(json!({
            "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
            "metadata": meta("web"),
            "spec": {
                "service": "web", "minTargetReplicas": 1,
                "scaleTargetRef": {"apiVersion": "example.com/v1", "kind": "Widget", "name": target},
            },
        })))))
    };
    world.hear(object("one"));
    let named = world.object(&id("web")).unwrap();
    let kind = Kind::of(&named.spec.scale_target_ref);
    world.set_other(kind.clone(), id("one"), Seen::Missing);
    assert_eq!(world.sight(&id("web")).unwrap().target, Seen::Missing);
    world.hear(object("two"));
    assert_eq!(world.sight(&id("web")).unwrap().target, Seen::NotYet);
    // It was asked for before the edit was heard of.
    world.set_other(kind, id("one"), Seen::Missing);
    assert!(world.others.is_empty());
}
