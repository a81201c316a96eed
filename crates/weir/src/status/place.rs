//! TrafficWatches and their nodes, from their statuses and the nodes' labels. In a large cluster a status names only the
//! worst nodes; of the others the label is told, which is what counts.

use std::fmt::Write;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as KubeNode;
use kube::ResourceExt;
use serde::Serialize;
use weir_api::place::{
    NodeStatus, Summary, TrafficWatch,
    names::{FIT, UNFIT, unfit_label_key},
};

use super::table;

/// One watch, as it is told. The names of the fields are a contract.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Watch {
    namespace: String,
    name: String,
    ready: bool,
    max_bandwidth_percent: String,
    label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Summary>,
    /// Conditions that are not true, as they say what to do.
    problems: Vec<Problem>,
    nodes: Vec<Node>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Problem {
    condition: String,
    reason: String,
    message: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    name: String,
    /// What its label says: `fit`, `unfit`, or `none` where it has none.
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    age_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interfaces: Option<String>,
}

impl Watch {
    pub(super) fn of(object: &TrafficWatch, nodes: &[KubeNode], now: Timestamp) -> Self {
        let status = object.status.clone().unwrap_or_default();
        let label = unfit_label_key(object.label_prefix());
        let is_false = |status: &str| status != "True";
        let problems = status.conditions.iter().filter(|it| is_false(&it.status));
        let mut rows: Vec<Node> = nodes
            .iter()
            .filter_map(|node| {
                let name = node.name_any();
                let told = status.nodes.get(&name);
                let shown = node.labels().get(&label).map(String::as_str);
                // Nodes that are none of this watch's business have neither.
                (told.is_some() || shown.is_some()).then(|| Node::of(name, shown, told, now))
            })
            .collect();
        let load = |node: &Node| node.percent.unwrap_or(-1.0);
        rows.sort_by(|one, other| {
            let by_load = load(other).total_cmp(&load(one));
            by_load.then_with(|| one.name.cmp(&other.name))
        });
        Self {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            ready: status.ready,
            max_bandwidth_percent: object.spec.max_bandwidth_percent.clone(),
            problems: problems
                .map(|condition| Problem {
                    condition: condition.type_.clone(),
                    reason: condition.reason.clone(),
                    message: condition.message.clone(),
                })
                .collect(),
            summary: status.summary,
            label,
            nodes: rows,
        }
    }
}

impl Node {
    fn of(name: String, shown: Option<&str>, told: Option<&NodeStatus>, now: Timestamp) -> Self {
        let measured = told.filter(|told| told.time > 0);
        Self {
            name,
            verdict: match shown {
                Some(UNFIT) => "unfit",
                Some(FIT) => "fit",
                _ => "none",
            },
            percent: measured.and_then(|told| told.current_bandwidth_percent.parse().ok()),
            interface: told.and_then(|told| told.interface.clone()),
            why: told.and_then(|told| told.why.clone()),
            age_seconds: measured.map(|told| now.as_second().saturating_sub(told.time)),
            interfaces: told.and_then(|told| told.interfaces.clone()),
        }
    }

    fn cells(&self) -> Vec<String> {
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        vec![
            self.name.clone(),
            self.verdict.to_owned(),
            self.percent
                .map_or_else(|| "-".to_owned(), |percent| format!("{percent:.1}%")),
            or_dash(&self.interface),
            or_dash(&self.why),
            self.age_seconds.map_or_else(|| "-".to_owned(), table::age),
            or_dash(&self.interfaces),
        ]
    }
}

/// All of them, for people.
pub(super) fn render(watches: &[Watch]) -> String {
    if watches.is_empty() {
        return "There are no TrafficWatches.\n".to_owned();
    }
    let texts: Vec<String> = watches.iter().map(one).collect();
    texts.join("\n")
}

