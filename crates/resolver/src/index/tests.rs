//! The index, told with values: single rules by example, and by property that only what there is counts, not how it
//! came about.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::view::Protocol;
use weir_api::hold::names::AddressFamily;

fn settings() -> IndexSettings {
    IndexSettings {
        per_service_ports: true,
        reserved_ports: vec![8012, 8013],
        early_readiness: true,
    }
}

fn parsed<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn elasti(name: &str, service: &str, minute: u8, ports: &Value) -> Event {
    Event::ElastiService(Update::Set(Box::new(parsed(json!({
        "metadata": {
            "namespace": "shop", "name": name,
            "creationTimestamp": format!("2026-01-01T00:{minute:02}:00Z"),
        },
        "spec": {
            "service": service,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "deployments", "name": name},
        },
        "status": {"ports": ports},
    })))))
}

fn service(name: &str, ports: &Value) -> Event {
    Event::Service(Update::Set(Box::new(parsed(json!({
        "metadata": {"namespace": "shop", "name": name},
        "spec": {"ports": ports},
    })))))
}

fn slice(name: &str, service: &str, ours: bool, addresses: &[&str], ports: &Value) -> Event {
    let endpoints: Vec<Value> = addresses
        .iter()
        .map(|address| json!({"addresses": [address]}))
        .collect();
    with_endpoints(name, service, ours, &json!(endpoints), ports)
}

fn with_endpoints(
    name: &str,
    service: &str,
    ours: bool,
    endpoints: &Value,
    ports: &Value,
) -> Event {
    let by = if ours {
        "weir"
    } else {
        "endpointslice-controller.k8s.io"
    };
    Event::EndpointSlice(Update::Set(Box::new(parsed(json!({
        "metadata": {"namespace": "shop", "name": name, "labels": {
            "kubernetes.io/service-name": service,
            "endpointslice.kubernetes.io/managed-by": by,
        }},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": ports,
    })))))
}

fn web() -> Index {
    let mut index = Index::new(settings());
    index.apply(elasti("web", "web", 0, &json!([{"resolverPort": 10240}])));
    index.apply(service("web", &json!([{"port": 80}])));
    index
}

fn endpoints(index: &Index, service: &str) -> Vec<String> {
    let view = index.view(&ServiceId::new("shop", service)).unwrap();
    let endpoints = view.ports.iter().flat_map(|port| port.endpoints.iter());
    endpoints.map(ToString::to_string).collect()
}

fn only(changes: Vec<Change>) -> Arc<ServiceView> {
    match <[Change; 1]>::try_from(changes) {
        Ok([Change::Set(view)]) => view,
        other => panic!("not one view: {other:?}"),
    }
}

#[test]
fn what_a_port_speaks_may_change() {
    let mut index = Index::new(settings());
    let allotted = json!([{"name": "db", "resolverPort": 10240}]);
    index.apply(elasti("a", "web", 0, &allotted));
    for (app_protocol, expected) in [
        (None, Protocol::Sniff),
        (Some("postgresql"), Protocol::Tcp),
        (Some("tls"), Protocol::Tls),
        (Some("http"), Protocol::Http1),
    ] {
        let ports = json!([{"port": 5432, "name": "db", "appProtocol": app_protocol}]);
        let view = only(index.apply(service("web", &ports)));
        let port = &view.ports[0];
        assert_eq!(
            (port.protocol, port.resolver_port),
            (expected, Some(10240)),
            "{app_protocol:?}"
        );
    }
}

