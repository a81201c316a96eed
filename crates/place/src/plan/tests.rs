//! What each node should carry, and what must never be touched.

use proptest::{collection::btree_map, option, prelude::*};

use super::*;
use crate::fixture;

const NOTHING: Options = Options {
    allow_taints: false,
    annotate: false,
};
const ALL: Options = Options {
    allow_taints: true,
    annotate: true,
};

fn key(label: &str) -> String {
    format!("{label}.traffic.example.com/unfit")
}

fn claim(name: &str, created: i64, label: &str, wishes: &[(&str, Wish)]) -> Claim {
    let own = |(node, wish): &(&str, Wish)| ((*node).to_owned(), *wish);
    Claim {
        watch: WatchName {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        },
        created: Some(created),
        key: key(label),
        in_use: BTreeSet::new(),
        wishes: wishes.iter().map(own).collect(),
        taint: false,
    }
}

fn node(name: &str, labels: &[(&str, &str)]) -> NodeFacts {
    let own = |(label, value): &(&str, &str)| (key(label), (*value).to_owned());
    let mut node = fixture::node(name);
    node.labels = labels.iter().map(own).collect();
    node.labels.extend([("zone".to_owned(), "a".to_owned())]);
    node
}

fn taint(key: String, effect: &str) -> Taint {
    Taint {
        key,
        value: Some("true".to_owned()),
        effect: effect.to_owned(),
        time_added: None,
    }
}

fn planned(node: &NodeFacts, claims: &[Claim], options: Options) -> NodeChange {
    let changes = changes([node], claims, &BTreeMap::new(), options);
    changes.get(&node.name).cloned().unwrap_or_default()
}

fn applied(change: &NodeChange) -> Vec<(String, String)> {
    let carried = change.apply.clone().unwrap_or_default();
    carried.labels.into_iter().collect()
}

fn pair(label: &str, value: &str) -> (String, String) {
    (key(label), value.to_owned())
}

const FIT: Wish = Wish::Show(State::Fit);
const UNFIT_WISH: Wish = Wish::Show(State::Unfit);

#[test]
fn one_apply_has_all_keys_of_the_node() {
    let claims = [
        claim("web", 1, "web", &[("a", FIT)]),
        claim("api", 1, "api", &[("a", UNFIT_WISH)]),
    ];
    let change = planned(&node("a", &[("web", "false")]), &claims, NOTHING);
    assert_eq!(
        applied(&change),
        [pair("api", "true"), pair("web", "false")]
    );
}

#[test]
fn what_is_right_is_not_written() {
    let claims = [claim("web", 1, "web", &[("a", FIT)])];
    let found = changes(
        [&node("a", &[("web", "false")])],
        &claims,
        &BTreeMap::new(),
        NOTHING,
    );
    assert_eq!(found, BTreeMap::new());
}

#[test]
fn a_watch_that_says_nothing_of_a_node_keeps_what_is_there() {
    let refused = claim("web", 1, "web", &[]);
    let other = claim("api", 1, "api", &[("a", FIT)]);
    let change = planned(&node("a", &[("web", "true")]), &[refused, other], NOTHING);
    assert_eq!(
        applied(&change),
        [pair("api", "false"), pair("web", "true")]
    );
    assert!(change.remove_labels.is_empty());
}

#[test]
fn keys_that_nobody_claims_go_whoever_wrote_them() {
    let claims = [claim("web", 1, "web", &[("a", FIT), ("b", Wish::Nothing)])];
    let change = planned(
        &node("a", &[("web", "false"), ("old", "true")]),
        &claims,
        NOTHING,
    );
    assert_eq!(change.remove_labels, BTreeSet::from([key("old")]));
    assert_eq!(applied(&change), [pair("web", "false")]);
    let change = planned(&node("b", &[("web", "true")]), &claims, NOTHING);
    assert_eq!(change.remove_labels, BTreeSet::from([key("web")]));
}

