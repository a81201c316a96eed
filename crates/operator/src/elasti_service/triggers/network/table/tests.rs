//! The table with pods, nodes and a clock in the test's hand: what is said together, who is asked when, and a model that plays
//! whole histories.

use proptest::prelude::*;

use super::*;
use crate::elasti_service::triggers::network::{
    quiet::Counters, summary::PodCounters, wanted::Obstacle,
};

const INTERVAL: Duration = Duration::from_secs(30);
const COOLDOWN: Duration = Duration::from_mins(5);
const THRESHOLD: f64 = 100.0;
/// The time of nodes when that of the test begins.
const BEGAN: i64 = 1_000_000;

fn object(name: &str) -> ObjectId {
    ObjectId::new("default", name)
}

fn address(node: &str) -> SocketAddr {
    let number = node.trim_start_matches('n');
    format!("10.0.0.{number}:10250").parse().unwrap()
}

/// Pods as `a@n1`.
fn traffic(pods: &[&str]) -> Traffic {
    let place = |pod: &&str| {
        let (name, node) = pod.split_once('@').unwrap();
        let place = Place {
            name: name.to_owned(),
            node: node.into(),
            address: "10.1.0.1".parse().unwrap(),
        };
        (name.into(), place)
    };
    Traffic {
        threshold: THRESHOLD,
        cooldown: COOLDOWN,
        pods: pods.iter().map(place).collect(),
        stranger: None,
    }
}

fn counters(second: u64, bytes: u64) -> Counters {
    Counters {
        at: jiff::Timestamp::from_second(BEGAN + i64::try_from(second).unwrap()).unwrap(),
        received: bytes,
        sent: 0,
    }
}

/// A table that asks, with its clock.
struct Bench {
    table: Table,
    began: Instant,
    second: u64,
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self {
            table: Table::new(INTERVAL),
            began: Instant::now(),
            second: 0,
        };
        bench.table.set_active(true, bench.began);
        bench
    }

    fn now(&self) -> Instant {
        self.began + Duration::from_secs(self.second)
    }

    fn set(&mut self, name: &str, pods: &[&str]) -> bool {
        let wanted = Wanted::Traffic(traffic(pods));
        self.table.set(object(name), wanted, self.now())
    }

    fn verdict(&self, name: &str) -> Verdict {
        self.table.verdict(&object(name), self.now())
    }

    fn says(&self, name: &str) -> Triggers {
        self.verdict(name).triggers
    }

    fn why(&self, name: &str) -> String {
        self.verdict(name).why.unwrap_or_default()
    }

    /// Whom it asks now.
    fn due(&mut self) -> Vec<Asking> {
        let now = self.now();
        self.table.begin_round(now);
        let mut due: Vec<Asking> = std::iter::from_fn(|| self.table.next(now)).collect();
        due.sort_by(|a, b| a.node.cmp(&b.node));
        due
    }

    fn nodes(&mut self) -> Vec<String> {
        self.due().iter().map(|it| it.node.to_string()).collect()
    }

    fn answer(&mut self, asking: &Asking, pods: &[(&str, Counters)]) -> Vec<ObjectId> {
        let pod = |(uid, counters): &(&str, Counters)| {
            let found = PodCounters {
                counters: *counters,
                started: None,
            };
            ((*uid).to_owned(), found)
        };
        let told = Told {
            address: address(&asking.node),
            summary: pods.iter().map(pod).collect(),
        };
        self.table.answered(asking, Ok(told), self.now())
    }

    fn fail(&mut self, asking: &Asking) -> Vec<ObjectId> {
        let why = "it is on fire".to_owned();
        self.table.answered(asking, Err(why), self.now())
    }

    /// A round in which all nodes say the same bytes of all pods.
    fn round(&mut self, pods: &[&str], bytes: u64) {
        let counters = counters(self.second, bytes);
        for asking in self.due() {
            let all: Vec<_> = pods.iter().map(|pod| (*pod, counters)).collect();
            self.answer(&asking, &all);
        }
    }

    /// Rounds without any traffic, for so long.
    fn quiet_for(&mut self, pods: &[&str], seconds: u64, bytes: u64) {
        for _ in 0..seconds / 30 {
            self.second += 30;
            self.round(pods, bytes);
        }
    }
}

