//! The machine, told with values: single rules by example, and by property that nobody is ready who should not be.

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;
use weir_api::hold::defaults::EARLY_READINESS_INTERVAL;

use super::*;
use crate::{
    pod::{Action, Check, ContainerView, Starting},
    view::{PortView, Protocol},
};

const PACE: Pace = Pace {
    at_a_time: 4,
    per_second: 100,
    at_once: 5,
    longest: Duration::from_secs(1),
};
const PERIOD: Duration = Duration::from_secs(10);
const NOBODY: [u16; 0] = [];

fn probe(port: u16) -> Probe {
    Probe {
        port,
        action: Action::Tcp,
        initial_delay: Duration::ZERO,
        period: PERIOD,
        timeout: Duration::from_secs(5),
        successes: 1,
        failures: 3,
    }
}

fn ask(probe: Probe) -> Check {
    Check::Ask(Arc::new(probe))
}

fn container(run: &str) -> ContainerView {
    ContainerView {
        run: Some(run.into()),
        is_started: false,
        is_ready: false,
        startup: None,
        readiness: Some(ask(probe(2))),
    }
}

fn id(number: u8) -> ServiceId {
    ServiceId::new("shop", &number.to_string())
}

fn uid(number: u8) -> Uid {
    number.to_string().into()
}

fn service(number: u8, pods: &[(u8, Vec<ContainerView>)]) -> Change {
    let starting = pods.iter().map(|(pod, containers)| {
        let address = IpAddr::V4(Ipv4Addr::new(192, 0, 2, *pod));
        Starting {
            address: SocketAddr::new(address, 8080),
            pod: Arc::new(PodView {
                uid: uid(*pod),
                addresses: vec![address],
                containers: containers.clone(),
            }),
        }
    });
    Change::Set(Arc::new(ServiceView {
        id: id(number),
        held_by: None,
        target: "Deployment-web".into(),
        ports: vec![PortView {
            name: "".into(),
            number: 80,
            resolver_port: None,
            protocol: Protocol::Sniff,
            endpoints: Arc::default(),
            starting: starting.collect(),
        }],
        probes: Arc::default(),
        behind: false,
        switched: false,
    }))
}

/// A machine that holds requests for service 0 with one pod, and its clock.
struct Bench {
    machine: Machine,
    now: Instant,
}

impl Bench {
    fn new(containers: Vec<ContainerView>) -> Self {
        let mut bench = Self {
            machine: Machine::new(PACE),
            now: Instant::now(),
        };
        bench.machine.hold(&id(0));
        bench.pod(containers);
        bench
    }

    fn pod(&mut self, containers: Vec<ContainerView>) {
        self.machine
            .apply(&service(0, &[(1, containers)]), self.now);
    }

    /// The ports that are asked now, each with this outcome.
    fn ask(&mut self, outcome: Outcome) -> Vec<u16> {
        let due = self.machine.due(self.now);
        for ask in &due {
            self.machine.answered(ask.ticket, outcome);
        }
        due.iter().map(|ask| ask.probe.port).collect()
    }

    fn succeeds(&mut self) -> Vec<u16> {
        self.ask(Outcome::Succeeded)
    }

    fn fails(&mut self) -> Vec<u16> {
        self.ask(Outcome::Failed)
    }

    fn wait(&mut self, span: Duration) {
        self.now += span;
    }

    /// What is told: ready, not ready, or nothing.
    fn told(&mut self) -> Option<bool> {
        let news = self.machine.take_news();
        news.first().map(|(_, pods)| pods.contains(&uid(1)))
    }
}

