//! What happens to nodes, to a service's pods and to its TrafficWatch, each change with the time at which it was seen.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use weir_lab::cluster::Cluster;

use crate::kube::log::{Log, Noted, Read};

/// What place's labels end in.
const UNFIT: &str = ".traffic.example.com/unfit";

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fact {
    /// Place's labels on a node, by their keys.
    Node {
        name: String,
        unfit: BTreeMap<String, bool>,
    },
    /// What the watch says of each node.
    Figures(BTreeMap<String, Figures>),
    /// A pod.
    Pod(Pod),
}

/// What the watch says of one node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    pub(crate) percent: f64,
    pub(crate) transmit_total: u64,
    /// Whole seconds since 1970.
    pub(crate) time: u64,
}

/// A pod as it was then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) node: Option<String>,
    pub(crate) stage: Stage,
}

/// How far a pod has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Starting,
    /// Ready.
    Serving,
    /// On its way out, by the eviction API.
    Evicted,
    /// On its way out, otherwise.
    Ending,
    Gone,
}

/// How the pods of a node were moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moves {
    /// Those that were evicted.
    pub(crate) evicted: BTreeSet<String>,
    /// Those that went in another way.
    pub(crate) others: BTreeSet<String>,
    /// The most that were on their way out at once.
    pub(crate) most_at_once: u32,
    /// The fewest that were ready and stayed, since all were there for the first time.
    pub(crate) least_serving: u32,
    /// How many are ready at the end, on any other node.
    pub(crate) serving_elsewhere: u32,
}

/// Begins to watch the nodes, this watch, and the pods of its Deployment.
pub(crate) fn watch(cluster: &Cluster, namespace: &str, name: &str) -> Log<Fact> {
    let app = format!("-lapp={name}");
    let here = |what: &[&str]| -> Vec<String> {
        let all = ["-n", namespace].into_iter().chain(what.iter().copied());
        all.map(str::to_owned).collect()
    };
    Log::start(
        cluster,
        vec![
            (vec!["nodes".to_owned()], node as Read<Fact>),
            (here(&["trafficwatch", name]), figures as Read<Fact>),
            (here(&["pods", &app]), pod as Read<Fact>),
        ],
    )
}

/// When a node's label first said this, at `from` or after it.
pub(crate) fn labelled(
    notes: &[Noted<Fact>],
    node: &str,
    key: &str,
    is_unfit: bool,
    from: f64,
) -> Option<f64> {
    notes.iter().find_map(|(at, fact)| match fact {
        Fact::Node { name, unfit } if *at >= from && name == node => {
            (unfit.get(key) == Some(&is_unfit)).then_some(*at)
        }
        _ => None,
    })
}

/// What the watch said of a node since then, one for each reading.
pub(crate) fn readings(notes: &[Noted<Fact>], node: &str, from: f64) -> Vec<Figures> {
    let mut readings: Vec<Figures> = Vec::new();
    for (_, fact) in notes.iter().filter(|(at, _)| *at >= from) {
        let Fact::Figures(of_nodes) = fact else {
            continue;
        };
        let Some(figures) = of_nodes.get(node) else {
            continue;
        };
        if readings.last().is_none_or(|last| last.time != figures.time) {
            readings.push(*figures);
        }
    }
    readings
}

/// How the pods of this node were moved, of so many that there should be.
pub(crate) fn moves(notes: &[Noted<Fact>], from_node: &str, replicas: u32) -> Moves {
    let mut moves = Moves {
        least_serving: replicas,
        ..Moves::default()
    };
    let mut pods: BTreeMap<&str, &Pod> = BTreeMap::new();
    let mut all_were_there = false;
    for (_, fact) in notes {
        let Fact::Pod(pod) = fact else { continue };
        if pod.stage == Stage::Gone {
            pods.remove(pod.name.as_str());
        } else {
            pods.insert(&pod.name, pod);
        }
        if pod.node.as_deref() == Some(from_node) {
            match pod.stage {
                Stage::Evicted => moves.evicted.insert(pod.name.clone()),
                Stage::Ending => moves.others.insert(pod.name.clone()),
                Stage::Starting | Stage::Serving | Stage::Gone => false,
            };
        }
        let ending = count(&pods, |pod| {
            matches!(pod.stage, Stage::Evicted | Stage::Ending)
        });
        let serving = count(&pods, |pod| pod.stage == Stage::Serving);
        all_were_there |= serving >= replicas;
        moves.most_at_once = moves.most_at_once.max(ending);
        if all_were_there {
            moves.least_serving = moves.least_serving.min(serving);
        }
    }
    moves.serving_elsewhere = count(&pods, |pod| {
        pod.stage == Stage::Serving && pod.node.as_deref() != Some(from_node)
    });
    moves
}