#[test]
fn a_service_is_held_while_both_objects_are_there() {
    let mut index = Index::new(settings());
    let claim = elasti(
        "a",
        "web",
        0,
        &json!([{"name": "b", "resolverPort": 10240}]),
    );
    assert_eq!(index.apply(claim.clone()), []);
    let ports = json!([
        {"port": 53, "name": "dns", "protocol": "UDP"},
        {"port": 443, "name": "https-a"},
        {"port": 80, "name": "b", "appProtocol": "kubernetes.io/h2c"},
    ]);
    let view = only(index.apply(service("web", &ports)));
    assert_eq!(&*view.target, "Deployment-a");
    assert!(!view.switched);
    let told: Vec<_> = view
        .ports
        .iter()
        .map(|port| (&*port.name, port.number, port.resolver_port, port.protocol))
        .collect();
    assert_eq!(
        told,
        [
            ("https-a", 443, None, Protocol::Tls),
            ("b", 80, Some(10240), Protocol::Http2)
        ]
    );
    // The same again says nothing.
    assert_eq!(index.apply(claim), []);
    assert_eq!(index.apply(service("web", &ports)), []);
    let id = ServiceId::new("shop", "web");
    let udp = service("web", &json!([{"port": 53, "protocol": "UDP"}]));
    assert_eq!(index.apply(udp), [Change::Gone(id.clone())]);
    only(index.apply(service("web", &ports)));
    let gone = Event::ElastiService(Update::Gone(ObjectId::new("shop", "a")));
    assert_eq!(index.apply(gone), [Change::Gone(id)]);
    assert_eq!(index.views().count(), 0);
}

#[test]
fn what_an_edit_leaves_is_held_until_its_target_is_up() {
    let edited = |phase: &str| {
        Event::ElastiService(Update::Set(Box::new(parsed(json!({
            "metadata": {"namespace": "shop", "name": "web"},
            "spec": {
                "service": "new",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "new"},
            },
            "status": {
                "phase": phase, "service": "web", "target": "Deployment/web",
                "ports": [{"resolverPort": 10240}],
            },
        })))))
    };
    let mut index = web();
    index.apply(service("new", &json!([{"port": 80}])));
    let (old, new) = (ServiceId::new("shop", "web"), ServiceId::new("shop", "new"));
    for phase in ["Asleep", "Waking"] {
        index.apply(edited(phase));
        let view = index.view(&old).expect("it is held");
        assert_eq!(&*view.target, "Deployment-web");
        assert_eq!(view.ports[0].resolver_port, Some(10240));
        assert!(index.view(&new).is_none());
    }
    index.apply(edited("Serving"));
    assert!(index.view(&old).is_none() && index.view(&new).is_some());
}

#[test]
fn endpoints_are_what_serves_in_all_slices_that_are_not_ours() {
    let mut index = web();
    let port =
        json!([{"port": 8080}, {"name": "other", "port": 1}, {"port": 2, "protocol": "UDP"}]);
    let to_resolver = slice("x1", "web", true, &["192.0.2.9"], &port);
    assert_eq!(index.apply(to_resolver), []);
    let mixed = json!([
        {"addresses": ["192.0.2.3"]},
        {"addresses": ["192.0.2.1"], "conditions": {}},
        {"addresses": ["192.0.2.2"], "conditions": {"ready": false, "serving": true}},
        {"addresses": ["192.0.2.4"], "conditions": {"ready": false}},
        {"addresses": ["192.0.2.5"], "conditions": {"ready": true, "serving": false}},
        {"addresses": ["192.0.2.6"], "conditions": {"serving": true, "terminating": true}},
        {"addresses": ["192.0.2.3", "192.0.2.7"]},
        {"addresses": ["2001:db8::1"]},
        {"addresses": ["localhost"]},
        {"addresses": []},
    ]);
    only(index.apply(with_endpoints("x2", "web", false, &mixed, &port)));
    let found = ["192.0.2.1:8080", "192.0.2.2:8080", "192.0.2.3:8080"];
    assert_eq!(endpoints(&index, "web"), found);
    only(index.apply(slice(
        "x3",
        "web",
        false,
        &["192.0.2.0", "192.0.2.3"],
        &port,
    )));
    assert_eq!(endpoints(&index, "web").len(), 4);
    // Another Service's, by label; the name means nothing.
    assert_eq!(
        index.apply(slice("web", "other", false, &["192.0.2.8"], &port)),
        []
    );
    // A slice may change hands.
    only(index.apply(slice("x3", "other", false, &["192.0.2.0"], &port)));
    assert_eq!(endpoints(&index, "web"), found);
}