#[test]
fn a_pod_is_asked_every_interval_and_is_ready_at_the_first_success() {
    let mut bench = Bench::new(vec![container("a")]);
    for _ in 0..5 {
        assert_eq!(bench.fails(), [2]);
        assert_eq!(bench.fails(), NOBODY);
        bench.wait(EARLY_READINESS_INTERVAL);
    }
    assert_eq!(bench.told(), None);
    assert_eq!(bench.succeeds(), [2]);
    assert_eq!(bench.told(), Some(true));
    // As often as the kubelet would, though nobody waits any more.
    bench.machine.released(&id(0));
    assert_eq!(bench.machine.next_due(), Some(bench.now + PERIOD));
    bench.wait(PERIOD);
    assert_eq!(bench.succeeds(), [2]);
    assert_eq!(bench.told(), None);
    // It is listed as ready: no concern of ours.
    bench.machine.apply(&service(0, &[]), bench.now);
    assert_eq!(bench.told(), Some(false));
    assert!(bench.machine.is_empty());
}

#[test]
fn who_cannot_be_reached_is_asked_seldom() {
    let mut bench = Bench::new(vec![container("a")]);
    assert_eq!(bench.ask(Outcome::Unreachable), [2]);
    bench.wait(Duration::from_millis(999));
    assert_eq!(bench.succeeds(), NOBODY);
    bench.wait(Duration::from_millis(1));
    assert_eq!(bench.succeeds(), [2]);
}

#[test]
fn nobody_is_asked_for_whom_nothing_is_held() {
    let mut bench = Bench::new(vec![container("a")]);
    bench.machine.released(&id(0));
    assert_eq!((bench.succeeds(), bench.machine.next_due()), (vec![], None));
    bench.machine.hold(&id(0));
    assert_eq!(bench.succeeds(), [2]);
}

#[test]
fn the_startup_probe_comes_first_and_delays_are_kept() {
    let startup = Probe {
        initial_delay: Duration::from_secs(1),
        ..probe(1)
    };
    let readiness = Probe {
        initial_delay: Duration::from_secs(3),
        ..probe(2)
    };
    let starts = ContainerView {
        startup: Some(ask(startup)),
        readiness: Some(ask(readiness)),
        ..container("a")
    };
    let mut bench = Bench::new(vec![starts.clone()]);
    let began = bench.now;
    assert_eq!(bench.succeeds(), NOBODY);
    bench.wait(Duration::from_secs(1));
    assert_eq!(bench.fails(), [1]);
    bench.wait(EARLY_READINESS_INTERVAL);
    assert_eq!(bench.succeeds(), [1]);
    assert_eq!(
        bench.machine.next_due(),
        Some(began + Duration::from_secs(3))
    );
    bench.wait(Duration::from_secs(2));
    assert_eq!(bench.succeeds(), [2]);
    assert_eq!(bench.told(), Some(true));

    // The kubelet has seen it start; where it is all there is, it says all.
    let seen = ContainerView {
        is_started: true,
        startup: Some(Check::Kubelet),
        ..starts
    };
    let mut bench = Bench::new(vec![seen]);
    bench.wait(Duration::from_secs(3));
    assert_eq!(bench.succeeds(), [2]);
    let only = ContainerView {
        startup: Some(ask(probe(1))),
        readiness: None,
        ..container("a")
    };
    let mut bench = Bench::new(vec![only]);
    assert_eq!((bench.succeeds(), bench.told()), (vec![1], Some(true)));
}

#[test]
fn a_startup_probe_that_comes_late_says_nothing_of_readiness() {
    let starts = ContainerView {
        startup: Some(ask(probe(1))),
        ..container("a")
    };
    let mut bench = Bench::new(vec![starts.clone()]);
    let late = bench.machine.due(bench.now);
    assert_eq!(late[0].probe.port, 1);
    let is_started = true;
    bench.pod(vec![ContainerView {
        is_started,
        ..starts
    }]);
    bench.machine.answered(late[0].ticket, Outcome::Succeeded);
    assert_eq!((bench.told(), bench.fails()), (None, vec![2]));
}