#[test]
fn idle_when_every_pod_was_quiet_for_the_whole_cooldown() {
    let mut bench = Bench::new();
    bench.set("web", &["a@n1", "b@n2"]);
    assert_eq!(bench.verdict("web"), Verdict::unheard());
    bench.round(&["a", "b"], 5000);
    assert_eq!(bench.verdict("web"), Verdict::new(Triggers::Unknown, None));
    bench.quiet_for(&["a", "b"], 270, 5000);
    assert_eq!(bench.says("web"), Triggers::Unknown);
    bench.quiet_for(&["a", "b"], 30, 5000);
    assert_eq!(bench.verdict("web"), Verdict::new(Triggers::Idle, None));

    // 100 bytes in each second of the last round.
    bench.second += 30;
    bench.round(&["a", "b"], 8000);
    assert_eq!(bench.says("web"), Triggers::Busy);
    assert_eq!(
        bench.why("web"),
        "the traffic of the pod a is not below 100 bytes per second"
    );
    // That it is quiet again is not busy any more, and idle a cooldown later.
    bench.quiet_for(&["a", "b"], 270, 8000);
    assert_eq!(bench.verdict("web"), Verdict::new(Triggers::Unknown, None));
    bench.quiet_for(&["a", "b"], 30, 8000);
    assert_eq!(bench.says("web"), Triggers::Idle);
}

#[test]
fn one_busy_pod_is_enough_and_one_that_is_not_known_as_well() {
    let mut bench = Bench::new();
    bench.set("web", &["a@n1", "b@n2"]);
    bench.round(&["a", "b"], 0);
    bench.quiet_for(&["a"], 300, 0);
    assert_eq!(bench.says("web"), Triggers::Unknown, "b is not told of");
    assert_eq!(
        bench.why("web"),
        "the kubelet of the node n2 has nothing new to tell of the traffic of the pod b"
    );
    bench.second += 30;
    for asking in bench.due() {
        let busy = counters(bench.second, 1_000_000);
        bench.answer(&asking, &[("a", busy)]);
    }
    assert_eq!(
        bench.says("web"),
        Triggers::Busy,
        "which does not matter now"
    );
}

#[test]
fn a_pod_that_no_kubelet_counts_is_named_after_a_while() {
    let mut bench = Bench::new();
    bench.set("web", &["a@n1"]);
    bench.round(&[], 0);
    bench.quiet_for(&[], 120, 0);
    assert_eq!(bench.verdict("web"), Verdict::new(Triggers::Unknown, None));
    bench.quiet_for(&[], 30, 0);
    assert_eq!(
        bench.why("web"),
        "the kubelet of the node n1 does not tell the traffic of the pod a; does its container runtime count it?"
    );
}

#[test]
fn an_error_is_told_with_its_node_and_is_over_with_the_next_answer() {
    let mut bench = Bench::new();
    bench.set("web", &["a@n1", "b@n2"]);
    bench.round(&["a", "b"], 0);
    bench.quiet_for(&["a", "b"], 300, 0);
    assert_eq!(bench.says("web"), Triggers::Idle);
    bench.second += 30;
    let due = bench.due();
    assert_eq!(due[1].address, Some(address("n2")));
    bench.answer(&due[0], &[("a", counters(bench.second, 0))]);
    assert_eq!(bench.fail(&due[1]), [object("web")]);
    assert_eq!(bench.says("web"), Triggers::Unknown);
    assert_eq!(
        bench.why("web"),
        "the kubelet of the node n2: it is on fire"
    );
    // One round that failed is no gap; where it is, is asked again.
    bench.second += 30;
    let due = bench.due();
    assert_eq!(due[1].address, None);
    for asking in due {
        let now = counters(bench.second, 0);
        bench.answer(&asking, &[("a", now), ("b", now)]);
    }
    assert_eq!(bench.says("web"), Triggers::Idle);
}

#[test]
fn a_gap_makes_it_wait_for_a_whole_cooldown_once_more() {
    let mut bench = Bench::new();
    bench.set("web", &["a@n1"]);
    bench.round(&["a"], 0);
    bench.quiet_for(&["a"], 300, 0);
    assert_eq!(bench.says("web"), Triggers::Idle);
    bench.second += 121;
    bench.round(&["a"], 0);
    assert_eq!(bench.verdict("web"), Verdict::new(Triggers::Unknown, None));
    bench.quiet_for(&["a"], 270, 0);
    assert_eq!(bench.says("web"), Triggers::Unknown);
    bench.quiet_for(&["a"], 30, 0);
    assert_eq!(bench.says("web"), Triggers::Idle);
}