fn of_pods(name: &str, family: &str, pods: &[(&str, &str)]) -> Event {
    let endpoints: Vec<Value> = pods
        .iter()
        .map(|(uid, address)| {
            let pod = json!({"kind": "Pod", "name": format!("pod-{uid}"), "uid": uid});
            json!({"addresses": [address], "targetRef": pod})
        })
        .collect();
    Event::EndpointSlice(Update::Set(Box::new(parsed(json!({
        "metadata": {"namespace": "shop", "name": name, "labels": {
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        }},
        "addressType": family,
        "endpoints": endpoints,
        "ports": [{"port": 8080}],
    })))))
}

/// Or it would be sent twice as much as one that has addresses of one family.
#[test]
fn slices_of_both_families_are_merged_and_a_pod_in_both_counts_once() {
    let mut index = web();
    index.apply(of_pods(
        "six",
        "IPv6",
        &[("1", "2001:db8::1"), ("2", "2001:db8::2")],
    ));
    assert_eq!(
        endpoints(&index, "web"),
        ["[2001:db8::1]:8080", "[2001:db8::2]:8080"]
    );
    index.apply(of_pods(
        "four",
        "IPv4",
        &[("1", "192.0.2.1"), ("3", "192.0.2.3")],
    ));
    let merged = ["192.0.2.1:8080", "192.0.2.3:8080", "[2001:db8::2]:8080"];
    assert_eq!(endpoints(&index, "web"), merged);
    // It has lost the one address, and has the other still.
    index.apply(of_pods("four", "IPv4", &[("3", "192.0.2.3")]));
    let left = ["192.0.2.3:8080", "[2001:db8::1]:8080", "[2001:db8::2]:8080"];
    assert_eq!(endpoints(&index, "web"), left);
    // Who is no pod is nobody else either.
    let mut event = slice(
        "byhand",
        "web",
        false,
        &["192.0.2.9"],
        &json!([{"port": 8080}]),
    );
    index.apply(event);
    event = of_pods("six", "IPv6", &[]);
    index.apply(event);
    assert_eq!(
        endpoints(&index, "web"),
        ["192.0.2.3:8080", "192.0.2.9:8080"]
    );
}

/// One that an operator of KubeElasti left, without a label: no pods are in it.
#[test]
fn a_slice_to_the_older_resolver_is_no_way_to_a_pod() {
    let mut index = web();
    let name = weir_api::hold::names::resolver_slice("web", AddressFamily::V4);
    let older = Event::EndpointSlice(Update::Set(Box::new(parsed(json!({
        "metadata": {"namespace": "shop", "name": name, "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.0.2.9"]}],
        "ports": [{"port": 8012}],
    })))));
    assert_eq!(index.apply(older), []);
    assert_eq!(endpoints(&index, "web"), Vec::<String>::new());
}

#[test]
fn the_switch_is_over_when_pods_are_ready_and_our_slice_is_gone() {
    let mut index = web();
    let port = json!([{"port": 8080}]);
    assert_eq!(
        index.apply(slice("ours", "web", true, &["192.0.2.9"], &port)),
        []
    );
    assert!(!only(index.apply(slice("a", "web", false, &["192.0.2.1"], &port))).switched);
    let gone = Event::EndpointSlice(Update::Gone(ObjectId::new("shop", "ours")));
    assert!(only(index.apply(gone)).switched);
    assert!(!only(index.apply(slice("a", "web", false, &[], &port))).switched);
}

