//! What place counts. Nodes, interfaces that count and watches are as many as there are; what left is not shown, and where
//! place does not run nothing is.

use std::{
    collections::BTreeMap,
    sync::{Mutex, OnceLock},
    time::Duration,
};

use weir_api::place::names::{
    EVICTIONS_TOTAL, LABEL_WRITES_TOTAL, NODE_UTILIZATION_RATIO, NODES, SCRAPE_ERRORS_TOTAL,
    SCRAPE_SECONDS,
};
use weir_role::{
    cluster::ObjectId,
    metrics::{
        counts::{Counter, Reasons},
        exposition::{Exposition, Kind},
        histogram::Histogram,
        lock,
    },
};

use super::names::{OUTCOME, REASON};

/// Upper bounds of the buckets of scrapes, in seconds.
const BOUNDS: [f64; 8] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 4.0];
/// States of nodes, in the order in which they are counted.
const STATES: [&str; 3] = ["fit", "unfit", "unknown"];

/// The counts of place.
#[derive(Debug, Default)]
pub struct PlaceMetrics {
    runs: OnceLock<()>,
    scrapes: Mutex<Histogram<{ BOUNDS.len() }>>,
    scrape_errors: Reasons,
    label_writes: Counter,
    evictions: Reasons,
    utilization: Mutex<BTreeMap<(String, String), f64>>,
    nodes: Mutex<BTreeMap<ObjectId, [i64; 3]>>,
}

impl PlaceMetrics {
    /// Place runs in this process: what it counts is shown.
    pub fn begin(&self) {
        let _ = self.runs.set(());
    }

    /// A node was asked, and that took so long.
    pub fn scraped(&self, took: Duration) {
        lock(&self.scrapes).observe(&BOUNDS, took);
    }

    /// It gave no figures, for a reason out of a fixed set.
    pub fn scrape_failed(&self, reason: &'static str) {
        self.scrape_errors.add(reason);
    }

    /// Labels were written to a node.
    pub fn label_written(&self) {
        self.label_writes.add(1);
    }

    /// A pod was moved, or would have been, or could not be: a word out of a fixed set.
    pub fn evicted(&self, outcome: &'static str) {
        self.evictions.add(outcome);
    }

    /// The load of every interface that counts, by node and interface.
    pub fn set_utilization(&self, all: &BTreeMap<(String, String), f64>) {
        lock(&self.utilization).clone_from(all);
    }

    /// How many of a watch's nodes are fit, unfit, and without figures.
    pub fn set_nodes(&self, watch: &ObjectId, counts: [i64; 3]) {
        lock(&self.nodes).insert(watch.clone(), counts);
    }

    /// A watch is gone.
    pub fn forget(&self, watch: &ObjectId) {
        lock(&self.nodes).remove(watch);
    }

    pub(super) fn render(&self, out: &mut Exposition) {
        if self.runs.get().is_none() {
            return;
        }
        let help = "Use of an interface's capacity, as a share of one.";
        let mut family = out.family(NODE_UTILIZATION_RATIO, Kind::Gauge, help);
        for ((node, interface), ratio) in &*lock(&self.utilization) {
            family.sample(&[("node", node), ("interface", interface)], ratio);
        }
        let help = "Nodes of a TrafficWatch; unknown ones are fit or unfit as well.";
        let mut family = out.family(NODES, Kind::Gauge, help);
        for (watch, counts) in &*lock(&self.nodes) {
            let watch = format!("{}/{}", watch.namespace, watch.name);
            for (state, count) in STATES.iter().zip(counts) {
                family.sample(&[("watch", &watch), ("state", state)], count);
            }
        }
        let help = "How long nodes take to tell their counters.";
        let scrapes = *lock(&self.scrapes);
        out.family(SCRAPE_SECONDS, Kind::Histogram, help)
            .histogram(&[], &BOUNDS, &scrapes);
        let help = "Nodes that gave no figures when asked.";
        let mut family = out.family(SCRAPE_ERRORS_TOTAL, Kind::Counter, help);
        for (reason, count) in self.scrape_errors.sorted() {
            family.sample(&[(REASON, reason)], count);
        }
        let help = "Writes of labels to nodes.";
        out.family(LABEL_WRITES_TOTAL, Kind::Counter, help)
            .sample(&[], self.label_writes.get());
        let help = "Pods moved off full nodes, and what came of it.";
        let mut family = out.family(EVICTIONS_TOTAL, Kind::Counter, help);
        for (outcome, count) in self.evictions.sorted() {
            family.sample(&[(OUTCOME, outcome)], count);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::metrics::OperatorMetrics;

    use super::*;

    #[test]
    fn what_is_counted_is_shown_where_place_runs() {
        let metrics = OperatorMetrics::new();
        let place = &metrics.place;
        let web = ObjectId::new("shop", "web");
        place.set_nodes(&web, [2, 1, 0]);
        place.set_utilization(&BTreeMap::from([(
            ("a".to_owned(), "eth0".to_owned()),
            0.5,
        )]));
        place.scraped(Duration::from_millis(20));
        place.scrape_failed("timeout");
        place.label_written();
        place.evicted("dry_run");
        assert!(!metrics.render().contains("weir_place"));
        place.begin();
        let text = metrics.render();
        for line in [
            r#"weir_place_node_utilization_ratio{node="a",interface="eth0"} 0.5"#,
            r#"weir_place_nodes{watch="shop/web",state="unfit"} 1"#,
            r#"weir_place_scrape_seconds_bucket{le="0.025"} 1"#,
            r#"weir_place_scrape_errors_total{reason="timeout"} 1"#,
            "weir_place_label_writes_total 1",
            r#"weir_place_evictions_total{outcome="dry_run"} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        place.forget(&web);
        assert!(!metrics.render().contains("shop/web"));
    }
}