#[test]
fn a_pod_that_was_busy_is_remembered_when_it_has_gone() {
    let mut bench = Bench::new();
    bench.set("web", &["a@n1", "b@n1"]);
    bench.round(&["a", "b"], 0);
    bench.quiet_for(&["a", "b"], 300, 0);
    bench.second += 30;
    let due = bench.due();
    let (quiet, busy) = (counters(bench.second, 0), counters(bench.second, 1_000_000));
    bench.answer(&due[0], &[("a", quiet), ("b", busy)]);
    assert_eq!(bench.says("web"), Triggers::Busy);
    // Somebody scales it from two to one.
    assert!(bench.set("web", &["a@n1"]));
    assert_eq!(bench.says("web"), Triggers::Unknown);
    bench.quiet_for(&["a"], 270, 0);
    assert_eq!(bench.says("web"), Triggers::Unknown);
    bench.quiet_for(&["a"], 30, 0);
    assert_eq!(bench.says("web"), Triggers::Idle);
}

#[test]
fn a_new_pod_is_judged_from_its_start() {
    let mut bench = Bench::new();
    bench.set("web", &["a@n1"]);
    bench.second = 20;
    let due = bench.due();
    let found = PodCounters {
        counters: counters(20, 1000),
        started: Some(counters(0, 0).at),
    };
    let told = Told {
        address: address("n1"),
        summary: Summary::from([("a".to_owned(), found)]),
    };
    bench.table.answered(&due[0], Ok(told), bench.now());
    bench.quiet_for(&["a"], 270, 1000);
    assert_eq!(bench.says("web"), Triggers::Unknown, "290 s");
    bench.quiet_for(&["a"], 30, 1000);
    assert_eq!(bench.says("web"), Triggers::Idle, "320 s");
}

#[test]
fn without_pods_nobody_is_busy_and_nobody_is_idle() {
    let mut bench = Bench::new();
    bench.set("web", &[]);
    assert_eq!(bench.verdict("web"), Verdict::new(Triggers::Unknown, None));
    assert_eq!(bench.nodes(), [""; 0]);
}

#[test]
fn what_cannot_be_used_asks_nobody_and_is_never_idle() {
    let mut bench = Bench::new();
    bench.set("web", &["a@n1"]);
    let unusable = Wanted::Unusable(Obstacle::HostNetwork);
    bench.table.set(object("web"), unusable, bench.now());
    assert_eq!(bench.verdict("web"), Verdict::new(Triggers::Unknown, None));
    assert_eq!(bench.nodes(), [""; 0]);
    bench.table.set(object("web"), Wanted::Nothing, bench.now());
    assert_eq!(bench.says("web"), Triggers::Absent);
    assert_eq!(bench.says("who"), Triggers::Absent);
}

#[test]
fn an_address_of_nobody_and_one_of_the_node_itself_are_never_idle() {
    let mut bench = Bench::new();
    let mut strange = traffic(&["a@n1"]);
    strange.stranger = "10.9.9.9".parse().ok();
    let mut on_host = traffic(&["a@n1"]);
    let place = on_host.pods.get_mut("a").unwrap();
    place.address = address("n1").ip();
    for (name, traffic) in [("strange", strange), ("on-host", on_host)] {
        bench
            .table
            .set(object(name), Wanted::Traffic(traffic), bench.now());
    }
    bench.round(&["a"], 0);
    bench.quiet_for(&["a"], 330, 0);
    assert_eq!(bench.says("strange"), Triggers::Unknown);
    assert!(bench.why("strange").contains("10.9.9.9"));
    assert_eq!(bench.says("on-host"), Triggers::Unknown);
    assert!(
        bench
            .why("on-host")
            .contains("on the network of its node n1")
    );
}