#[test]
fn of_two_objects_for_one_service_the_older_holds_it() {
    let mut index = web();
    assert_eq!(index.apply(elasti("younger", "web", 1, &json!([]))), []);
    let older = elasti("a", "web", 0, &json!([]));
    assert_eq!(&*only(index.apply(older)).target, "Deployment-a", "by name");
    for (name, next) in [("a", "Deployment-web"), ("web", "Deployment-younger")] {
        let gone = Event::ElastiService(Update::Gone(ObjectId::new("shop", name)));
        assert_eq!(&*only(index.apply(gone)).target, next);
    }
}

#[test]
fn of_two_services_with_one_port_the_older_object_keeps_it() {
    let mut index = web();
    index.apply(service("other", &json!([{"port": 80}])));
    let port = json!([{"resolverPort": 10240}]);
    let view = only(index.apply(elasti("other", "other", 1, &port)));
    assert_eq!(view.ports[0].resolver_port, None);
    // The holder gives it up; who takes it comes after.
    let changes = index.apply(Event::Service(Update::Gone(ObjectId::new("shop", "web"))));
    assert_eq!(changes[0], Change::Gone(ServiceId::new("shop", "web")));
    let Change::Set(view) = &changes[1] else {
        panic!("{changes:?}")
    };
    assert_eq!(view.ports[0].resolver_port, Some(10240));
    // And has to give it back.
    let changes = index.apply(service("web", &json!([{"port": 80}])));
    let Change::Set(first) = &changes[0] else {
        panic!("{changes:?}")
    };
    assert_eq!(
        (&*first.id.name, first.ports[0].resolver_port),
        ("other", None)
    );
    assert_eq!(changes.len(), 2);
}

#[test]
fn an_object_that_names_another_service_takes_its_port_there() {
    let allotted = json!([{"resolverPort": 10240}]);
    for (from, to) in [("a", "b"), ("b", "a")] {
        let mut index = Index::new(settings());
        for name in [from, to] {
            index.apply(service(name, &json!([{"port": 80}])));
        }
        index.apply(elasti("it", from, 0, &allotted));
        index.apply(elasti("it", to, 0, &allotted));
        let view = index.view(&ServiceId::new("shop", to)).unwrap();
        assert_eq!(view.ports[0].resolver_port, Some(10240), "{from} to {to}");
    }
}

#[test]
fn ports_of_the_process_itself_and_zero_are_not_allotted() {
    for port in [0, 8012, 8013] {
        let mut index = Index::new(settings());
        index.apply(service("web", &json!([{"port": 80}])));
        let view = only(index.apply(elasti("a", "web", 0, &json!([{"resolverPort": port}]))));
        assert_eq!(view.ports[0].resolver_port, None, "{port}");
    }
    let mut index = Index::new(IndexSettings {
        per_service_ports: false,
        reserved_ports: Vec::new(),
        early_readiness: true,
    });
    index.apply(service("web", &json!([{"port": 80}])));
    let view = only(index.apply(elasti("a", "web", 0, &json!([{"resolverPort": 10240}]))));
    assert_eq!(view.ports[0].resolver_port, None);
}

#[test]
fn a_list_ends_what_is_not_in_it_within_its_namespace() {
    let mut index = web();
    let restart = |namespace: Option<&str>| {
        Event::Service(Update::Restarted {
            namespace: namespace.map(str::to_owned),
            objects: Vec::new(),
            unreadable: Vec::new(),
        })
    };
    assert_eq!(index.apply(restart(Some("elsewhere"))), []);
    let gone = [Change::Gone(ServiceId::new("shop", "web"))];
    assert_eq!(index.apply(restart(Some("shop"))), gone);
    index.apply(service("web", &json!([{"port": 80}])));
    let unreadable = Event::Service(Update::Restarted {
        namespace: None,
        objects: Vec::new(),
        unreadable: vec![ObjectId::new("shop", "web")],
    });
    assert_eq!(index.apply(unreadable), [], "what was known stays");
    assert_eq!(index.apply(restart(None)), gone);
}

