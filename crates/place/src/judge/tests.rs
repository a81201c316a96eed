//! Each rule of the flap guard and of the floor by itself; what holds for any input is in `tests/any_input`.

mod any_input;

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::{fixture, measure::Reason};

/// A watch, its nodes, and a clock that goes on by an interval with each step.
struct Scene {
    judge: Judge,
    settings: Settings,
    nodes: Vec<NodeFacts>,
    ready: bool,
    now: Moment,
    outcome: Outcome,
}

impl Scene {
    fn new(spec: &Value, names: &[&str]) -> Self {
        Self {
            judge: Judge::default(),
            settings: fixture::settings(spec),
            nodes: names.iter().map(|name| fixture::node(name)).collect(),
            ready: true,
            now: Moment::from_secs(1000),
            outcome: Outcome::default(),
        }
    }

    /// One interval later; no figure is no answer. The labels are written.
    fn step(&mut self, figures: &[Option<f64>]) -> Vec<State> {
        self.now = self.now.plus(self.settings.interval);
        let now = self.now;
        let seen = self.nodes.iter().zip(figures).map(|(node, figure)| Seen {
            node,
            figure: figure_at(*figure, now),
        });
        self.outcome = self.judge.step(seen, &self.settings, self.ready, now);
        for node in &mut self.nodes {
            let state = self.outcome.verdicts[&node.name].state;
            let label = (self.settings.key.clone(), state.as_str().to_owned());
            node.labels.extend([label]);
        }
        self.states()
    }

    fn states(&self) -> Vec<State> {
        let state = |node: &NodeFacts| self.outcome.verdicts[&node.name].state;
        self.nodes.iter().map(state).collect()
    }

    fn why(&self, node: &str) -> Why {
        self.outcome.verdicts[node].why
    }

    fn restart(&mut self) {
        self.judge = Judge::default();
    }
}

fn figure_at(percent: Option<f64>, at: Moment) -> Result<Figure, Unknown> {
    let unknown = Unknown {
        reason: Reason::NeverAnswered,
        age: None,
    };
    let interface = "eth0".to_owned();
    let figure = percent.map(|percent| Figure {
        percent,
        interface,
        at,
    });
    figure.ok_or(unknown)
}

const FIT: State = State::Fit;
const UNFIT: State = State::Unfit;
const LOW: Option<f64> = Some(10.0);
const HIGH: Option<f64> = Some(90.0);

#[test]
fn a_node_without_the_label_is_unfit_until_it_has_been_measured() {
    let mut scene = Scene::new(&json!({ "minFitNodes": 0, "minDwell": "1h" }), &["a"]);
    assert_eq!(scene.step(&[None]), [UNFIT]);
    assert_eq!(scene.why("a"), Why::New);
    assert_eq!(scene.step(&[LOW]), [FIT], "one figure, no dwell time");
    let mut scene = Scene::new(&json!({ "minFitNodes": 0 }), &["a"]);
    assert_eq!(scene.step(&[HIGH]), [UNFIT]);
    assert_eq!(scene.why("a"), Why::Measured);
}

#[test]
fn equal_readings_in_a_row_change_a_node() {
    let spec = json!({ "minFitNodes": 0, "samples": { "unfit": 3, "fit": 2 } });
    let mut scene = Scene::new(&spec, &["a"]);
    for (figure, expected) in [
        (LOW, FIT),
        (HIGH, FIT),
        (HIGH, FIT),
        (LOW, FIT),
        (HIGH, FIT),
        (HIGH, FIT),
        (HIGH, UNFIT),
        (LOW, UNFIT),
        (HIGH, UNFIT),
        (LOW, UNFIT),
        (LOW, FIT),
    ] {
        assert_eq!(scene.step(&[figure]), [expected], "{figure:?}");
    }
}

#[test]
fn between_the_two_thresholds_nothing_changes() {
    let spec =
        json!({ "minFitNodes": 0, "clearPercent": "40", "samples": { "unfit": 1, "fit": 1 } });
    let mut scene = Scene::new(&spec, &["a"]);
    for (figure, expected) in [
        (50.0, FIT),
        (60.0, FIT),
        (60.1, UNFIT),
        (50.0, UNFIT),
        (40.0, UNFIT),
        (39.9, FIT),
        (59.0, FIT),
    ] {
        assert_eq!(scene.step(&[Some(figure)]), [expected], "{figure}");
    }
}

#[test]
fn two_looks_at_one_reading_count_once() {
    let mut scene = Scene::new(&json!({ "minFitNodes": 0 }), &["a"]);
    scene.step(&[LOW]);
    scene.step(&[HIGH]);
    let seen = Seen {
        node: &scene.nodes[0],
        figure: figure_at(HIGH, scene.now),
    };
    let soon = scene.now.plus(Duration::from_millis(500));
    let again = scene.judge.step([seen], &scene.settings, true, soon);
    assert_eq!(again.verdicts["a"].state, FIT);
}