#[test]
fn a_node_is_asked_once_in_a_round_for_all_who_have_pods_there() {
    let mut bench = Bench::new();
    for number in 0..100 {
        bench.set(&format!("web-{number}"), &["a@n1", "b@n2"]);
    }
    assert_eq!(bench.nodes(), ["n1", "n2"]);
    assert_eq!(bench.nodes(), [""; 0]);
    let due = [asking("n1"), asking("n2")];
    for asking in &due {
        bench.answer(asking, &[]);
    }
    // Another one, or one that went and came again, waits for the next round; a new node does not.
    bench.second = 10;
    bench.table.forget(&object("web-1"));
    bench.set("web-1", &["c@n1", "d@n3"]);
    bench.set("late", &["e@n1"]);
    assert_eq!(bench.nodes(), ["n3"]);
    bench.second = 30;
    assert_eq!(bench.nodes(), ["n1", "n2"], "n3 is still under way");
}

fn asking(node: &str) -> Asking {
    Asking {
        node: node.into(),
        address: None,
        asked: Instant::now(),
    }
}

#[test]
fn whom_nobody_needs_any_more_is_not_asked_and_not_kept() {
    let mut bench = Bench::new();
    bench.set("web", &["a@n1", "b@n2"]);
    bench.set("blog", &["c@n2"]);
    bench.table.forget(&object("web"));
    assert_eq!(bench.nodes(), ["n2"]);
    bench.answer(&asking("n2"), &[]);
    bench.table.forget(&object("blog"));
    bench.second = 30;
    assert_eq!(bench.nodes(), [""; 0]);
    assert!(bench.table.nodes.is_empty() && bench.table.objects.is_empty());
}

#[test]
fn only_so_many_are_asked_at_a_time() {
    let mut bench = Bench::new();
    let pods: Vec<String> = (0..40)
        .map(|number| format!("p{number}@n{number}"))
        .collect();
    let pods: Vec<&str> = pods.iter().map(String::as_str).collect();
    bench.set("web", &pods);
    let mut asked = BTreeSet::new();
    let mut due = bench.due();
    assert_eq!(due.len(), PARALLEL);
    while let Some(asking) = due.pop() {
        assert!(asked.insert(asking.node.to_string()), "twice");
        bench.answer(&asking, &[]);
        due.extend(bench.due());
        assert!(due.len() <= PARALLEL);
    }
    assert_eq!(asked.len(), 40);
}

#[test]
fn nobody_is_asked_before_it_leads() {
    let mut bench = Bench::new();
    bench.table.set_active(false, bench.began);
    bench.set("web", &["a@n1"]);
    assert_eq!(bench.nodes(), [""; 0]);
    bench.table.set_active(true, bench.began);
    assert_eq!(bench.nodes(), ["n1"]);
}

#[test]
fn another_threshold_begins_anew_and_another_cooldown_does_not() {
    let mut bench = Bench::new();
    bench.set("web", &["a@n1"]);
    bench.round(&["a"], 0);
    bench.quiet_for(&["a"], 300, 0);
    let mut changed = traffic(&["a@n1"]);
    changed.cooldown = Duration::from_mins(1);
    bench
        .table
        .set(object("web"), Wanted::Traffic(changed.clone()), bench.now());
    assert_eq!(bench.says("web"), Triggers::Idle);
    changed.threshold = 1.0;
    bench
        .table
        .set(object("web"), Wanted::Traffic(changed), bench.now());
    assert_eq!(bench.says("web"), Triggers::Unknown);
}

/// What happens to a node in a round.
#[derive(Clone, Copy, Debug)]
enum Round {
    /// It answers; each of its pods had so many bytes per second since the round before.
    Answers([u64; 2]),
    /// It answers what it has answered before.
    Repeats,
    /// It answers, and has forgotten the pods' counters.
    Forgets,
    /// It does not answer.
    Fails,
}

fn rounds() -> impl Strategy<Value = Vec<[Round; 3]>> {
    let bytes = prop_oneof![12 => 0_u64..99, 1 => 100_u64..200];
    let round = prop_oneof![
        30 => [bytes.clone(), bytes].prop_map(Round::Answers),
        2 => Just(Round::Repeats),
        1 => Just(Round::Forgets),
        1 => Just(Round::Fails),
    ];
    prop::collection::vec([round.clone(), round.clone(), round], 1..60)
}

/// Three nodes with two pods each, all of one object, as they really were.
#[derive(Debug, Default)]
struct Node {
    second: u64,
    bytes: [u64; 2],
    /// Since when each step of each pod was below the threshold and none was too long.
    quiet_since: Option<[u64; 2]>,
    is_busy: [bool; 2],
    fails: bool,
}

