//! The limits, one by one, and that they hold for any cluster.

use std::time::Duration;

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use super::*;
use crate::fixture;

const NOW: Moment = Moment::from_secs(10_000);

/// A cluster in which one pod should move: `a` is full, `b` is not.
struct Cluster {
    nodes: Vec<NodeFacts>,
    taken: BTreeMap<String, Resources>,
    outcome: Outcome,
    pods: Vec<PodFacts>,
    replicas: usize,
    last_move: Moment,
}

impl Cluster {
    fn new(pods: usize) -> Self {
        let verdicts = [
            verdict("a", State::Unfit, Why::Measured, Some(90.0)),
            verdict("b", State::Fit, Why::Measured, Some(10.0)),
        ];
        let pod = |number| pod(&format!("p{number}"), "a");
        Self {
            nodes: ["a", "b"].map(fixture::node).to_vec(),
            taken: ["a", "b"]
                .map(|node| (node.to_owned(), Resources::default()))
                .into(),
            outcome: Outcome {
                verdicts: verdicts.into(),
                ..Outcome::default()
            },
            pods: (0..pods).map(pod).collect(),
            replicas: pods,
            last_move: Moment::default(),
        }
    }

    fn moves(&self, rebalance: &Value) -> Vec<Move> {
        let mut spec = json!({ "mode": "evict" });
        if let (Some(spec), Some(more)) = (spec.as_object_mut(), rebalance.as_object()) {
            spec.extend(more.clone());
        }
        let settings = fixture::settings(&json!({ "rebalance": spec }));
        moves(&self.scene(), &settings, NOW)
    }

    fn scene(&self) -> Scene<'_> {
        Scene {
            nodes: &self.nodes,
            taken: &self.taken,
            outcome: &self.outcome,
            pods: &self.pods,
            replicas: self.replicas,
            last_move: self.last_move,
        }
    }

    fn names(&self, rebalance: &Value) -> Vec<String> {
        let moves = self.moves(rebalance);
        moves.into_iter().map(|one| one.pod).collect()
    }

    fn verdict(&mut self, node: &str) -> &mut Verdict {
        self.outcome.verdicts.get_mut(node).unwrap()
    }
}

fn verdict(node: &str, state: State, why: Why, load: Option<f64>) -> (String, Verdict) {
    let verdict = Verdict {
        state,
        why,
        since: Moment::default(),
        load,
        last_load: load,
        eligible: true,
    };
    (node.to_owned(), verdict)
}

fn pod(name: &str, node: &str) -> PodFacts {
    PodFacts {
        name: name.to_owned(),
        node: Some(node.to_owned()),
        created: 0,
        ready: true,
        ending: false,
        constraints: Constraints::default(),
        requests: Resources {
            cpu: 1,
            memory: 1,
            pods: 1,
        },
    }
}

#[test]
fn by_default_one_pod_moves_off_a_node_that_stays_unfit() {
    let cluster = Cluster::new(3);
    let expected = Move {
        pod: "p0".to_owned(),
        from: "a".to_owned(),
        could_go_to: "b".to_owned(),
    };
    assert_eq!(cluster.moves(&json!({})), std::slice::from_ref(&expected));
    assert_eq!(cluster.moves(&json!({ "mode": "dryRun" })), [expected]);
    assert_eq!(cluster.moves(&json!({ "mode": "never" })), []);
}

#[test]
fn a_node_must_have_been_unfit_for_long_enough() {
    let mut cluster = Cluster::new(1);
    cluster.verdict("a").since = Moment::from_secs(10_000 - 299);
    assert_eq!(cluster.moves(&json!({})), []);
    cluster.verdict("a").since = Moment::from_secs(10_000 - 300);
    assert_eq!(cluster.moves(&json!({})).len(), 1);
}

#[test]
fn a_node_that_is_not_known_to_be_full_is_not_emptied() {
    let mut cluster = Cluster::new(1);
    cluster.verdict("a").load = None;
    assert_eq!(cluster.moves(&json!({})), []);
    cluster.verdict("a").load = Some(50.0);
    assert_eq!(cluster.moves(&json!({})), []);
}