#[test]
fn a_bad_rule_is_told_once_and_the_rest_is_used() {
    let mut index = web();
    let object = |phase: &str| {
        Event::ElastiService(Update::Set(Box::new(parsed(json!({
            "metadata": {"namespace": "shop", "name": "web"},
            "spec": {
                "service": "web",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "probeResponse": [
                    {"path": {"type": "RegularExpression", "value": "("}, "response": {"status": 200, "body": ""}},
                    {"response": {"status": 200, "body": ""}},
                ],
            },
            "status": {"phase": phase},
        })))))
    };
    assert!(!only(index.apply(object("Asleep"))).probes.is_empty());
    assert_eq!(index.take_problems().len(), 1);
    assert_eq!(index.apply(object("Waking")), []);
    assert_eq!(index.take_problems(), []);
}

fn pod(name: &str, uid: &str, app: &str, run: Option<&str>) -> Event {
    let state = match run {
        Some(_) => json!({"running": {}}),
        None => json!({"waiting": {}}),
    };
    Event::Pod(Update::Set(Box::new(parsed(json!({
        "metadata": {"namespace": "shop", "name": name, "uid": uid, "labels": {"app": app, "x": "y"}},
        "spec": {"containers": [{"name": "app", "readinessProbe": {"tcpSocket": {"port": 8080}}}]},
        "status": {"podIP": "192.0.2.1", "containerStatuses": [{
            "name": "app", "containerID": run, "ready": false, "restartCount": 0,
            "image": "", "imageID": "", "state": state,
        }]},
    })))))
}

fn selecting(name: &str, app: &str) -> Event {
    Event::Service(Update::Set(Box::new(parsed(json!({
        "metadata": {"namespace": "shop", "name": name},
        "spec": {"ports": [{"port": 80}], "selector": {"app": app}},
    })))))
}

/// A pod that is listed and is not ready.
fn listed(uid: &str, address: &str, terminating: bool) -> Event {
    let endpoint = json!([{
        "addresses": [address],
        "conditions": {"ready": false, "serving": false, "terminating": terminating},
        "targetRef": {"kind": "Pod", "namespace": "shop", "name": "web-1", "uid": uid},
    }]);
    with_endpoints("web-1", "web", false, &endpoint, &json!([{"port": 8080}]))
}

fn starting(index: &Index) -> Vec<(String, String)> {
    let view = index.view(&ServiceId::new("shop", "web")).unwrap();
    let starting = view.ports.iter().flat_map(|port| port.starting.iter());
    starting
        .map(|it| (it.address.to_string(), it.pod.uid.to_string()))
        .collect()
}

#[test]
fn a_pod_that_starts_is_known_with_its_endpoint() {
    let mut index = web();
    index.apply(selecting("web", "web"));
    let known = [("192.0.2.1:8080".to_owned(), "u1".to_owned())];
    // In whichever order they come.
    index.apply(pod("web-1", "u1", "web", None));
    index.apply(listed("u1", "192.0.2.1", false));
    assert_eq!(starting(&index), known);
    index.apply(Event::Pod(Update::Gone(ObjectId::new("shop", "web-1"))));
    assert_eq!(starting(&index), []);
    index.apply(pod("web-1", "u1", "web", None));
    assert_eq!(starting(&index), known);
    // A word of the kubelet is told.
    let view = only(index.apply(pod("web-1", "u1", "web", Some("run"))));
    let run = view.ports[0].starting[0].pod.containers[0].run.as_deref();
    assert_eq!(run, Some("run"));
    assert!(view.ports[0].endpoints.is_empty());
    assert_eq!(index.apply(pod("web-1", "u1", "web", Some("run"))), []);

    for other in [
        listed("u2", "192.0.2.1", false),
        listed("u1", "192.0.2.2", false),
        listed("u1", "192.0.2.1", true),
        slice(
            "web-1",
            "web",
            false,
            &["192.0.2.1"],
            &json!([{"port": 8080}]),
        ),
    ] {
        index.apply(other);
        assert_eq!(starting(&index), []);
        index.apply(listed("u1", "192.0.2.1", false));
        assert_eq!(starting(&index), known);
    }
    let list = Update::Restarted {
        namespace: Some("shop".to_owned()),
        objects: Vec::new(),
        unreadable: Vec::new(),
    };
    index.apply(Event::Pod(list));
    assert_eq!(starting(&index), []);
}