#[test]
fn readings_that_come_faster_than_the_interval_do_not_count_faster() {
    let mut scene = Scene::new(&json!({ "minFitNodes": 0 }), &["a"]);
    scene.step(&[LOW]);
    scene.step(&[HIGH]);
    // Another watch has its nodes asked more often.
    for (seconds, expected) in [(2, FIT), (5, FIT), (10, UNFIT)] {
        let now = scene.now.plus(Duration::from_secs(seconds));
        let seen = Seen {
            node: &scene.nodes[0],
            figure: figure_at(HIGH, now),
        };
        let found = scene.judge.step([seen], &scene.settings, true, now);
        assert_eq!(found.verdicts["a"].state, expected, "{seconds}");
    }
}

#[test]
fn the_dwell_time_holds_changes_back() {
    let spec = json!({ "minFitNodes": 0, "minDwell": "1m", "samples": { "unfit": 1, "fit": 1 } });
    let mut scene = Scene::new(&spec, &["a"]);
    scene.step(&[LOW]);
    for _ in 0..5 {
        assert_eq!(scene.step(&[HIGH]), [FIT]);
        assert_eq!(scene.why("a"), Why::Dwelling);
    }
    assert_eq!(scene.step(&[HIGH]), [UNFIT]);
}

#[test]
fn a_node_that_says_nothing_for_too_long_becomes_what_the_user_wants() {
    for (wish, before, after) in [
        ("keep", LOW, FIT),
        ("keep", HIGH, UNFIT),
        ("unfit", LOW, UNFIT),
        ("fit", HIGH, FIT),
    ] {
        let spec = json!({ "minFitNodes": 0, "onUnknown": wish, "maxSampleAge": "30s" });
        let mut scene = Scene::new(&spec, &["a"]);
        let measured = scene.step(&[before]);
        for _ in 0..3 {
            assert_eq!(scene.step(&[None]), measured, "{wish}: not yet");
        }
        assert_eq!(scene.step(&[None]), [after], "{wish}");
        assert_eq!(scene.why("a"), Why::Unknown);
        assert_eq!(scene.outcome.verdicts["a"].load, None);
    }
}

#[test]
fn a_new_node_that_never_answers_stays_unfit_unless_the_user_wants_it_fit() {
    for (wish, after) in [("keep", UNFIT), ("unfit", UNFIT), ("fit", FIT)] {
        let spec = json!({ "minFitNodes": 0, "onUnknown": wish, "maxSampleAge": "30s" });
        let mut scene = Scene::new(&spec, &["a"]);
        for _ in 0..3 {
            assert_eq!(scene.step(&[None]), [UNFIT], "{wish}");
        }
        for _ in 0..3 {
            scene.step(&[None]);
        }
        assert_eq!(scene.states(), [after], "{wish}");
    }
}

#[test]
fn a_restart_changes_no_verdict_before_a_full_new_window() {
    for wish in ["keep", "unfit", "fit"] {
        let spec = json!({
            "minFitNodes": 0, "onUnknown": wish, "window": "5m", "maxSampleAge": "30s",
        });
        let mut scene = Scene::new(&spec, &["a", "b"]);
        scene.step(&[LOW, HIGH]);
        scene.restart();
        for _ in 0..30 {
            assert_eq!(scene.step(&[None, None]), [FIT, UNFIT], "{wish}");
            assert_eq!(scene.why("a"), Why::Found);
        }
        assert_eq!(
            scene.step(&[HIGH, LOW]),
            [FIT, UNFIT],
            "{wish}: one reading"
        );
        assert_eq!(scene.step(&[HIGH, LOW]), [UNFIT, FIT], "{wish}: two");
    }
}

#[test]
fn counters_that_begin_anew_get_a_full_window_before_they_are_unknown() {
    let spec = json!({
        "minFitNodes": 0, "onUnknown": "unfit", "window": "2m", "maxSampleAge": "20s",
    });
    let mut scene = Scene::new(&spec, &["a"]);
    scene.step(&[LOW]);
    let anew = Err(Unknown {
        reason: Reason::WindowTooShort,
        age: None,
    });
    let mut after = |seconds| {
        let seen = Seen {
            node: &scene.nodes[0],
            figure: anew.clone(),
        };
        let now = scene.now.plus(Duration::from_secs(seconds));
        let outcome = scene.judge.step([seen], &scene.settings, true, now);
        outcome.verdicts["a"].state
    };
    assert_eq!(after(140), FIT);
    assert_eq!(after(141), UNFIT);
}