#[test]
fn after_a_move_the_next_waits_for_the_cooldown() {
    let mut cluster = Cluster::new(1);
    cluster.last_move = Moment::from_secs(10_000 - 299);
    assert_eq!(cluster.moves(&json!({})), []);
    assert_eq!(cluster.moves(&json!({ "cooldown": "299s" })).len(), 1);
}

#[test]
fn no_more_move_at_a_time_than_the_limits_say() {
    let mut cluster = Cluster::new(4);
    assert_eq!(cluster.names(&json!({ "maxTotal": 9 })), ["p0"]);
    assert_eq!(cluster.names(&json!({ "maxPerNode": 9 })), ["p0"]);
    assert_eq!(
        cluster.names(&json!({ "maxTotal": 2, "maxPerNode": 9 })),
        ["p0", "p1"]
    );
    cluster.pods[0].ending = true;
    let limits = json!({ "maxTotal": 3, "maxPerNode": 2 });
    assert_eq!(cluster.names(&limits), ["p1"], "one is on its way already");
}

#[test]
fn what_is_missing_counts_as_on_the_move() {
    let mut cluster = Cluster::new(3);
    cluster.pods[2].ready = false;
    assert_eq!(cluster.moves(&json!({})), []);
    cluster.pods[2].ready = true;
    cluster.replicas = 4;
    assert_eq!(
        cluster.moves(&json!({})),
        [],
        "the replacement has no place yet"
    );
}

#[test]
fn the_youngest_moves_first() {
    let mut cluster = Cluster::new(3);
    cluster.pods[1].created = 7;
    assert_eq!(cluster.names(&json!({})), ["p1"]);
}

#[test]
fn the_most_loaded_node_is_first() {
    let mut cluster = Cluster::new(1);
    cluster.nodes.push(fixture::node("c"));
    let worse = verdict("c", State::Unfit, Why::Measured, Some(95.0));
    cluster.outcome.verdicts.extend([worse]);
    cluster.pods.push(pod("q", "c"));
    cluster.replicas = 2;
    assert_eq!(cluster.names(&json!({})), ["q"]);
    assert_eq!(cluster.names(&json!({ "maxTotal": 2 })), ["q", "p0"]);
}

#[test]
fn a_pod_moves_only_where_it_fits() {
    let stays = |change: fn(&mut Cluster)| {
        let mut cluster = Cluster::new(1);
        change(&mut cluster);
        assert_eq!(cluster.moves(&json!({})), []);
    };
    stays(|cluster| cluster.nodes[1].unschedulable = true);
    stays(|cluster| cluster.nodes[1].ready = false);
    stays(|cluster| {
        let disk = ("disk".to_owned(), "ssd".to_owned());
        cluster.pods[0].constraints.node_selector = [disk].into();
    });
    stays(|cluster| {
        let taint = json!({ "key": "dedicated", "effect": "NoSchedule" });
        cluster.nodes[1].taints = vec![serde_json::from_value(taint).unwrap()];
    });
    stays(|cluster| {
        let affinity = json!({ "nodeSelectorTerms": [{
            "matchExpressions": [{ "key": "disk", "operator": "Exists" }],
        }] });
        cluster.pods[0].constraints.affinity = Some(serde_json::from_value(affinity).unwrap());
    });
    stays(|cluster| cluster.nodes[1].allocatable.cpu = 0);
    stays(|cluster| cluster.nodes[1].allocatable.memory = 0);
    stays(|cluster| cluster.nodes[1].allocatable.pods = 0);
    stays(|cluster| cluster.taken.clear());
}

#[test]
fn a_node_that_is_only_kept_fit_is_no_place_to_go() {
    let mut cluster = Cluster::new(1);
    *cluster.verdict("b") = verdict("b", State::Fit, Why::KeptFit, Some(70.0)).1;
    assert_eq!(cluster.moves(&json!({})), []);
    cluster.verdict("b").why = Why::Dwelling;
    assert_eq!(
        cluster.moves(&json!({})),
        [],
        "nor one that is about to be unfit"
    );
}

