//! A cluster in values: exporters that count, an API server that keeps what is written, and one round of what an
//! operator does between the two.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    time::Duration,
};

use serde_json::{Value, json};
use weir_api::place::{TrafficWatch, names::unfit_label_key};
use weir_place::{
    deployment, exposition,
    history::{Answer, History},
    judge::{Judge, Outcome, Seen, Why},
    measure::{Measurement, measure},
    moment::Moment,
    node::{Asked, NodeFacts},
    plan::{self, Claim, NodeChange, Options, WatchName, Wish},
    ready::{self, Waiting},
    settings::Settings,
};

pub(super) struct Cluster {
    pub(super) nodes: Vec<NodeFacts>,
    pub(super) watches: Vec<Watch>,
    /// Bytes that each node has sent.
    pub(super) sent: BTreeMap<String, u64>,
    /// Bytes that each node sends per second; none: its exporter does not answer.
    pub(super) rates: BTreeMap<String, Option<u64>>,
    pub(super) now: Moment,
    history: History,
    asked: BTreeMap<String, Asked>,
}

pub(super) struct Watch {
    pub(super) object: TrafficWatch,
    pub(super) created: i64,
    pub(super) ready: bool,
    pub(super) outcome: Outcome,
    /// What the API server has.
    pub(super) deployment: Option<Value>,
    judge: Judge,
}

/// A gigabit, in bytes per second.
pub(super) const GIGABIT: u64 = 125_000_000;

pub(super) fn node(name: &str) -> NodeFacts {
    NodeFacts {
        name: name.to_owned(),
        uid: format!("uid of {name}"),
        ready: true,
        linux: true,
        ..NodeFacts::default()
    }
}

pub(super) fn watch(name: &str, created: i64, more: &Value) -> Watch {
    let mut spec = json!({
        "maxBandwidthPercent": "60",
        "deployment": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": {}, "spec": { "containers": [] } },
        },
    });
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    let object = json!({
        "apiVersion": "traffic.example.com/v1alpha1",
        "kind": "TrafficWatch",
        "metadata": { "name": name, "namespace": "shop", "uid": name },
        "spec": spec,
    });
    Watch {
        object: serde_json::from_value(object).expect("a watch"),
        created,
        ready: false,
        outcome: Outcome::default(),
        deployment: None,
        judge: Judge::default(),
    }
}

impl Cluster {
    pub(super) fn new(names: &[&str], watches: Vec<Watch>) -> Self {
        Self {
            nodes: names.iter().map(|name| node(name)).collect(),
            watches,
            sent: BTreeMap::new(),
            rates: BTreeMap::new(),
            now: Moment::from_secs(1000),
            history: History::default(),
            asked: BTreeMap::new(),
        }
    }

    /// What a node sends, in percent of a gigabit.
    pub(super) fn load(&mut self, node: &str, percent: u64) {
        self.rates
            .insert(node.to_owned(), Some(GIGABIT * percent / 100));
    }

    pub(super) fn silence(&mut self, node: &str) {
        self.rates.insert(node.to_owned(), None);
    }

    pub(super) fn label(&self, node: &str, label: &str) -> Option<&str> {
        let node = self.nodes.iter().find(|one| one.name == node)?;
        node.labels.get(&unfit_label_key(label)).map(String::as_str)
    }

    pub(super) fn why(&self, watch: usize, node: &str) -> Why {
        self.watches[watch].outcome.verdicts[node].why
    }

    /// A new process on the same cluster.
    pub(super) fn restart(&mut self) {
        self.history = History::default();
        self.asked.clear();
        for watch in &mut self.watches {
            watch.judge = Judge::default();
        }
    }