#[test]
fn the_least_loaded_stay_fit_when_all_are_over_the_limit() {
    let spec = json!({ "minFitNodes": 2, "samples": { "unfit": 1, "fit": 1 } });
    let mut scene = Scene::new(&spec, &["a", "b", "c", "d"]);
    scene.step(&[LOW, LOW, LOW, LOW]);
    let all = [Some(95.0), Some(80.0), Some(99.0), Some(70.0)];
    assert_eq!(scene.step(&all), [UNFIT, FIT, UNFIT, FIT]);
    assert_eq!(scene.why("b"), Why::KeptFit);
    assert_eq!(scene.outcome.kept_fit, 2);
    let one_clears = [Some(95.0), Some(80.0), LOW, Some(70.0)];
    assert_eq!(scene.step(&one_clears), [UNFIT, UNFIT, FIT, FIT]);
    assert_eq!(scene.outcome.kept_fit, 1);
}

#[test]
fn a_kept_node_is_exchanged_only_for_a_clearly_better_one() {
    let mut scene = Scene::new(&json!({}), &["a", "b"]);
    scene.step(&[LOW, LOW]);
    scene.step(&[Some(90.0), Some(95.0)]);
    assert_eq!(scene.step(&[Some(90.0), Some(95.0)]), [FIT, UNFIT]);
    for _ in 0..5 {
        assert_eq!(
            scene.step(&[Some(95.0), Some(90.0)]),
            [FIT, UNFIT],
            "hardly"
        );
    }
    assert_eq!(
        scene.step(&[Some(99.0), Some(70.0)]),
        [UNFIT, FIT],
        "clearly"
    );
}

#[test]
fn a_node_takes_the_place_of_a_kept_one_only_after_its_dwell_time() {
    let mut scene = Scene::new(&json!({ "minDwell": "1m" }), &["a", "b"]);
    for _ in 0..7 {
        scene.step(&[LOW, LOW]);
    }
    scene.step(&[Some(90.0), Some(95.0)]);
    assert_eq!(scene.step(&[Some(90.0), Some(95.0)]), [FIT, UNFIT]);
    for _ in 0..5 {
        assert_eq!(scene.step(&[Some(99.0), Some(70.0)]), [FIT, UNFIT]);
    }
    assert_eq!(scene.step(&[Some(99.0), Some(70.0)]), [UNFIT, FIT]);
}

#[test]
fn only_nodes_that_could_take_pods_count_for_the_floor() {
    let mut scene = Scene::new(&json!({}), &["a", "b", "c"]);
    scene.nodes[0].unschedulable = true;
    scene.nodes[1].ready = false;
    scene.step(&[LOW, LOW, LOW]);
    scene.step(&[Some(61.0), Some(62.0), HIGH]);
    assert_eq!(
        scene.step(&[Some(61.0), Some(62.0), HIGH]),
        [UNFIT, UNFIT, FIT]
    );
    assert_eq!(scene.outcome.eligible, 1);
}

#[test]
fn before_ready_new_nodes_stay_unfit_even_if_all_are() {
    let mut scene = Scene::new(&json!({}), &["a", "b"]);
    scene.ready = false;
    assert_eq!(scene.step(&[None, None]), [UNFIT, UNFIT]);
    scene.ready = true;
    assert_eq!(scene.step(&[None, None]), [FIT, UNFIT]);
}

#[test]
fn a_new_node_that_was_kept_fit_is_still_judged_by_its_first_figure() {
    let mut scene = Scene::new(&json!({}), &["a", "b"]);
    assert_eq!(scene.step(&[None, None]), [FIT, UNFIT]);
    assert_eq!(scene.step(&[LOW, LOW]), [FIT, FIT]);
}

#[test]
fn a_node_that_is_not_judged_has_no_verdict() {
    let mut scene = Scene::new(&json!({ "nodeSelector": { "zone": "a" } }), &["a", "b"]);
    scene.nodes[0]
        .labels
        .extend([("zone".to_owned(), "a".to_owned())]);
    let seen = scene.nodes.iter().map(|node| Seen {
        node,
        figure: figure_at(LOW, scene.now),
    });
    let outcome = scene.judge.step(seen, &scene.settings, true, scene.now);
    assert_eq!(outcome.verdicts.keys().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn a_label_that_says_neither_is_none() {
    let mut scene = Scene::new(&json!({ "minFitNodes": 0 }), &["a"]);
    let label = (scene.settings.key.clone(), "maybe".to_owned());
    scene.nodes[0].labels.extend([label]);
    assert_eq!(scene.step(&[None]), [UNFIT]);
    assert_eq!(scene.why("a"), Why::New);
}