#[test]
fn of_pods_only_those_of_held_services_are_kept() {
    let mut index = web();
    index.apply(selecting("web", "web"));
    index.apply(selecting("other", "other"));
    index.apply(pod("a", "u1", "web", None));
    index.apply(pod("b", "u2", "other", None));
    assert_eq!(index.pods.ids().count(), 1);
    // It is another's now; and again, and then nobody is held any more.
    index.apply(pod("a", "u1", "other", None));
    assert_eq!(index.pods.ids().count(), 0);
    index.apply(pod("a", "u1", "web", None));
    index.apply(selecting("web", "elsewhere"));
    assert_eq!(index.pods.ids().count(), 0);
    index.apply(selecting("web", "web"));
    index.apply(pod("a", "u1", "web", None));
    index.apply(Event::ElastiService(Update::Gone(ObjectId::new(
        "shop", "web",
    ))));
    assert!(index.pods.is_empty());
}

#[test]
fn pods_are_not_asked_where_that_is_turned_off() {
    let mut index = Index::new(IndexSettings {
        early_readiness: false,
        ..settings()
    });
    let Event::ElastiService(Update::Set(claim)) = elasti("web", "web", 0, &json!([])) else {
        panic!("no claim")
    };
    index.apply(Event::ElastiService(Update::Set(claim.clone())));
    let objects = [
        selecting("web", "web"),
        pod("web-1", "u1", "web", None),
        listed("u1", "192.0.2.1", false),
    ];
    for object in objects.clone() {
        index.apply(object);
    }
    assert_eq!(starting(&index), []);
    assert!(index.pods.is_empty());

    let mut index = Index::new(settings());
    let mut late = claim.clone();
    late.spec.early_readiness = false;
    for claim in [late, claim] {
        let is_early = claim.spec.early_readiness;
        index.apply(Event::ElastiService(Update::Set(claim)));
        for object in objects.clone() {
            index.apply(object);
        }
        assert_eq!(starting(&index).len(), usize::from(is_early));
    }
}

/// A small world, so that objects meet: 3 ElastiServices, 3 Services, 4 slices, 2 ports.
fn events() -> impl Strategy<Value = Event> {
    let name = || prop_oneof![Just("a"), Just("b"), Just("c")];
    let ports = || {
        proptest::collection::vec((0..2_u8, 10240..10242_u16), 0..2).prop_map(|ports| {
            let ports: Vec<Value> = ports
                .iter()
                .map(|(name, port)| json!({"name": format!("p{name}"), "resolverPort": port}))
                .collect();
            json!(ports)
        })
    };
    let gone = |name: &str| Update::<ElastiService>::Gone(ObjectId::new("shop", name));
    prop_oneof![
        3 => (name(), name(), 0..3_u8, ports())
            .prop_map(|(own, service, minute, ports)| elasti(own, service, minute, &ports)),
        1 => name().prop_map(move |name| Event::ElastiService(gone(name))),
        3 => (name(), 0..3_u16).prop_map(|(name, count)| {
            let ports: Vec<Value> = (0..count)
                .map(|port| json!({"name": format!("p{port}"), "port": 80 + port}))
                .collect();
            service(name, &json!(ports))
        }),
        1 => name().prop_map(|name| Event::Service(Update::Gone(ObjectId::new("shop", name)))),
        4 => (0..4_u8, name(), any::<bool>(), proptest::collection::vec(0..4_u8, 0..3)).prop_map(
            |(own, service, ours, addresses)| {
                let addresses: Vec<String> =
                    addresses.iter().map(|last| format!("192.0.2.{last}")).collect();
                let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
                let ports = json!([{"name": "p0", "port": 8080}, {"name": "p1", "port": 8081}]);
                slice(&format!("s{own}"), service, ours, &addresses, &ports)
            }
        ),
        1 => (0..4_u8).prop_map(|own| {
            Event::EndpointSlice(Update::Gone(ObjectId::new("shop", &format!("s{own}"))))
        }),
    ]
}

