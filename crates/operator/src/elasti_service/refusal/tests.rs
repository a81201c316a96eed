//! What is told of which Service and autoscaler, from the objects as the watches bring them.

use k8s_openapi::api::{autoscaling::v2::HorizontalPodAutoscaler, core::v1::Service};
use serde_json::{Value, json};
use weir_role::cluster::{ObjectId, Update};

use super::*;
use crate::elasti_service::world::{Told as Heard, World};

/// An ElastiService with this Service, and with an autoscaler that has so many replicas at least.
fn sight(service: &Value, least: Option<i32>) -> Sight {
    let meta = json!({"name": "web", "namespace": "shop", "uid": "uid", "resourceVersion": "1"});
    let mut world = World::new(1);
    let object = json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService", "metadata": meta,
        "spec": {
            "service": "web", "minTargetReplicas": 1,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "autoscaler": {"type": "hpa", "name": "web"},
        },
    });
    let object = serde_json::from_value(object).unwrap();
    world.hear(Heard::ElastiService(Update::Set(Box::new(object))));
    let service = json!({"metadata": meta, "spec": service});
    let service: Service = serde_json::from_value(service).unwrap();
    world.hear(Heard::Service(Update::Set(Box::new(service))));
    let autoscaler: HorizontalPodAutoscaler = serde_json::from_value(json!({
        "metadata": meta,
        "spec": {
            "minReplicas": least, "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        },
    }))
    .unwrap();
    let touched = world.hear(Heard::Hpa(Update::Set(Box::new(autoscaler))));
    let id = ObjectId::new("shop", "web");
    assert!(touched.contains(&id), "it is looked at again");
    world.sight(&id).unwrap()
}

fn ordinary() -> Value {
    json!({
        "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"],
        "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
    })
}

fn kinds(told: &[Told]) -> Vec<ConditionType> {
    told.iter().map(|told| told.kind).collect()
}

/// API servers take such an autoscaler only with a feature gate, so that no test on a cluster has it.
#[test]
fn an_autoscaler_that_reaches_zero_is_told_of_and_no_reason_to_refuse() {
    for (least, expected) in [
        (Some(0), vec![ConditionType::AutoscalerReachesZero]),
        (Some(1), vec![]),
        (Some(2), vec![]),
        // The API server's default is 1.
        (None, vec![]),
    ] {
        let sight = sight(&ordinary(), least);
        let (judgement, told) = judge(&sight, &[], &Neighbours::default());
        assert_eq!(judgement, Judgement::Held, "{least:?}");
        assert_eq!(kinds(&told), expected, "{least:?}");
    }
}

#[test]
fn a_node_without_a_resolver_matters_to_local_policies_alone() {
    let near = Neighbours {
        uncovered_nodes: BTreeSet::from(["n2".to_owned()]),
        ..Neighbours::default()
    };
    for policy in ["internalTrafficPolicy", "externalTrafficPolicy"] {
        for (value, is_local) in [("Local", true), ("Cluster", false)] {
            let mut service = ordinary();
            service[policy] = value.into();
            let sight = sight(&service, None);
            let (judgement, told) = judge(&sight, &[], &near);
            let refused = matches!(&judgement, Judgement::Refused(why) if why.contains("n2"));
            assert_eq!(refused, is_local, "{policy}: {value}: {judgement:?}");
            let expected = is_local.then_some(ConditionType::ResolverMissingOnNode);
            assert_eq!(kinds(&told), Vec::from_iter(expected));
            // With a resolver on each there is nothing to say.
            let (judgement, told) = judge(&sight, &[], &Neighbours::default());
            assert_eq!((judgement, told), (Judgement::Held, vec![]));
        }
    }
}

/// Told of, and no more: addresses of two families come and go one after the other, and nothing is to be woken for that.
#[test]
fn a_family_of_which_no_resolver_has_an_address_is_told() {
    let mut service = ordinary();
    service["ipFamilies"] = json!(["IPv4", "IPv6"]);
    let sight = sight(&service, None);
    assert_eq!(
        sight.service.as_ref().map(|it| &it.families[..]),
        Some(&AddressFamily::ALL[..])
    );
    let near = Neighbours {
        families_without: vec![AddressFamily::V6],
        ..Neighbours::default()
    };
    let (judgement, told) = judge(&sight, &[], &near);
    assert_eq!(judgement, Judgement::Held);
    assert_eq!(kinds(&told), [ConditionType::ServiceCannotBeHeld]);
    assert!(
        told[0]
            .message
            .contains("no ready resolver has an IPv6 address"),
        "{told:?}"
    );
    let (judgement, told) = judge(&sight, &[], &Neighbours::default());
    assert_eq!((judgement, told), (Judgement::Held, vec![]));
}

/// An older server says no families; the addresses do.
#[test]
fn families_are_what_the_service_says_or_its_addresses_are() {
    for (fields, expected) in [
        (
            json!({"ipFamilies": ["IPv6", "IPv4"]}),
            &[AddressFamily::V6, AddressFamily::V4][..],
        ),
        (json!({"ipFamilies": ["IPv6"]}), &[AddressFamily::V6]),
        (json!({"clusterIPs": ["fd00::7"]}), &[AddressFamily::V6]),
        (
            json!({"clusterIPs": ["10.96.0.7", "fd00::7"]}),
            &AddressFamily::ALL,
        ),
        (json!({"clusterIPs": ["10.96.0.7"]}), &[AddressFamily::V4]),
        (json!({"clusterIPs": ["None"]}), &[AddressFamily::V4]),
        (json!({}), &[AddressFamily::V4]),
    ] {
        let service: Service =
            serde_json::from_value(json!({"metadata": {}, "spec": fields})).unwrap();
        assert_eq!(ServiceSight::of(&service).families, expected, "{fields}");
    }
}

#[test]
fn services_without_an_address_of_their_own_are_refused() {
    for (change, why) in [
        (json!({"type": "ExternalName"}), "ExternalName"),
        (json!({"clusterIP": "None"}), "headless"),
        (json!({"selector": null}), "no selector"),
        (
            json!({"ports": [{"port": 53, "protocol": "UDP"}]}),
            "no TCP port",
        ),
    ] {
        let mut service = ordinary();
        for (field, value) in change.as_object().unwrap() {
            service[field] = value.clone();
        }
        let (judgement, told) = judge(&sight(&service, None), &[], &Neighbours::default());
        assert!(
            matches!(&judgement, Judgement::Refused(message) if message.contains(why)),
            "{judgement:?}"
        );
        assert_eq!(kinds(&told), [ConditionType::ServiceCannotBeHeld]);
    }
}

/// Somebody has to copy it.
#[test]
fn a_pod_that_cannot_be_reached_is_told_of_with_the_rule_to_add() {
    let sight = sight(&ordinary(), Some(1));
    let near = Neighbours {
        unreachable: Some("192.0.2.7:8080".parse().unwrap()),
        resolver_namespace: "traffic".to_owned(),
        ..Neighbours::default()
    };
    let (judgement, told) = judge(&sight, &[], &near);
    assert_eq!(judgement, Judgement::Held);
    assert_eq!(kinds(&told), [ConditionType::TargetUnreachable]);
    let message = &told[0].message;
    assert!(message.contains("192.0.2.7:8080"), "{message}");
    let (_, snippet) = message.split_once("ingress: ").unwrap();
    let (snippet, _) = snippet.split_once("; ").unwrap();
    let expected = "[{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: traffic}}, podSelector: {matchLabels: {app.kubernetes.io/name: weir, app.kubernetes.io/component: resolver}}}]}]";
    assert_eq!(snippet, expected);
}