    /// Ten seconds later: scrape, measure, judge, write. Gives how many nodes were written.
    pub(super) fn round(&mut self) -> usize {
        self.now = self.now.plus(Duration::from_secs(10));
        self.scrape();
        let mut claims = Vec::new();
        for watch in &mut self.watches {
            claims.push(watch.round(&self.nodes, &self.history, &self.asked, self.now));
        }
        let options = Options {
            allow_taints: true,
            annotate: false,
        };
        let changes = plan::changes(&self.nodes, &claims, &BTreeMap::new(), options);
        for node in &mut self.nodes {
            if let Some(change) = changes.get(&node.name) {
                write(node, change);
            }
        }
        let keys = plan::keys::Keys::of(&claims);
        for (watch, claim) in self.watches.iter_mut().zip(&claims) {
            let is_shown = plan::is_shown_everywhere(&self.nodes, claim);
            if watch.ready && is_shown && keys.lost_to(claim).is_none() {
                watch.deployment = Some(deployment::build(&watch.object));
            }
        }
        changes.len()
    }

    fn scrape(&mut self) {
        let names: BTreeSet<&str> = self.nodes.iter().map(|node| node.name.as_str()).collect();
        self.history.retain(|name| names.contains(name));
        for node in &self.nodes {
            let sent = self.sent.entry(node.name.clone()).or_insert(7);
            let rate = self.rates.get(&node.name).copied().unwrap_or(Some(0));
            *sent += rate.unwrap_or_default() * 10;
            let asked = self.asked.entry(node.name.clone()).or_insert(Asked {
                since: self.now,
                failing: false,
            });
            asked.failing = rate.is_none();
            if rate.is_none() {
                continue;
            }
            let mut body = String::new();
            let mut line = |series: &str, value: u64| {
                let name = format!("node_network_{series}");
                writeln!(body, "{name}{{device=\"eth0\"}} {value}").expect("a line");
                writeln!(body, "{name}{{device=\"veth1\"}} {value}").expect("a line");
            };
            line("transmit_bytes_total", *sent);
            line("receive_bytes_total", 0);
            line("speed_bytes", GIGABIT);
            let scrape = exposition::read(body.as_bytes()).expect("an answer");
            let answer = Answer {
                node: &node.name,
                uid: &node.uid,
                at: self.now,
                time: 1_700_000_000,
                scrape: &scrape,
            };
            let longest = Duration::from_mins(1);
            self.history
                .observe(&answer, longest, |name| name == "eth0");
        }
    }
}

impl Watch {
    pub(super) fn settings(&self) -> Settings {
        Settings::of(&self.object).expect("settings")
    }

    fn round(
        &mut self,
        nodes: &[NodeFacts],
        history: &History,
        asked: &BTreeMap<String, Asked>,
        now: Moment,
    ) -> Claim {
        let settings = self.settings();
        let measured: Vec<(&NodeFacts, Measurement)> = (nodes.iter())
            .map(|node| {
                let history = history.of(&node.name, &node.uid);
                (node, measure(node, history, &settings, now))
            })
            .collect();
        let waiting = measured.iter().map(|(node, measurement)| Waiting {
            node,
            figure: &measurement.figure,
            asked: asked.get(&node.name).copied(),
        });
        self.ready = self.ready || ready::is_ready(waiting, &settings, now);
        let seen = measured.iter().map(|(node, measurement)| Seen {
            node,
            figure: measurement.figure.clone(),
        });
        self.outcome = self.judge.step(seen, &settings, self.ready, now);
        let wish = |node: &NodeFacts| {
            let verdict = self.outcome.verdicts.get(&node.name);
            verdict.map_or(Wish::Nothing, |verdict| Wish::Show(verdict.state))
        };
        let in_use = self.deployment.as_ref();
        Claim {
            watch: WatchName {
                namespace: "shop".to_owned(),
                name: self.object.metadata.name.clone().unwrap_or_default(),
            },
            created: Some(self.created),
            key: settings.key.clone(),
            in_use: in_use
                .map(|live| deployment::keys_in_use(live, &self.object))
                .unwrap_or_default(),
            wishes: (nodes.iter().map(|node| (node.name.clone(), wish(node)))).collect(),
            taint: self.object.spec.action == weir_api::place::Action::Taint,
        }
    }
}

fn write(node: &mut NodeFacts, change: &NodeChange) {
    if let Some(carried) = &change.apply {
        node.labels.extend(carried.labels.clone());
    }
    node.labels
        .retain(|key, _| !change.remove_labels.contains(key));
    if let Some(taints) = &change.taints {
        node.taints.clone_from(taints);
    }
}