#[test]
fn of_two_watches_with_one_key_the_oldest_holds_it_and_the_next_takes_over() {
    let old = claim("zoo", 1, "web", &[("a", FIT)]);
    let young = claim("api", 2, "web", &[("a", UNFIT_WISH)]);
    let twin = claim("api2", 2, "web", &[]);
    let claims = [twin.clone(), young.clone(), old.clone()];
    let keys = Keys::of(&claims);
    assert_eq!(keys.lost_to(&young), Some(&old.watch));
    assert_eq!(keys.lost_to(&old), None);
    let there = node("a", &[]);
    assert_eq!(
        applied(&planned(&there, &claims, NOTHING)),
        [pair("web", "false")]
    );
    let claims = [twin.clone(), young.clone()];
    assert_eq!(
        applied(&planned(&there, &claims, NOTHING)),
        [pair("web", "true")]
    );
    assert_eq!(
        Keys::of(&claims).lost_to(&twin),
        Some(&young.watch),
        "by name"
    );
}

#[test]
fn a_changed_label_comes_first_and_the_old_one_goes_last() {
    let mut web = claim("web", 1, "new", &[("a", UNFIT_WISH)]);
    web.in_use = BTreeSet::from([key("old")]);
    let mut there = node("a", &[("old", "false")]);
    assert!(!is_shown_everywhere([&there], &web), "the Deployment waits");
    let change = planned(&there, &[web.clone()], NOTHING);
    assert_eq!(applied(&change), [pair("new", "true"), pair("old", "true")]);
    there.labels.extend(applied(&change));
    assert!(is_shown_everywhere([&there], &web), "now it may follow");
    web.in_use = BTreeSet::from([key("new")]);
    let change = planned(&there, &[web], NOTHING);
    assert_eq!(change.remove_labels, BTreeSet::from([key("old")]));
}

#[test]
fn whoever_asks_for_a_key_goes_before_whoever_still_uses_it() {
    let mut old = claim("web", 1, "new", &[]);
    old.in_use = BTreeSet::from([key("web")]);
    let young = claim("api", 2, "web", &[]);
    let claims = [old, young.clone()];
    assert_eq!(Keys::of(&claims).lost_to(&young), None);
}

#[test]
fn a_deleted_watch_is_released_when_its_key_is_nowhere_or_another_watchs() {
    let (bare, labelled) = (node("a", &[]), node("b", &[("web", "true")]));
    let mut tainted = node("c", &[]);
    tainted.taints = vec![taint(key("web"), TAINT_EFFECT)];
    assert!(is_released([&bare], &[], &key("web")));
    assert!(!is_released([&bare, &labelled], &[], &key("web")));
    assert!(!is_released([&bare, &tainted], &[], &key("web")));
    let other = claim("api", 2, "web", &[]);
    assert!(is_released([&labelled], &[other], &key("web")));
}

#[test]
fn an_unfit_node_has_the_taint_where_it_is_wanted_and_allowed() {
    let mut web = claim("web", 1, "web", &[("a", UNFIT_WISH), ("b", FIT)]);
    web.taint = true;
    let foreign = taint("dedicated".to_owned(), "NoSchedule");
    let ours = taint(key("web"), "PreferNoSchedule");
    let mut a = node("a", &[]);
    a.taints = vec![foreign.clone()];
    let claims = [web];
    let taints = |node: &NodeFacts, options| planned(node, &claims, options).taints;
    assert_eq!(taints(&a, ALL), Some(vec![foreign.clone(), ours.clone()]));
    assert_eq!(taints(&a, NOTHING), None, "not allowed");
    a.taints = vec![ours.clone(), foreign.clone()];
    assert_eq!(taints(&a, ALL), None, "in any order");
    assert_eq!(taints(&a, NOTHING), Some(vec![foreign.clone()]));
    let mut b = node("b", &[]);
    b.taints = vec![
        foreign.clone(),
        ours.clone(),
        taint(key("gone"), "NoSchedule"),
    ];
    assert_eq!(taints(&b, ALL), Some(vec![foreign]));
}