#[test]
fn several_successes_are_as_far_apart_as_the_kubelets() {
    let thrice = Probe {
        successes: 3,
        ..probe(2)
    };
    let view = ContainerView {
        readiness: Some(ask(thrice)),
        ..container("a")
    };
    let mut bench = Bench::new(vec![view]);
    for outcome in [true, true, false, true, true, true] {
        assert_eq!(bench.told(), None);
        if outcome {
            assert_eq!(bench.succeeds(), [2]);
            assert_eq!(bench.succeeds(), NOBODY);
            bench.wait(PERIOD);
        } else {
            assert_eq!(bench.fails(), [2]);
            bench.wait(EARLY_READINESS_INTERVAL);
        }
    }
    assert_eq!(bench.told(), Some(true));
}

#[test]
fn every_container_counts_and_the_kubelets_word_for_what_cannot_be_asked() {
    let exec = ContainerView {
        readiness: Some(Check::Kubelet),
        ..container("b")
    };
    let ready = ContainerView {
        is_ready: true,
        ..exec.clone()
    };
    let mut bench = Bench::new(vec![container("a"), exec]);
    assert_eq!((bench.succeeds(), bench.told()), (vec![2], None));
    bench.pod(vec![container("a"), ready.clone()]);
    assert_eq!(bench.told(), Some(true));
    // It does not run.
    let stopped = ContainerView {
        run: None,
        ..container("b")
    };
    bench.pod(vec![container("a"), stopped]);
    assert_eq!(bench.told(), Some(false));

    // Said of a node that is lost, perhaps: nobody has answered.
    let mut bench = Bench::new(vec![ready]);
    assert_eq!((bench.succeeds(), bench.told()), (vec![], None));
}

#[test]
fn who_is_ready_by_the_kubelets_word_is_asked_too_without_its_delay_while_the_slice_is_late() {
    let delayed = Probe {
        initial_delay: Duration::from_secs(30),
        ..probe(2)
    };
    let starts = ContainerView {
        readiness: Some(ask(delayed)),
        ..container("a")
    };
    let mut bench = Bench::new(vec![starts.clone()]);
    assert_eq!((bench.succeeds(), bench.told()), (vec![], None));
    let ready = ContainerView {
        is_ready: true,
        ..starts
    };
    bench.pod(vec![ready]);
    assert_eq!((bench.succeeds(), bench.told()), (vec![2], Some(true)));
}

#[test]
fn a_container_that_starts_again_is_asked_anew() {
    let mut bench = Bench::new(vec![container("a")]);
    assert_eq!((bench.succeeds(), bench.told()), (vec![2], Some(true)));
    bench.pod(vec![container("b")]);
    assert_eq!(bench.told(), Some(false));
    // An answer of the last run says nothing of this one.
    let late = bench.machine.due(bench.now);
    assert_eq!(late.len(), 1);
    bench.pod(vec![container("c")]);
    bench.machine.answered(late[0].ticket, Outcome::Succeeded);
    assert_eq!(bench.told(), None);
    assert_eq!((bench.succeeds(), bench.told()), (vec![2], Some(true)));
}

#[test]
fn a_ready_pod_that_fails_as_often_as_the_kubelet_bears_is_not_any_more() {
    let mut bench = Bench::new(vec![container("a")]);
    assert_eq!((bench.succeeds(), bench.told()), (vec![2], Some(true)));
    bench.machine.released(&id(0));
    for _ in 0..3 {
        assert_eq!(bench.told(), None);
        bench.wait(PERIOD);
        assert_eq!(bench.fails(), [2]);
    }
    assert_eq!(bench.told(), Some(false));
    // Requests may wait again, so it is asked on until somebody says that none do.
    assert_eq!(bench.machine.held().count(), 1);
    bench.wait(EARLY_READINESS_INTERVAL);
    assert_eq!((bench.succeeds(), bench.told()), (vec![2], Some(true)));
}