const PODS: [[&str; 2]; 3] = [["a", "b"], ["c", "d"], ["e", "f"]];

impl Node {
    fn hear(&mut self, round: Round, second: u64) {
        self.fails = matches!(round, Round::Fails);
        match round {
            Round::Fails | Round::Repeats => {}
            Round::Forgets => {
                self.bytes = self.bytes.map(|bytes| bytes / 2);
                self.quiet_since = Some([second; 2]);
                self.is_busy = [false; 2];
                self.second = second;
            }
            Round::Answers(rates) => {
                let step = second - self.second;
                let known = self.quiet_since.filter(|_| step <= 120);
                for (pod, rate) in rates.iter().enumerate() {
                    self.bytes[pod] += rate * step;
                    self.is_busy[pod] = known.is_some() && *rate >= 100;
                }
                self.quiet_since = Some(match known {
                    Some(since) => {
                        let since = |pod: usize| {
                            if self.is_busy[pod] {
                                second
                            } else {
                                since[pod]
                            }
                        };
                        [since(0), since(1)]
                    }
                    None => [second; 2],
                });
                self.second = second;
            }
        }
    }
}

proptest! {
    /// Idle is only what was quiet in truth; and no order in which nodes answer makes a difference.
    #[test]
    fn idle_is_only_what_was_quiet_in_truth(
        rounds in rounds(),
        orders in prop::collection::vec(prop::sample::select(vec![[0, 1, 2], [2, 1, 0], [1, 2, 0]]), 60),
    ) {
        let all: Vec<String> = PODS
            .iter()
            .enumerate()
            .flat_map(|(node, pods)| pods.map(|pod| format!("{pod}@n{node}")))
            .collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let mut benches = [Bench::new(), Bench::new()];
        // So many that they can be halved in each round.
        let mut nodes: [Node; 3] = std::array::from_fn(|_| Node { bytes: [1 << 62; 2], ..Node::default() });
        for bench in &mut benches {
            bench.set("web", &all);
        }
        for (number, round) in rounds.iter().enumerate() {
            let second = 30 * u64::try_from(number).unwrap();
            for (node, round) in nodes.iter_mut().zip(round) {
                // That it forgets or repeats what was never told is an answer like any other.
                let round = match round {
                    Round::Forgets | Round::Repeats if node.quiet_since.is_none() => Round::Answers([0; 2]),
                    round => *round,
                };
                node.hear(round, second);
            }
            for (bench, order) in benches.iter_mut().zip([[0, 1, 2], orders[number]]) {
                bench.second = second;
                let due = bench.due();
                prop_assert_eq!(due.len(), 3);
                for at in order {
                    let node = &nodes[at];
                    if node.fails {
                        bench.fail(&due[at]);
                    } else {
                        let of = |pod: usize| (PODS[at][pod], counters(node.second, node.bytes[pod]));
                        bench.answer(&due[at], &[of(0), of(1)]);
                    }
                }
            }
            prop_assert_eq!(benches[0].verdict("web"), benches[1].verdict("web"));
            let is_quiet = |node: &Node| {
                let since = node.quiet_since.unwrap_or([second; 2]);
                !node.fails
                    && second - node.second <= 120
                    && since.iter().all(|since| node.second - since >= 300)
            };
            let found = benches[0].says("web");
            if found == Triggers::Idle {
                prop_assert!(nodes.iter().all(is_quiet), "{:?}", nodes);
            }
            let is_busy = |node: &Node| !node.fails && second - node.second <= 120 && node.is_busy.contains(&true);
            prop_assert_eq!(found == Triggers::Busy, nodes.iter().any(is_busy), "{:?}", nodes);
        }
    }

    /// Quiet all the time, it is idle a cooldown later: nothing that is merely random makes it wait longer.
    #[test]
    fn what_is_quiet_falls_idle(rates in prop::collection::vec(0_u64..100, 11..30)) {
        let mut bench = Bench::new();
        bench.set("web", &["a@n1"]);
        let mut bytes = 0;
        for (number, rate) in rates.iter().enumerate() {
            bench.second = 30 * u64::try_from(number).unwrap();
            bench.round(&["a"], bytes);
            prop_assert_eq!(bench.says("web") == Triggers::Idle, number >= 10);
            bytes += rate * 30;
        }
    }
}
