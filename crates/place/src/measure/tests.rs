//! The worst interface, directions, and why there is no figure.

use std::collections::BTreeMap;

use super::*;
use crate::{
    exposition::{Counters, Scrape},
    fixture,
    history::{Answer, History},
};

/// A gigabit per second, in bytes.
const GIGABIT: f64 = 125_000_000.0;

struct Setting {
    history: History,
    settings: Settings,
    node: NodeFacts,
}

impl Setting {
    fn new(spec: &serde_json::Value) -> Self {
        Self {
            history: History::default(),
            settings: fixture::settings(spec),
            node: fixture::node("a"),
        }
    }

    fn see(&mut self, at: u64, devices: &[(&str, u64, u64, f64)]) {
        let own = |(name, transmit, receive, speed): &(&str, u64, u64, f64)| {
            let counters = Counters {
                transmit: Some(*transmit),
                receive: Some(*receive),
                speed: Some(*speed),
            };
            ((*name).to_owned(), counters)
        };
        let scrape = Scrape {
            interfaces: devices.iter().map(own).collect(),
            ..Scrape::default()
        };
        let answer = Answer {
            node: &self.node.name,
            uid: &self.node.uid,
            at: Moment::from_secs(at),
            time: 1_700_000_000,
            scrape: &scrape,
        };
        let longest = self.settings.window;
        self.history.observe(&answer, longest, |name| name != "lo");
    }

    fn measure(&self, at: u64) -> Measurement {
        let history = self.history.of(&self.node.name, &self.node.uid);
        measure(&self.node, history, &self.settings, Moment::from_secs(at))
    }

    fn percent(&self, at: u64) -> Result<f64, Reason> {
        let figure = self.measure(at).figure;
        figure
            .map(|figure| figure.percent)
            .map_err(|unknown| unknown.reason)
    }
}

#[test]
fn the_node_is_as_full_as_its_worst_interface() {
    let mut setting = Setting::new(&serde_json::json!({}));
    setting.see(
        0,
        &[
            ("eth0", 0, 0, GIGABIT),
            ("eth1", 0, 0, GIGABIT),
            ("lo", 0, 0, 1.0),
        ],
    );
    setting.see(
        10,
        &[
            ("eth0", 125_000_000, 0, GIGABIT),
            ("eth1", 1_000_000_000, 0, GIGABIT),
            ("lo", 1_000_000_000, 0, 1.0),
        ],
    );
    let measured = setting.measure(10);
    let figure = measured.figure.unwrap();
    assert!((figure.percent - 80.0).abs() < 1e-9, "{figure:?}");
    assert_eq!(figure.interface, "eth1");
    assert_eq!(measured.transmit_total, 1_125_000_000, "those that count");
    assert_eq!(measured.time, Some(1_700_000_000));
    let names: Vec<&str> = measured.interfaces.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["eth0", "eth1"]);
    let history = setting.history.of("a", &setting.node.uid).unwrap();
    let excluded = ("lo".to_owned(), Counted::Excluded("lo".to_owned()));
    assert_eq!(not_counted(history, &setting.settings), [excluded]);
}

#[test]
fn each_direction_counts_what_it_says() {
    for (direction, expected) in [("transmit", 10.0), ("receive", 20.0), ("max", 20.0)] {
        let mut setting = Setting::new(&serde_json::json!({ "direction": direction }));
        setting.see(0, &[("eth0", 0, 0, GIGABIT)]);
        setting.see(10, &[("eth0", 125_000_000, 250_000_000, GIGABIT)]);
        let percent = setting.percent(10).unwrap();
        assert!((percent - expected).abs() < 1e-9, "{direction}: {percent}");
    }
}

#[test]
fn without_a_figure_there_is_a_reason_and_an_age() {
    let mut setting = Setting::new(&serde_json::json!({}));
    assert_eq!(setting.percent(0), Err(Reason::NeverAnswered));
    setting.see(0, &[("eth0", 0, 0, GIGABIT)]);
    assert_eq!(setting.percent(5), Err(Reason::WindowTooShort));
    setting.see(10, &[("eth0", 1, 0, GIGABIT)]);
    assert!(setting.percent(190).is_ok(), "still young enough");
    let unknown = setting.measure(191).figure.unwrap_err();
    assert_eq!(unknown.reason, Reason::TooOld);
    assert_eq!(unknown.age, Some(Duration::from_secs(181)));
    setting.see(200, &[("eth0", 2, 0, -125_000.0)]);
    setting.see(210, &[("eth0", 3, 0, -125_000.0)]);
    assert_eq!(setting.percent(210), Err(Reason::NoCapacity));
    setting.see(220, &[("lo", 3, 0, 1.0)]);
    assert_eq!(setting.percent(220), Err(Reason::NoInterface));
}

#[test]
fn an_interface_without_capacity_does_not_hide_the_others() {
    let mut setting = Setting::new(&serde_json::json!({}));
    setting.see(0, &[("eth0", 0, 0, GIGABIT), ("eth1", 0, 0, -1.0)]);
    setting.see(
        10,
        &[("eth0", 125_000_000, 0, GIGABIT), ("eth1", 0, 0, -1.0)],
    );
    assert!((setting.percent(10).unwrap() - 10.0).abs() < 1e-9);
}

#[test]
fn a_capacity_of_the_spec_or_the_annotation_makes_a_virtual_interface_count() {
    let spec =
        serde_json::json!({ "capacities": [{ "nodeSelector": {}, "bitsPerSecond": 8_000 }] });
    let mut setting = Setting::new(&spec);
    setting.see(0, &[("eth0", 0, 0, -1.0)]);
    setting.see(10, &[("eth0", 5_000, 0, -1.0)]);
    assert_eq!(setting.percent(10), Ok(50.0));
    setting.settings.capacities = crate::capacity::Capacities::default();
    let annotation = (
        "traffic.example.com/bandwidth".to_owned(),
        "16kbit".to_owned(),
    );
    setting.node.annotations = BTreeMap::from([annotation]);
    assert_eq!(setting.percent(10), Ok(25.0));
}