#[test]
fn a_pod_of_two_services_is_asked_once_and_told_to_both() {
    let mut bench = Bench::new(vec![container("a")]);
    let other = service(1, &[(1, vec![container("a")])]);
    bench.machine.apply(&other, bench.now);
    assert_eq!(bench.succeeds(), [2]);
    let news = bench.machine.take_news();
    let told: Vec<_> = news.iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(told, [id(0), id(1)]);
    bench.machine.apply(&Change::Gone(id(0)), bench.now);
    assert_eq!(bench.machine.take_news(), []);
    bench.machine.apply(&Change::Gone(id(1)), bench.now);
    assert!(bench.machine.is_empty());
}

#[test]
fn where_many_start_all_are_asked_less_often_and_none_is_left_behind() {
    let mut machine = Machine::new(PACE);
    let mut now = Instant::now();
    let pods: Vec<_> = (0..50).map(|pod| (pod, vec![container("a")])).collect();
    machine.apply(&service(0, &pods), now);
    machine.hold(&id(0));
    let end = now + Duration::from_secs(5);
    let mut asked: Vec<Instant> = Vec::new();
    let mut of_pod: BTreeMap<SocketAddr, usize> = BTreeMap::new();
    while now < end {
        let due = machine.due(now);
        assert!((1..=PACE.at_a_time).contains(&due.len()), "{}", due.len());
        for ask in due {
            asked.push(now);
            *of_pod.entry(ask.address).or_default() += 1;
            machine.answered(ask.ticket, Outcome::Failed);
        }
        now = machine.next_due().unwrap().max(now);
    }
    // Fifty pods each 50 ms would be a thousand in a second.
    assert!((495..=505).contains(&asked.len()), "{}", asked.len());
    for from in &asked {
        let second = asked
            .iter()
            .filter(|at| *at >= from && **at < *from + Duration::from_secs(1));
        assert!(second.count() <= 105);
    }
    assert!(
        of_pod.values().all(|count| (9..=11).contains(count)),
        "{of_pod:?}"
    );
}

#[derive(Clone, Debug)]
enum Step {
    /// A service has these pods, each with the runs and words of its containers.
    Set(u8, Vec<(u8, Vec<ContainerView>)>),
    Gone(u8),
    Hold(u8),
    Released(u8),
    Ask,
    Answer(usize, Outcome),
    Wait(u64),
}

fn checks() -> impl Strategy<Value = (Option<Check>, Option<Check>)> {
    let delayed = |port, successes| Probe {
        initial_delay: Duration::from_millis(100),
        successes,
        period: Duration::from_millis(100),
        failures: 2,
        ..probe(port)
    };
    let startup = prop_oneof![
        2 => Just(None),
        2 => Just(Some(ask(delayed(1, 1)))),
        1 => Just(Some(Check::Kubelet)),
    ];
    let readiness = prop_oneof![
        1 => Just(None),
        3 => Just(Some(ask(delayed(2, 1)))),
        1 => Just(Some(ask(delayed(2, 2)))),
        1 => Just(Some(Check::Kubelet)),
    ];
    (startup, readiness)
}