#[test]
fn the_annotation_is_carried_with_the_labels() {
    let claims = [claim("web", 1, "web", &[("a", FIT)])];
    let loads = BTreeMap::from([("a".to_owned(), "50".to_owned())]);
    let mut there = node("a", &[("web", "false")]);
    let found = changes([&there], &claims, &loads, ALL);
    let carried = found["a"].apply.clone().unwrap();
    assert_eq!(carried.annotations[BANDWIDTH_PERCENT_ANNOTATION], "50");
    assert_eq!(carried.labels.len(), 1, "with the labels, or they would go");
    there.annotations = carried.annotations;
    assert!(changes([&there], &claims, &loads, ALL).is_empty());
    let off = changes([&there], &claims, &loads, NOTHING);
    let carried = off["a"].apply.clone().unwrap();
    assert!(carried.annotations.is_empty() && carried.labels.len() == 1);
}

#[test]
fn nodes_that_become_fit_are_written_first() {
    let claims = [claim("web", 1, "web", &[("a", UNFIT_WISH), ("b", FIT)])];
    let (a, b) = (
        node("a", &[("web", "false")]),
        node("b", &[("web", "true")]),
    );
    let changes = changes([&a, &b], &claims, &BTreeMap::new(), NOTHING);
    let order: Vec<&str> = in_order(&changes)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(order, ["b", "a"]);
}

fn wish() -> impl Strategy<Value = Wish> {
    prop_oneof![Just(FIT), Just(UNFIT_WISH), Just(Wish::Nothing)]
}

fn any_claim() -> impl Strategy<Value = Claim> {
    let label = || prop_oneof![Just("x"), Just("y"), Just("z")];
    let wishes = btree_map("[ab]", wish(), 0..3);
    let fields = (
        "[a-e]",
        0_i64..3,
        label(),
        option::of(label()),
        wishes,
        any::<bool>(),
    );
    fields.prop_map(|(name, created, label, used, wishes, taint)| Claim {
        wishes,
        taint,
        in_use: used.map(key).into_iter().collect(),
        ..claim(&name, created, label, &[])
    })
}

/// What the API server does with a change.
fn write(node: &mut NodeFacts, change: &NodeChange) {
    if let Some(carried) = &change.apply {
        node.labels.extend(carried.labels.clone());
        node.annotations.remove(BANDWIDTH_PERCENT_ANNOTATION);
        node.annotations.extend(carried.annotations.clone());
    }
    node.labels
        .retain(|key, _| !change.remove_labels.contains(key));
    if let Some(taints) = &change.taints {
        node.taints.clone_from(taints);
    }
}

proptest! {
    #[test]
    fn one_write_is_enough_and_touches_nothing_of_others(
        claims in proptest::collection::vec(any_claim(), 0..5),
        labels in btree_map("[xyzo]", "true|false|maybe", 0..4),
        tainted in proptest::collection::vec("[xyzo]", 0..3),
        load in option::of(Just("50".to_owned())),
        allow_taints in any::<bool>(), annotate in any::<bool>(),
    ) {
        let labels: Vec<(&str, &str)> = labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let mut there = node("a", &labels);
        there.taints = tainted.iter().map(|label| taint(key(label), TAINT_EFFECT)).collect();
        there.taints.insert(0, taint("dedicated".to_owned(), "NoSchedule"));
        let loads: BTreeMap<String, String> = load.map(|load| ("a".to_owned(), load)).into_iter().collect();
        let options = Options { allow_taints, annotate };
        let mut reversed = claims.clone();
        reversed.reverse();
        let first = changes([&there], &claims, &loads, options);
        if let Some(change) = first.get("a") {
            let carried = change.apply.clone().unwrap_or_default();
            prop_assert!(carried.labels.keys().chain(&change.remove_labels).all(|key| label_of_unfit_key(key).is_some()));
            write(&mut there, change);
        }
        prop_assert_eq!(there.labels.get("zone").map(String::as_str), Some("a"));
        prop_assert_eq!(there.taints.first().map(|taint| taint.key.as_str()), Some("dedicated"));
        prop_assert!(changes([&there], &claims, &loads, options).is_empty(), "once is enough");
        // Watches of one name and age are one watch, so the order of others never matters.
        let mut names: Vec<_> = claims.iter().map(|claim| (&claim.watch, claim.created)).collect();
        names.sort();
        names.dedup();
        if names.len() == claims.len() {
            prop_assert!(changes([&there], &reversed, &loads, options).is_empty(), "in any order");
        }
    }
}