fn one(watch: &Watch) -> String {
    let Watch {
        namespace,
        name,
        max_bandwidth_percent,
        ..
    } = watch;
    let mut text = format!("TrafficWatch {namespace}/{name}, limit {max_bandwidth_percent}%: ");
    // Writing to a String does not fail.
    let _ = match &watch.summary {
        Some(summary) => writeln!(
            text,
            "{} fit, {} unfit, {} without figures{}",
            summary.fit,
            summary.unfit,
            summary.unknown,
            if watch.ready { "" } else { "; not ready yet" }
        ),
        None => writeln!(text, "the operator has not told anything yet"),
    };
    for problem in &watch.problems {
        let Problem {
            condition,
            reason,
            message,
        } = problem;
        let _ = writeln!(text, "  {condition} is false, {reason}: {message}");
    }
    if watch.nodes.is_empty() {
        text.push_str("  no node has its label\n");
        return text;
    }
    let head = [
        "NODE",
        "VERDICT",
        "LOAD",
        "INTERFACE",
        "WHY",
        "AGE",
        "INTERFACES",
    ];
    let rows: Vec<Vec<String>> = std::iter::once(head.map(str::to_owned).to_vec())
        .chain(watch.nodes.iter().map(Node::cells))
        .collect();
    text.push_str(&table::render(&rows));
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn watch() -> TrafficWatch {
        serde_json::from_value(json!({
            "apiVersion": "traffic.example.com/v1alpha1", "kind": "TrafficWatch",
            "metadata": { "name": "web", "namespace": "shop" },
            "spec": { "maxBandwidthPercent": "60", "deployment": {} },
            "status": {
                "ready": true,
                "nodes": {
                    "a": {
                        "currentBandwidthPercent": "8.04e+01", "currentTransmitTotal": 7, "time": 1_000_000, "unfit": true,
                        "interface": "eth0", "why": "Measured", "interfaces": "eth0 of 1Gbit, by itself; excluded: lo",
                    },
                    "b": { "currentBandwidthPercent": "0", "currentTransmitTotal": 0, "time": 0, "unfit": true, "why": "New" },
                },
                "summary": { "fit": 1, "unfit": 2, "unknown": 1 },
                "conditions": [
                    { "type": "Accepted", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" },
                    { "type": "Measured", "status": "False", "reason": "NeverAnswered", "message": "b has not answered yet", "lastTransitionTime": "2026-01-01T00:00:00Z" },
                ],
            },
        }))
        .unwrap()
    }

    fn node(name: &str, label: Option<&str>) -> KubeNode {
        let labels = label.map(|value| json!({ "web.traffic.example.com/unfit": value }));
        serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels } })).unwrap()
    }

    fn told() -> Watch {
        let nodes = [
            node("b", Some("true")),
            node("a", Some("true")),
            node("c", Some("false")),
            node("control-plane", None),
        ];
        Watch::of(&watch(), &nodes, Timestamp::from_second(1_000_012).unwrap())
    }

    #[test]
    fn nodes_are_told_with_what_decided_the_most_loaded_first() {
        assert_eq!(
            render(&[told()]),
            "\
TrafficWatch shop/web, limit 60%: 1 fit, 2 unfit, 1 without figures
  Measured is false, NeverAnswered: b has not answered yet
NODE  VERDICT  LOAD   INTERFACE  WHY       AGE  INTERFACES
a     unfit    80.4%  eth0       Measured  12s  eth0 of 1Gbit, by itself; excluded: lo
b     unfit    -      -          New       -    -
c     fit      -      -          -         -    -
"
        );
    }

    #[test]
    fn programs_get_the_same() {
        let json = serde_json::to_value(told()).unwrap();
        assert_eq!(json["nodes"][0]["percent"], 80.4);
        assert_eq!(json["nodes"][0]["verdict"], "unfit");
        assert_eq!(json["nodes"].as_array().unwrap().len(), 3, "{json}");
        assert_eq!(json["problems"][0]["reason"], "NeverAnswered");
    }

    #[test]
    fn nothing_there_is_said() {
        assert_eq!(render(&[]), "There are no TrafficWatches.\n");
        let mut bare = watch();
        bare.status = None;
        let text = render(&[Watch::of(&bare, &[], Timestamp::UNIX_EPOCH)]);
        assert!(text.contains("has not told anything yet"), "{text}");
        assert!(text.contains("no node has its label"), "{text}");
    }
}