/// What a pod is made of never changes: its probes are drawn once, its runs and the kubelet's words at each step.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pods = proptest::collection::vec(proptest::collection::vec(checks(), 1..3), 3..4);
    pods.prop_flat_map(|pods| {
        let pod = (0..3_u8).prop_flat_map(move |pod| {
            let checks = pods[usize::from(pod)].clone();
            let words = proptest::collection::vec(
                (proptest::option::weighted(0.8, 0..2_u8), 0..8_u8),
                checks.len(),
            );
            words.prop_map(move |words| {
                let views = checks.iter().zip(words).map(|(checks, (run, said))| {
                    let (startup, readiness) = checks.clone();
                    ContainerView {
                        is_started: run.is_some() && said < 3,
                        is_ready: run.is_some() && said < 1,
                        run: run.map(|run| run.to_string().into()),
                        startup,
                        readiness,
                    }
                });
                (pod, views.collect::<Vec<_>>())
            })
        });
        let outcome = prop_oneof![
            4 => Just(Outcome::Succeeded),
            2 => Just(Outcome::Failed),
            1 => Just(Outcome::Unreachable),
        ];
        let step = prop_oneof![
            2 => (0..2_u8, proptest::collection::vec(pod, 0..3)).prop_map(|(id, pods)| Step::Set(id, pods)),
            1 => (0..2_u8).prop_map(Step::Gone),
            2 => (0..2_u8).prop_map(Step::Hold),
            1 => (0..2_u8).prop_map(Step::Released),
            6 => Just(Step::Ask),
            6 => (0..4_usize, outcome).prop_map(|(which, outcome)| Step::Answer(which, outcome)),
            4 => (0..200_u64).prop_map(Step::Wait),
        ];
        proptest::collection::vec(step, 0..120)
    })
}

/// What has been seen of a container's present run, counted as the kubelet would.
#[derive(Clone, Debug)]
struct Seen {
    view: ContainerView,
    since: Instant,
    has_started: bool,
    successes: u32,
    failures: u32,
    has_passed: bool,
}

/// A container of a pod, its run, and the port that was asked.
type Asked = (Uid, usize, Option<Arc<str>>, u16);

/// What should be so, found out in another way.
#[derive(Default)]
struct World {
    listed: BTreeMap<ServiceId, BTreeSet<Uid>>,
    pods: BTreeMap<Uid, Vec<Seen>>,
    under_way: BTreeMap<Ticket, Asked>,
    asked: Vec<Instant>,
    ready: BTreeMap<ServiceId, BTreeSet<Uid>>,
}

impl World {
    fn set(&mut self, id: &ServiceId, pods: &BTreeMap<Uid, Arc<PodView>>, now: Instant) {
        self.listed
            .insert(id.clone(), pods.keys().cloned().collect());
        for (uid, pod) in pods {
            let known = self.pods.entry(Arc::clone(uid)).or_default();
            let fresh = |view: &ContainerView| Seen {
                view: view.clone(),
                since: now,
                has_started: view.is_started,
                successes: 0,
                failures: 0,
                has_passed: false,
            };
            if known.is_empty() {
                *known = pod.containers.iter().map(fresh).collect();
            }
            for (seen, view) in known.iter_mut().zip(&pod.containers) {
                if seen.view.run == view.run {
                    seen.view = view.clone();
                    seen.has_started |= view.is_started;
                } else {
                    *seen = fresh(view);
                }
            }
        }
        self.forget();
    }

    fn forget(&mut self) {
        let listed = &self.listed;
        self.pods
            .retain(|uid, _| listed.values().any(|pods| pods.contains(uid)));
    }

    fn answered(&mut self, ticket: Ticket, outcome: Outcome) {
        let Some((uid, index, run, port)) = self.under_way.remove(&ticket) else {
            return;
        };
        let Some(seen) = self.pods.get_mut(&uid).map(|it| &mut it[index]) else {
            return;
        };
        if seen.view.run != run {
            return;
        }
        let (last, needed) = match &seen.view.readiness {
            None => (1, 1),
            Some(Check::Ask(probe)) => (2, probe.successes),
            Some(Check::Kubelet) => (2, u32::MAX),
        };
        if outcome == Outcome::Succeeded {
            seen.failures = 0;
            seen.has_started |= port == 1;
            seen.successes += u32::from(port == last);
            seen.has_passed |= seen.successes >= needed;
        } else {
            seen.failures += 1;
            seen.successes = 0;
            seen.has_passed &= seen.failures < 2;
        }
    }
}