/// The objects there are after some events.
#[derive(Default)]
struct World {
    elasti: BTreeMap<ObjectId, ElastiService>,
    services: BTreeMap<ObjectId, Service>,
    slices: BTreeMap<ObjectId, EndpointSlice>,
}

impl World {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::ElastiService(update) => keep(&mut self.elasti, update),
            Event::Service(update) => keep(&mut self.services, update),
            Event::EndpointSlice(update) => keep(&mut self.slices, update),
            // Have tests of their own: what was said of one before its Service was held is forgotten.
            Event::Pod(_) => {}
        }
    }

    fn lists(&self) -> [Event; 3] {
        [
            Event::EndpointSlice(list(&self.slices)),
            Event::Service(list(&self.services)),
            Event::ElastiService(list(&self.elasti)),
        ]
    }
}

fn keep<K: kube::ResourceExt + Clone>(objects: &mut BTreeMap<ObjectId, K>, update: &Update<K>) {
    match update {
        Update::Set(object) => {
            objects.insert(ObjectId::of(object.as_ref()), object.as_ref().clone());
        }
        Update::Gone(id) => {
            objects.remove(id);
        }
        Update::Restarted { .. } => {}
    }
}

fn list<K: Clone>(objects: &BTreeMap<ObjectId, K>) -> Update<K> {
    Update::Restarted {
        namespace: None,
        objects: objects.values().rev().cloned().collect(),
        unreadable: Vec::new(),
    }
}

fn sorted(index: &Index) -> BTreeMap<ServiceId, ServiceView> {
    let views = index.views();
    views
        .map(|view| (view.id.clone(), view.as_ref().clone()))
        .collect()
}

/// Applies changes as a table would, and checks that each says something.
fn replay(known: &mut BTreeMap<ServiceId, ServiceView>, changes: Vec<Change>) {
    for change in changes {
        match change {
            Change::Set(view) => {
                let old = known.insert(view.id.clone(), view.as_ref().clone());
                assert_ne!(old.as_ref(), Some(view.as_ref()), "nothing changed");
            }
            Change::Gone(id) => assert!(known.remove(&id).is_some(), "{id} was not there"),
        }
    }
}

proptest! {
    /// Any history that ends in the same objects gives the same views as those objects alone; the changes told on
    /// the way add up to them; no port is given twice; and nothing is kept of what is gone.
    #[test]
    fn only_what_there_is_counts(history in proptest::collection::vec(events(), 0..40)) {
        let mut index = Index::new(settings());
        let mut known = BTreeMap::new();
        let mut world = World::default();
        for event in history {
            world.apply(&event);
            replay(&mut known, index.apply(event));
        }
        prop_assert_eq!(&known, &sorted(&index));

        let mut fresh = Index::new(settings());
        for event in world.lists() {
            fresh.apply(event);
        }
        prop_assert_eq!(&known, &sorted(&fresh));

        let mut ports: Vec<u16> = known
            .values()
            .flat_map(|view| view.ports.iter().filter_map(|port| port.resolver_port))
            .collect();
        ports.sort_unstable();
        let all = ports.len();
        ports.dedup();
        prop_assert_eq!(ports.len(), all);

        // The same lists again change nothing, an empty world leaves nothing.
        for event in world.lists() {
            prop_assert_eq!(index.apply(event), []);
        }
        for event in World::default().lists() {
            replay(&mut known, index.apply(event));
        }
        prop_assert!(known.is_empty() && index.claims_of.is_empty() && index.slices_of.is_empty());
        prop_assert!(index.ports.is_empty() && index.pods.is_empty());
    }
}