fn count(pods: &BTreeMap<&str, &Pod>, is_it: impl Fn(&Pod) -> bool) -> u32 {
    let count = pods.values().filter(|pod| is_it(pod)).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn node(event: &Value) -> Option<Fact> {
    let metadata = &event["object"]["metadata"];
    let labels = metadata["labels"].as_object()?.iter();
    let unfit = labels
        .filter(|(key, _)| key.ends_with(UNFIT))
        .map(|(key, value)| (key.clone(), value == "true"))
        .collect();
    let name = metadata["name"].as_str()?.to_owned();
    Some(Fact::Node { name, unfit })
}

fn figures(event: &Value) -> Option<Fact> {
    let nodes = event["object"]["status"]["nodes"].as_object()?;
    let figures = nodes.iter().filter_map(|(name, node)| {
        let figures = Figures {
            percent: node["currentBandwidthPercent"].as_str()?.parse().ok()?,
            transmit_total: node["currentTransmitTotal"].as_u64()?,
            time: node["time"].as_u64()?,
        };
        Some((name.clone(), figures))
    });
    Some(Fact::Figures(figures.collect()))
}

fn pod(event: &Value) -> Option<Fact> {
    let pod = &event["object"];
    let conditions = pod["status"]["conditions"].as_array();
    let has = |kind: &str, reason: Option<&str>| {
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|it| {
            it["type"] == kind
                && it["status"] == "True"
                && reason.is_none_or(|reason| it["reason"] == reason)
        })
    };
    let is_leaving = !pod["metadata"]["deletionTimestamp"].is_null();
    let stage = if event["type"] == "DELETED" {
        Stage::Gone
    } else if is_leaving && has("DisruptionTarget", Some("EvictionByEvictionAPI")) {
        Stage::Evicted
    } else if is_leaving {
        Stage::Ending
    } else if has("Ready", None) {
        Stage::Serving
    } else {
        Stage::Starting
    };
    Some(Fact::Pod(Pod {
        name: pod["metadata"]["name"].as_str()?.to_owned(),
        node: pod["spec"]["nodeName"].as_str().map(str::to_owned),
        stage,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(name: &str, node: &str, stage: Stage) -> Noted<Fact> {
        let pod = Pod {
            name: name.to_owned(),
            node: Some(node.to_owned()),
            stage,
        };
        (0.0, Fact::Pod(pod))
    }

    #[test]
    fn pods_that_move_one_after_another_are_never_two_at_once() {
        let notes = [
            seen("a", "n1", Stage::Serving),
            seen("b", "n1", Stage::Serving),
            seen("a", "n1", Stage::Evicted),
            seen("c", "n2", Stage::Starting),
            seen("c", "n2", Stage::Serving),
            seen("a", "n1", Stage::Gone),
            seen("b", "n1", Stage::Evicted),
            seen("d", "n3", Stage::Serving),
            seen("b", "n1", Stage::Gone),
        ];
        let all = moves(&notes, "n1", 2);
        assert_eq!(all.evicted.len(), 2);
        assert_eq!((all.most_at_once, all.least_serving), (1, 1));
        assert_eq!((all.others.len(), all.serving_elsewhere), (0, 2));
    }

    #[test]
    fn two_at_once_and_another_way_to_go_are_seen() {
        let notes = [
            seen("a", "n1", Stage::Serving),
            seen("b", "n1", Stage::Serving),
            seen("a", "n1", Stage::Evicted),
            seen("b", "n1", Stage::Ending),
        ];
        let all = moves(&notes, "n1", 2);
        assert_eq!((all.most_at_once, all.least_serving), (2, 0));
        assert!(all.evicted.contains("a") && all.others.contains("b"));
    }

    #[test]
    fn events_are_understood() {
        let event = json!({"type": "MODIFIED", "object": {
            "metadata": {"name": "n1", "labels": {"x.traffic.example.com/unfit": "true", "other": "true"}},
        }});
        let Some(Fact::Node { name, unfit }) = node(&event) else {
            panic!("no node")
        };
        assert_eq!(name, "n1");
        assert_eq!(
            unfit,
            [("x.traffic.example.com/unfit".to_owned(), true)].into()
        );
        let event = json!({"object": {"status": {"nodes": {"n1": {
            "currentBandwidthPercent": "7.5e+01", "currentTransmitTotal": 12, "time": 100, "unfit": true,
        }}}}});
        let Some(Fact::Figures(nodes)) = figures(&event) else {
            panic!("no figures")
        };
        assert_eq!((nodes["n1"].transmit_total, nodes["n1"].time), (12, 100));
        assert!((nodes["n1"].percent - 75.0).abs() < 1e-9);
        assert_eq!(figures(&json!({"object": {}})), None);
        let event = json!({"type": "MODIFIED", "object": {
            "metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"nodeName": "n1"},
            "status": {"conditions": [
                {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"},
            ]},
        }});
        let Some(Fact::Pod(pod)) = pod(&event) else {
            panic!("no pod")
        };
        assert_eq!(
            (pod.stage, pod.node.as_deref()),
            (Stage::Evicted, Some("n1"))
        );
    }

    #[test]
    fn a_reading_is_counted_once_and_a_label_when_it_changed() {
        let figures = |time| Figures {
            percent: 1.0,
            transmit_total: 1,
            time,
        };
        let status = |at, time| (at, Fact::Figures([("n1".to_owned(), figures(time))].into()));
        let notes = [status(1.0, 1), status(2.0, 1), status(3.0, 3)];
        assert_eq!(readings(&notes, "n1", 0.0), [figures(1), figures(3)]);
        assert_eq!(readings(&notes, "n1", 2.5), [figures(3)]);
        assert_eq!(readings(&notes, "n2", 0.0), []);
        let label = |at, value| {
            let name = "n1".to_owned();
            let unfit = [("k".to_owned(), value)].into();
            (at, Fact::Node { name, unfit })
        };
        let notes = [label(1.0, false), label(2.0, true), label(3.0, true)];
        assert_eq!(labelled(&notes, "n1", "k", true, 0.0), Some(2.0));
        assert_eq!(labelled(&notes, "n1", "k", false, 1.5), None);
    }
}
