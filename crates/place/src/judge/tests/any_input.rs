//! What holds whatever nodes do: no flapping faster than the dwell time, never too few fit nodes, the order of nodes does
//! not matter, and a restart changes nothing.

use proptest::{collection::vec, option, prelude::*};
use weir_api::place::OnUnknown;

use super::*;

const NODES: usize = 4;

/// What happens to one node in one step.
#[derive(Clone, Debug)]
struct Turn {
    percent: Option<f64>,
    /// Nothing for most, so that nodes have a history.
    upset: Option<Upset>,
}

#[derive(Clone, Copy, Debug)]
enum Upset {
    Leaves,
    Cordoned,
    Uncordoned,
    NotReady,
    Ready,
}

#[derive(Clone, Debug)]
struct Game {
    settings: Settings,
    turns: Vec<(u64, Vec<Turn>)>,
    restarts: Vec<bool>,
}

fn game() -> impl Strategy<Value = Game> {
    let upset = prop_oneof![
        Just(Upset::Leaves),
        Just(Upset::Cordoned),
        Just(Upset::Uncordoned),
        Just(Upset::NotReady),
        Just(Upset::Ready),
    ];
    let percent = option::weighted(0.8, prop_oneof![0.0..100.0_f64, Just(60.0), Just(40.0)]);
    let turn = (percent, option::weighted(0.1, upset))
        .prop_map(|(percent, upset)| Turn { percent, upset });
    let on_unknown = prop_oneof![
        Just(OnUnknown::Keep),
        Just(OnUnknown::Unfit),
        Just(OnUnknown::Fit)
    ];
    let settings = (
        1_u32..4,
        1_u32..4,
        0_u64..100,
        0_usize..4,
        on_unknown,
        10_u64..60,
        any::<bool>(),
    )
        .prop_map(|(unfit, fit, dwell, min, on_unknown, age, two)| Settings {
            samples_unfit: unfit,
            samples_fit: fit,
            min_dwell: Duration::from_secs(dwell),
            min_fit_nodes: min,
            on_unknown,
            max_sample_age: Duration::from_secs(age),
            clear_percent: if two { 40.0 } else { 60.0 },
            ..fixture::settings(&json!({}))
        });
    let turns = vec((0_u64..25, vec(turn, NODES)), 1..30);
    (settings, turns, vec(prop::bool::weighted(0.1), 30)).prop_map(|(settings, turns, restarts)| {
        Game {
            settings,
            turns,
            restarts,
        }
    })
}

/// A cluster that keeps labels, as they are written.
struct Cluster {
    nodes: Vec<NodeFacts>,
    births: u32,
    now: Moment,
}

impl Cluster {
    fn new() -> Self {
        let node = |number: usize| fixture::node(&format!("n{number}"));
        Self {
            nodes: (0..NODES).map(node).collect(),
            births: 0,
            now: Moment::from_secs(1000),
        }
    }

    fn go_on(&mut self, seconds: u64, turns: &[Turn]) {
        self.now = self.now.plus(Duration::from_secs(seconds));
        for (node, turn) in self.nodes.iter_mut().zip(turns) {
            match turn.upset {
                Some(Upset::Leaves) => {
                    self.births += 1;
                    *node = fixture::node(&node.name);
                    node.uid = format!("{} {}", node.uid, self.births);
                }
                Some(Upset::Cordoned) => node.unschedulable = true,
                Some(Upset::Uncordoned) => node.unschedulable = false,
                Some(Upset::NotReady) => node.ready = false,
                Some(Upset::Ready) => node.ready = true,
                None => {}
            }
        }
    }

    fn seen<'a>(&'a self, turns: &'a [Turn]) -> Vec<Seen<'a>> {
        let seen = |(node, turn): (&'a NodeFacts, &'a Turn)| Seen {
            node,
            figure: figure_at(turn.percent, self.now),
        };
        self.nodes.iter().zip(turns).map(seen).collect()
    }

    fn silent(&self) -> Vec<Seen<'_>> {
        let seen = |node| Seen {
            node,
            figure: figure_at(None, self.now),
        };
        self.nodes.iter().map(seen).collect()
    }

    fn write(&mut self, key: &str, outcome: &Outcome) {
        for node in &mut self.nodes {
            let state = outcome.verdicts[&node.name].state;
            let label = (key.to_owned(), state.as_str().to_owned());
            node.labels.extend([label]);
        }
    }
}