#[test]
fn two_pods_do_not_take_the_same_room() {
    let mut cluster = Cluster::new(2);
    cluster.nodes[1].allocatable.memory = 1;
    let limits = json!({ "maxTotal": 2, "maxPerNode": 2 });
    assert_eq!(cluster.names(&limits), ["p0"]);
}

proptest! {
    #[test]
    fn the_limits_hold_for_any_cluster(
        nodes in vec((any::<bool>(), 0.0..100.0_f64, 0_u128..6, 0_u64..600), 1..6),
        pods in vec((0_usize..6, any::<bool>(), prop::bool::weighted(0.1), prop::bool::weighted(0.9)), 0..20),
        replicas in 0_usize..20, max_per_node in 1_usize..4, max_total in 1_usize..6, since in 0_u64..600,
    ) {
        let name = |number: usize| format!("n{number}");
        let mut cluster = Cluster::new(0);
        cluster.nodes.clear();
        cluster.taken.clear();
        cluster.outcome.verdicts.clear();
        for (number, (fit, load, room, ago)) in nodes.iter().enumerate() {
            let mut node = fixture::node(&name(number));
            node.allocatable.memory = *room;
            cluster.nodes.push(node);
            cluster.taken.insert(name(number), Resources::default());
            let state = if *fit { State::Fit } else { State::Unfit };
            let mut verdict = verdict(&name(number), state, Why::Measured, Some(*load));
            verdict.1.since = Moment::from_secs(10_000 - ago);
            cluster.outcome.verdicts.extend([verdict]);
        }
        for (number, (node, young, ending, ready)) in pods.iter().enumerate() {
            let mut pod = pod(&format!("p{number}"), &name(*node));
            pod.created = i64::from(*young);
            pod.ending = *ending;
            pod.ready = *ready;
            cluster.pods.push(pod);
        }
        cluster.replicas = replicas;
        cluster.last_move = Moment::from_secs(10_000 - since);
        let mut settings = fixture::settings(&json!({ "rebalance": { "mode": "evict" } }));
        settings.rebalance.max_per_node = max_per_node;
        settings.rebalance.max_total = max_total;
        let moves = moves(&cluster.scene(), &settings, NOW);

        prop_assert!(moves.is_empty() || since >= 300);
        let ending = |node: Option<&str>| {
            let pods = cluster.pods.iter().filter(|pod| pod.ending);
            pods.filter(|pod| node.is_none() || pod.node.as_deref() == node).count()
        };
        prop_assert!(moves.is_empty() || moves.len() + ending(None) <= max_total);
        for node in cluster.nodes.iter().map(|node| node.name.as_str()) {
            let off = moves.iter().filter(|one| one.from == node).count();
            prop_assert!(off == 0 || off + ending(Some(node)) <= max_per_node);
            let onto = moves.iter().filter(|one| one.could_go_to == node).count();
            let room = cluster.nodes.iter().find(|one| one.name == node).unwrap().allocatable.memory;
            prop_assert!(u128::try_from(onto).unwrap() <= room);
        }
        for one in &moves {
            let from = &cluster.outcome.verdicts[&one.from];
            let to = &cluster.outcome.verdicts[&one.could_go_to];
            prop_assert_eq!((from.state, to.state), (State::Unfit, State::Fit));
            prop_assert!(NOW.since(from.since) >= Duration::from_mins(5));
            let pod = cluster.pods.iter().find(|pod| pod.name == one.pod).unwrap();
            prop_assert!(pod.ready && !pod.ending && pod.node.as_deref() == Some(one.from.as_str()));
        }
        // What is left of the Deployment after all moves is no less than the limit allows.
        let serving = cluster.pods.iter().filter(|pod| pod.ready && !pod.ending).count();
        prop_assert!(moves.is_empty() || serving - moves.len() + max_total >= replicas);
    }
}
