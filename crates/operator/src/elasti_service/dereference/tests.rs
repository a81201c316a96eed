//! Slices and resolvers of one family and of two, from the objects as the watches bring them.

use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::json;
use weir_hold::Step;
use weir_role::cluster::{ObjectId, Update};

use super::*;
use crate::elasti_service::{
    resolver_slice::build,
    world::{Told, World},
};

const V4: AddressFamily = AddressFamily::V4;
const V6: AddressFamily = AddressFamily::V6;
const SHARED: u16 = 8012;

fn resolver(address: &str) -> (Resolver, Knows) {
    let resolver = Resolver {
        address: address.parse().unwrap(),
        node: None,
        zone: None,
    };
    (resolver, Knows::Yes)
}

/// An ElastiService at zero, and its Service with these families.
fn world(families: &[&str]) -> World {
    let meta = json!({"name": "web", "namespace": "shop", "uid": "uid", "resourceVersion": "1"});
    let mut world = World::new(1);
    let object = json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService", "metadata": meta,
        "spec": {
            "service": "web", "minTargetReplicas": 1,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        },
        "status": {"phase": "Asleep", "phaseStartTime": "2026-01-01T00:00:00Z"},
    });
    let object = serde_json::from_value(object).unwrap();
    world.hear(Told::ElastiService(Update::Set(Box::new(object))));
    serve(&mut world, families);
    world
}

fn serve(world: &mut World, families: &[&str]) {
    let service = json!({
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"ipFamilies": families, "selector": {"app": "web"}, "ports": [{"port": 80}]},
    });
    let service = serde_json::from_value(service).unwrap();
    world.hear(Told::Service(Update::Set(Box::new(service))));
}

fn sight(world: &World) -> Sight {
    world.sight(&ObjectId::new("shop", "web")).unwrap()
}

fn around(resolvers: &[(Resolver, Knows)]) -> Around<'_> {
    Around {
        resolvers,
        triggers: Triggers::Absent,
        window: Window::Open(None),
        group: Group::ALONE,
        group_names: &["web"],
        wake_asked: false,
        is_refused: false,
        claim: Claim::All,
        namespace_ends: false,
        shared_port: SHARED,
    }
}

/// Our slice of a family as it should be with these resolvers, in this version.
fn hear_slice(
    world: &mut World,
    family: AddressFamily,
    version: u32,
    resolvers: &[(Resolver, Knows)],
    mark: Option<&str>,
) {
    let sight = sight(world);
    let known: Vec<Resolver> = resolvers.iter().map(|(it, _)| it.clone()).collect();
    let all = known.iter().map(|it| it.address).collect();
    let ports = resolver_slice::ports(sight.service.as_ref().unwrap(), &[], SHARED);
    let mark = mark.map(|mark| mark.parse().unwrap());
    let mut slice = build(&sight.object, family, ports, &known, &all, mark);
    slice.metadata.resource_version = Some(version.to_string());
    world.hear(Told::Slice(Update::Set(Box::new(slice))));
}

fn addresses(all: &BTreeSet<IpAddr>) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

#[test]
fn only_addresses_of_a_family_that_the_service_has_count() {
    let all = ["192.0.2.1", "192.0.2.2", "2001:db8::1"].map(resolver);
    for (families, expected) in [
        (&["IPv4"][..], &["192.0.2.1", "192.0.2.2"][..]),
        (&["IPv6"], &["2001:db8::1"]),
        (
            &["IPv4", "IPv6"],
            &["192.0.2.1", "192.0.2.2", "2001:db8::1"],
        ),
        (
            &["IPv6", "IPv4"],
            &["192.0.2.1", "192.0.2.2", "2001:db8::1"],
        ),
    ] {
        let facts = facts(&sight(&world(families)), &around(&all));
        assert_eq!(
            addresses(&facts.usable_resolvers()),
            expected,
            "{families:?}"
        );
    }
}

/// Clients of that family would find nobody, so it is as if no resolver knew the Service: nothing goes to sleep, and what
/// sleeps is woken in the end.
#[test]
fn without_a_resolver_of_one_family_there_is_none() {
    let mut all = ["192.0.2.1", "2001:db8::1"].map(resolver).to_vec();
    let both = sight(&world(&["IPv4", "IPv6"]));
    let usable = |all: &[(Resolver, Knows)]| facts(&both, &around(all)).usable_resolvers().len();
    assert_eq!(usable(&all), 2);
    assert_eq!(usable(&all[..1]), 0);
    assert_eq!(usable(&all[1..]), 0);
    all[1].1 = Knows::NotYet;
    assert_eq!(usable(&all), 0, "it is there, but does not know it");
}

