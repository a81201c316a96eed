//! The original's forms, the summary, and how much and how often is written.

use super::{nodes as nodes_of, *};
use crate::{interfaces::Counted, judge::Why, moment::Moment};

/// Every node has a loopback, which nobody counts.
fn nodes(
    outcome: &Outcome,
    measurements: &BTreeMap<String, Measurement>,
    there: &BTreeMap<String, NodeStatus>,
) -> Nodes {
    let lo = || ("lo".to_owned(), Counted::Excluded("lo".to_owned()));
    nodes_of(outcome, measurements, there, |_| vec![lo()])
}

fn verdict(state: State, load: Option<f64>) -> Verdict {
    Verdict {
        state,
        why: Why::Measured,
        since: Moment::default(),
        load,
        last_load: load,
        eligible: true,
    }
}

fn outcome(verdicts: impl IntoIterator<Item = (String, Verdict)>) -> Outcome {
    Outcome {
        verdicts: verdicts.into_iter().collect(),
        ..Outcome::default()
    }
}

fn measurement(transmit_total: u64, time: i64) -> Measurement {
    Measurement {
        figure: Err(crate::measure::Unknown {
            reason: crate::measure::Reason::WindowTooShort,
            age: None,
        }),
        interfaces: Vec::new(),
        transmit_total,
        time: Some(time),
    }
}

fn large(load: impl Fn(usize) -> f64) -> Outcome {
    let node = |number| {
        let load = load(number);
        let state = if load > 60.0 {
            State::Unfit
        } else {
            State::Fit
        };
        (format!("n{number:04}"), verdict(state, Some(load)))
    };
    outcome((0..5000).map(node))
}

fn status(nodes: Nodes) -> TrafficWatchStatus {
    TrafficWatchStatus {
        ready: true,
        nodes: nodes.nodes,
        summary: Some(nodes.summary),
        ..TrafficWatchStatus::default()
    }
}

#[test]
fn figures_have_the_originals_forms() {
    let outcome = outcome([
        ("a".to_owned(), verdict(State::Unfit, Some(60.0))),
        ("b".to_owned(), verdict(State::Fit, Some(0.000_106_976))),
        ("c".to_owned(), verdict(State::Unfit, None)),
        ("d".to_owned(), verdict(State::Fit, Some(0.0))),
    ]);
    let measurements = BTreeMap::from([("a".to_owned(), measurement(183_993, 1_700_000_000))]);
    let found = nodes(&outcome, &measurements, &BTreeMap::new());
    let entry = NodeStatus {
        current_bandwidth_percent: "6e+01".to_owned(),
        current_transmit_total: 183_993,
        time: 1_700_000_000,
        unfit: true,
        interface: None,
        why: Some("Measured".to_owned()),
        interfaces: Some("none counts; excluded: lo".to_owned()),
    };
    assert_eq!(found.nodes["a"], entry);
    assert_eq!(found.nodes["b"].current_bandwidth_percent, "1.06976e-04");
    assert_eq!(
        found.nodes["c"].current_bandwidth_percent, "0",
        "not measured"
    );
    assert_eq!(found.nodes["d"].current_bandwidth_percent, "0e+00");
    let summary = Summary {
        fit: 2,
        unfit: 2,
        unknown: 1,
        worst: Some("a 60.0%".to_owned()),
    };
    assert_eq!(found.summary, summary);
}

#[test]
fn figures_stay_with_their_time_until_there_are_newer_ones() {
    let entry = |percent: &str, unfit| NodeStatus {
        current_bandwidth_percent: percent.to_owned(),
        current_transmit_total: 7,
        time: 1_600_000_000,
        unfit,
        why: Some("Found".to_owned()),
        ..NodeStatus::default()
    };
    let there =
        BTreeMap::from(["a", "b", "gone"].map(|name| (name.to_owned(), entry("5e+01", true))));
    let found = Verdict {
        why: Why::Found,
        ..verdict(State::Fit, None)
    };
    let new = Verdict {
        why: Why::New,
        ..verdict(State::Unfit, None)
    };
    let after_restart = outcome([("a".to_owned(), found), ("b".to_owned(), new)]);
    let found = nodes(&after_restart, &BTreeMap::new(), &there);
    assert_eq!(found.nodes["a"], entry("5e+01", false));
    assert_eq!(
        found.nodes["b"].current_bandwidth_percent, "0",
        "another node"
    );
    assert_eq!(
        found.nodes.len(),
        2,
        "who left the cluster leaves the status"
    );
    let too_old = Verdict {
        last_load: Some(60.0),
        ..verdict(State::Unfit, None)
    };
    let found = nodes(
        &outcome([("a".to_owned(), too_old)]),
        &BTreeMap::new(),
        &there,
    );
    assert_eq!(found.nodes["a"].current_bandwidth_percent, "6e+01");
    assert_eq!(found.summary.unknown, 1);
}

#[test]
fn the_worst_is_the_most_loaded_even_if_it_was_kept_fit() {
    let outcome = outcome([
        ("a".to_owned(), verdict(State::Unfit, Some(70.0))),
        ("b".to_owned(), verdict(State::Fit, Some(99.0))),
    ]);
    let found = nodes(&outcome, &BTreeMap::new(), &BTreeMap::new());
    assert_eq!(found.summary.worst.as_deref(), Some("b 99.0%"));
}

#[test]
fn a_large_cluster_has_the_worst_of_its_nodes_only() {
    #[expect(clippy::cast_precision_loss, reason = "below 5000")]
    let outcome = large(|number| number as f64 / 50.0);
    let found = nodes(&outcome, &BTreeMap::new(), &BTreeMap::new());
    assert_eq!(found.nodes.len(), WORST);
    assert!(found.nodes.contains_key("n4999"));
    assert!(!found.nodes.contains_key("n0000"));
    assert_eq!(found.summary.fit + found.summary.unfit, 5000);
    let bytes = serde_json::to_vec(&status(found)).unwrap().len();
    assert!(bytes < 20_000, "{bytes}");
}

#[test]
fn a_large_cluster_is_not_written_with_every_reading() {
    let there = status(nodes(&large(|_| 10.0), &BTreeMap::new(), &BTreeMap::new()));
    let figures = status(nodes(&large(|_| 11.0), &BTreeMap::new(), &BTreeMap::new()));
    let verdicts = status(nodes(&large(|_| 70.0), &BTreeMap::new(), &BTreeMap::new()));
    let is_written = |wanted, age| is_worth_writing(&there, wanted, age);
    assert!(!is_written(&there, None));
    assert!(!is_written(&figures, Some(Duration::from_secs(59))));
    assert!(is_written(&figures, Some(FIGURES_INTERVAL)));
    assert!(is_written(&figures, None));
    assert!(is_written(&verdicts, Some(Duration::ZERO)));
    let mut later = there.clone();
    for node in later.nodes.values_mut() {
        node.time += 60;
    }
    assert!(
        !is_written(&later, Some(FIGURES_INTERVAL)),
        "nothing is new"
    );
}

#[test]
fn a_small_cluster_is_written_with_every_reading() {
    let at = |load| {
        let verdicts = [("a".to_owned(), verdict(State::Fit, Some(load)))];
        status(nodes(
            &outcome(verdicts),
            &BTreeMap::new(),
            &BTreeMap::new(),
        ))
    };
    assert!(is_worth_writing(&at(1.0), &at(2.0), Some(Duration::ZERO)));
    assert!(!is_worth_writing(&at(1.0), &at(1.0), None));
}