fn states(outcome: &Outcome) -> Vec<(String, State)> {
    let state = |(name, verdict): (&String, &Verdict)| (name.clone(), verdict.state);
    outcome.verdicts.iter().map(state).collect()
}

/// When a label last changed and what it said, or that it is a new node's.
#[derive(Clone, Copy)]
struct Mark {
    state: State,
    since: Option<Moment>,
}

proptest! {
    #[test]
    fn nothing_flaps_faster_than_the_dwell_time(game in game()) {
        let settings = &game.settings;
        let mut cluster = Cluster::new();
        let mut judge = Judge::default();
        let mut marks: BTreeMap<String, Mark> = BTreeMap::new();
        for ((seconds, turns), restart) in game.turns.iter().zip(&game.restarts) {
            cluster.go_on(*seconds, turns);
            if *restart {
                judge = Judge::default();
            }
            let outcome = judge.step(cluster.seen(turns), settings, true, cluster.now);
            for node in &cluster.nodes {
                let verdict = outcome.verdicts[&node.name];
                let Some(mark) = marks.get_mut(&node.uid) else {
                    marks.insert(node.uid.clone(), Mark { state: verdict.state, since: None });
                    continue;
                };
                if mark.state != verdict.state {
                    let is_free = verdict.state == State::Fit
                        && (verdict.why == Why::KeptFit || mark.since.is_none());
                    let since = mark.since.unwrap_or_default();
                    let is_late = cluster.now.since(since) >= settings.min_dwell;
                    prop_assert!(is_free || is_late, "{} {:?}", node.name, verdict);
                    *mark = Mark { state: verdict.state, since: Some(cluster.now) };
                }
            }
            cluster.write(&settings.key, &outcome);
        }
    }

    #[test]
    fn never_fewer_fit_nodes_than_wanted_once_ready(game in game()) {
        let settings = &game.settings;
        let mut cluster = Cluster::new();
        let mut judge = Judge::default();
        for ((seconds, turns), restart) in game.turns.iter().zip(&game.restarts) {
            cluster.go_on(*seconds, turns);
            if *restart {
                judge = Judge::default();
            }
            let outcome = judge.step(cluster.seen(turns), settings, true, cluster.now);
            let is_fit = |node: &&NodeFacts| outcome.verdicts[&node.name].state == State::Fit;
            let eligible = || cluster.nodes.iter().filter(|node| node.ready && !node.unschedulable);
            prop_assert_eq!(outcome.eligible, eligible().count());
            prop_assert!(eligible().filter(is_fit).count() >= settings.min_fit_nodes.min(eligible().count()));
            cluster.write(&settings.key, &outcome);
        }
    }

    #[test]
    fn the_order_of_nodes_never_matters(game in game(), turned in any::<prop::sample::Index>()) {
        let mut cluster = Cluster::new();
        let (mut judge, mut other) = (Judge::default(), Judge::default());
        for (seconds, turns) in &game.turns {
            cluster.go_on(*seconds, turns);
            let mut seen = cluster.seen(turns);
            let outcome = judge.step(seen.clone(), &game.settings, true, cluster.now);
            seen.rotate_left(turned.index(NODES));
            seen.swap(0, 1);
            let same = other.step(seen, &game.settings, true, cluster.now);
            prop_assert_eq!(&outcome, &same);
            cluster.write(&game.settings.key, &outcome);
        }
    }

    #[test]
    fn a_restart_changes_no_verdict(game in game(), silence in 0_u64..10) {
        let settings = &game.settings;
        let mut cluster = Cluster::new();
        let mut judge = Judge::default();
        for (seconds, turns) in &game.turns {
            cluster.go_on(*seconds, turns);
            let outcome = judge.step(cluster.seen(turns), settings, true, cluster.now);
            cluster.write(&settings.key, &outcome);
            // Another process looks at the same nodes. It has no figures before its first window is full.
            let mut next = Judge::default();
            let found = next.step(cluster.silent(), settings, true, cluster.now);
            prop_assert_eq!(states(&found), states(&outcome));
            let later = cluster.now.plus(Duration::from_secs(silence).min(settings.window));
            let found = next.step(cluster.silent(), settings, true, later);
            prop_assert_eq!(states(&found), states(&outcome));
            // And the first figures alone change nothing, where more than one is needed.
            if settings.samples_unfit > 1 && settings.samples_fit > 1 {
                let first = next.step(cluster.seen(turns), settings, true, later);
                prop_assert_eq!(states(&first), states(&outcome));
            }
        }
    }
}