#[test]
fn slices_of_two_families_count_as_one_and_half_a_pair_as_one_without_resolvers() {
    let all = ["192.0.2.1", "2001:db8::1"].map(resolver);
    let mut world = world(&["IPv4", "IPv6"]);
    let slice = |world: &World| facts(&sight(world), &around(&all)).slice;
    assert_eq!(slice(&world), None);
    hear_slice(&mut world, V4, 4, &all, None);
    let half = slice(&world).unwrap();
    assert_eq!(
        (addresses(&half.resolvers).len(), &*half.version.0),
        (0, "4")
    );
    hear_slice(&mut world, V6, 6, &all, None);
    let whole = slice(&world).unwrap();
    assert_eq!(addresses(&whole.resolvers), ["192.0.2.1", "2001:db8::1"]);
    assert_eq!(&*whole.version.0, "4,6");
    // A change of either is a change of both.
    hear_slice(&mut world, V6, 7, &all, None);
    assert_ne!(slice(&world).unwrap().version, whole.version);

    // Without the one, all that is planned is to make both again.
    let ours = weir_api::hold::names::resolver_slice("web", V6);
    world.hear(Told::Slice(Update::Gone(ObjectId::new("shop", &ours))));
    let facts = facts(&sight(&world), &around(&all));
    let now = "2026-01-02T00:00:00Z".parse().unwrap();
    let mut memory = weir_hold::Memory::default();
    memory.see(&facts, now);
    let plan = weir_hold::next(&facts, &memory, &weir_hold::Settings::default(), now);
    assert!(matches!(plan.step, Step::ApplySlice { .. }), "{plan:?}");

    // Of one that has lost a family, the other alone counts.
    serve(&mut world, &["IPv4"]);
    assert_eq!(addresses(&slice(&world).unwrap().resolvers), ["192.0.2.1"]);
}

/// A removal that is on its way must fail for both of them.
#[test]
fn a_mark_counts_if_both_have_it() {
    let all = ["192.0.2.1", "2001:db8::1"].map(resolver);
    let mut world = world(&["IPv4", "IPv6"]);
    let (one, two) = ("2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z");
    for (v4, v6, expected) in [
        (Some(one), Some(one), Some(one)),
        (Some(one), Some(two), None),
        (Some(one), None, None),
        (None, Some(one), None),
        (None, None, None),
    ] {
        hear_slice(&mut world, V4, 4, &all, v4);
        hear_slice(&mut world, V6, 6, &all, v6);
        let slice = facts(&sight(&world), &around(&all)).slice.unwrap();
        let mark = slice.mark.map(|mark| mark.to_string());
        assert_eq!(mark.as_deref(), expected, "{v4:?} {v6:?}");
    }
}

fn older(world: &mut World) {
    let slice: EndpointSlice = serde_json::from_value::<EndpointSlice>(json!({
        "metadata": {
            "name": weir_api::hold::names::resolver_slice("web", V4), "namespace": "shop",
            "resourceVersion": "9", "labels": {"kubernetes.io/service-name": "web"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.0.2.9"]}],
        "ports": [{"name": "", "port": 8012, "protocol": "TCP"}],
    }))
    .unwrap();
    world.hear(Told::Slice(Update::Set(Box::new(slice))));
}

/// It is no way to a pod, and is made anew. Who is refused takes it away, unless another one holds the Service.
#[test]
fn a_slice_of_the_older_operator_is_one_of_ours_that_is_not_right() {
    let all = [resolver("192.0.2.1")];
    let mut world = world(&["IPv4"]);
    older(&mut world);
    let sight = sight(&world);
    assert!(endpoints(&sight).is_empty(), "no pod is there");
    for (claim, is_its) in [
        (Claim::All, true),
        (Claim::OwnAndNobodys, true),
        (Claim::Own, false),
    ] {
        let slice = facts(
            &sight,
            &Around {
                claim,
                ..around(&all)
            },
        )
        .slice;
        assert_eq!(slice.is_some(), is_its, "{claim:?}");
        if let Some(slice) = slice {
            assert_eq!((slice.resolvers.len(), &*slice.version.0), (0, "9"));
        }
    }
}