/// Pods of two applications, of which some Services select one, and slices that list them; among all else that happens.
fn events_with_pods() -> impl Strategy<Value = Event> {
    let name = || prop_oneof![Just("a"), Just("b"), Just("c")];
    let run = prop_oneof![Just(None), Just(Some("first")), Just(Some("second"))];
    prop_oneof![
        4 => events(),
        2 => (name(), name()).prop_map(|(name, app)| selecting(name, app)),
        4 => (name(), 0..2_u8, name(), run)
            .prop_map(|(name, uid, app, run)| pod(name, &uid.to_string(), app, run)),
        1 => name().prop_map(|name| Event::Pod(Update::Gone(ObjectId::new("shop", name)))),
        3 => (0..4_u8, name(), name(), 0..2_u8, any::<bool>()).prop_map(|(own, service, pod, uid, serving)| {
            let endpoints = json!([{
                "addresses": ["192.0.2.1"],
                "conditions": {"serving": serving},
                "targetRef": {"kind": "Pod", "name": pod, "uid": uid.to_string()},
            }]);
            let ports = json!([{"port": 8080}, {"name": "p0", "port": 8081}]);
            with_endpoints(&format!("s{own}"), service, false, &endpoints, &ports)
        }),
    ]
}

proptest! {
    /// After a list of pods the order in which anything came does not matter either; only pods that a held Service selects are
    /// kept, and what starts is one of them, by its own name and address, and not ready.
    #[test]
    fn after_a_list_only_the_pods_there_are_count(history in proptest::collection::vec(events_with_pods(), 0..40)) {
        let mut index = Index::new(settings());
        let mut known = BTreeMap::new();
        let mut world = World::default();
        let mut pods = BTreeMap::new();
        for event in history {
            world.apply(&event);
            if let Event::Pod(update) = &event {
                keep(&mut pods, update);
            }
            replay(&mut known, index.apply(event));
        }
        replay(&mut known, index.apply(Event::Pod(list(&pods))));
        prop_assert_eq!(&known, &sorted(&index));
        let mut fresh = Index::new(settings());
        for event in world.lists() {
            fresh.apply(event);
        }
        fresh.apply(Event::Pod(list(&pods)));
        prop_assert_eq!(&known, &sorted(&fresh));
        for id in index.pods.ids() {
            let labels = pods[id].labels().unwrap();
            let selects = |view: &ServiceView| {
                let service = &world.services[&ObjectId::from(view.id.clone())];
                let selector = service.spec.as_ref().unwrap().selector.as_ref();
                selector.is_some_and(|it| it.iter().all(|(name, value)| labels.get(name) == Some(value)))
            };
            prop_assert!(known.values().any(selects), "{id:?} is nobody's");
        }
        for port in known.values().flat_map(|view| &view.ports) {
            for starting in port.starting.iter() {
                prop_assert!(!port.endpoints.contains(&starting.address) || world.slices.len() > 1);
                prop_assert!(starting.pod.addresses.contains(&starting.address.ip()));
                prop_assert!(pods.values().any(|pod| pod.metadata.uid.as_deref() == Some(&*starting.pod.uid)));
            }
        }
        for event in World::default().lists() {
            replay(&mut known, index.apply(event));
        }
        prop_assert!(known.is_empty() && index.pods.is_empty());
    }
}

#[test]
fn an_event_among_ten_thousand_services_says_something_of_one() {
    let mut index = Index::new(settings());
    for number in 0..10_000_u16 {
        let name = format!("s{number}");
        let allotted = json!([{"resolverPort": 10_240 + number}]);
        index.apply(service(&name, &json!([{"port": 80}])));
        only(index.apply(elasti(&name, &name, 0, &allotted)));
    }
    let one = slice("x", "s5000", false, &["192.0.2.1"], &json!([{"port": 1}]));
    assert_eq!(only(index.apply(one)).id, ServiceId::new("shop", "s5000"));
}