impl Seen {
    fn may_be_ready(&self) -> bool {
        let view = &self.view;
        let has_started = match &view.startup {
            None => true,
            Some(_) => self.has_started,
        };
        view.run.is_some() && (view.is_ready || has_started && self.has_passed)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Nobody is ready of whom a container does not run or a probe has not succeeded in its present run; nobody is asked
    /// for whom nothing is held, too soon, or too often; and nothing is remembered of what is over.
    #[test]
    fn the_promises_hold(steps in steps()) {
        let mut machine = Machine::new(PACE);
        let mut world = World::default();
        let mut now = Instant::now();
        for step in steps {
            match step {
                Step::Set(number, pods) => {
                    let change = service(number, &pods);
                    let Change::Set(view) = &change else { unreachable!() };
                    world.set(&id(number), &starting(view), now);
                    machine.apply(&change, now);
                }
                Step::Gone(number) => {
                    world.listed.remove(&id(number));
                    world.ready.remove(&id(number));
                    world.forget();
                    machine.apply(&Change::Gone(id(number)), now);
                }
                Step::Hold(number) => {
                    machine.hold(&id(number));
                }
                Step::Released(number) => {
                    machine.released(&id(number));
                    prop_assert!(machine.held().all(|held| *held != id(number)));
                }
                Step::Ask => {
                    for ask in machine.due(now) {
                        let SocketAddr::V4(address) = ask.address else { unreachable!() };
                        let pod = uid(address.ip().octets()[3]);
                        prop_assert_eq!(ask.timeout, PACE.longest);
                        let (place, _) = &machine.under_way[&ask.ticket];
                        prop_assert_eq!(&place.0, &pod);
                        let index = place.1;
                        let seen = &world.pods[&pod][index];
                        prop_assert!(seen.view.run.is_some());
                        // Of whom the kubelet says that it is ready its delay is over.
                        let is_time = seen.view.is_ready || now >= seen.since + ask.probe.initial_delay;
                        prop_assert!(is_time, "too soon");
                        if ask.probe.port == 2 && let Some(Check::Ask(_)) = seen.view.startup {
                            prop_assert!(seen.has_started, "startup first");
                        }
                        let of_held = |id: &ServiceId| world.listed.get(id).is_some_and(|it| it.contains(&pod));
                        let is_wanted = machine.held().any(of_held) || machine.pods[&pod].is_ready;
                        prop_assert!(is_wanted, "nobody waits for it");
                        let run = seen.view.run.clone();
                        let place = (pod, index, run, ask.probe.port);
                        world.under_way.insert(ask.ticket, place);
                        world.asked.push(now);
                    }
                    prop_assert!(world.under_way.len() <= PACE.at_a_time);
                    let second = now.checked_sub(Duration::from_secs(1)).unwrap();
                    let of_late = world.asked.iter().filter(|at| **at > second).count();
                    prop_assert!(of_late <= 105, "too many");
                    prop_assert!(machine.next_due().is_none_or(|at| at > now), "it stays behind");
                }
                Step::Answer(which, outcome) => {
                    if let Some(ticket) = world.under_way.keys().nth(which).copied() {
                        world.answered(ticket, outcome);
                        machine.answered(ticket, outcome);
                    }
                }
                Step::Wait(millis) => now += Duration::from_millis(millis),
            }
            for (id, pods) in machine.take_news() {
                for pod in &pods {
                    prop_assert!(world.pods.contains_key(pod), "it is gone");
                }
                world.ready.insert(id, pods);
            }
            for (id, pods) in &world.ready {
                for pod in pods {
                    prop_assert!(world.listed[id].contains(pod), "it is gone");
                    for seen in &world.pods[pod] {
                        prop_assert!(seen.may_be_ready(), "{seen:?}");
                    }
                }
            }
        }
        for number in 0..2 {
            machine.apply(&Change::Gone(id(number)), now);
        }
        for ticket in world.under_way.into_keys() {
            machine.answered(ticket, Outcome::Succeeded);
        }
        machine.take_news();
        prop_assert!(machine.is_empty());
    }
}
