//! What a kubelet says at `/stats/summary` → the network counters of its pods.
//!
//! Pure. Of each pod some hundred bytes are kept; all else in the answer is passed over as it is read.

use std::collections::HashMap;

use jiff::Timestamp;
use serde::{Deserialize, de::IgnoredAny};
use thiserror::Error;

use super::quiet::Counters;

/// The counters of a pod, and since when they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodCounters {
    /// The counters.
    pub counters: Counters,
    /// When the pod's network was made: they began at zero.
    pub started: Option<Timestamp>,
}

/// The pods of a node, by UID; those without network counters are left out.
pub type Summary = HashMap<String, PodCounters>;

/// An answer of somebody else, or of a kubelet that has become another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the answer is not a kubelet's summary; see whether its port is the right one")]
pub struct NotASummary;

#[derive(Deserialize)]
struct Answer {
    /// Its presence tells a summary from any other JSON.
    #[serde(rename = "node")]
    _node: IgnoredAny,
    pods: Option<Vec<Pod>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pod {
    #[serde(rename = "podRef")]
    reference: Reference,
    start_time: Option<Timestamp>,
    network: Option<Network>,
}

#[derive(Deserialize)]
struct Reference {
    uid: String,
}

#[derive(Deserialize)]
struct Network {
    time: Option<Timestamp>,
    /// The one that the kubelet takes for the first.
    #[serde(flatten)]
    first: Interface,
    /// All of them, or all others: that depends on whom the kubelet asked.
    interfaces: Option<Vec<Interface>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Interface {
    #[serde(default)]
    name: String,
    rx_bytes: Option<u64>,
    tx_bytes: Option<u64>,
}

/// The pods in an answer.
pub fn read(body: &[u8]) -> Result<Summary, NotASummary> {
    let answer: Answer = serde_json::from_slice(body).map_err(|_| NotASummary)?;
    let mut summary = Summary::new();
    for pod in answer.pods.unwrap_or_default() {
        let Some(counters) = pod.network.and_then(Network::counters) else {
            continue;
        };
        let found = PodCounters {
            counters,
            started: pod.start_time,
        };
        // One that was made anew may still be there as it was.
        let known = summary.entry(pod.reference.uid).or_insert(found);
        if known.started < found.started {
            *known = found;
        }
    }
    Ok(summary)
}

impl Network {
    /// Of all interfaces together: a Service leads to the first, but who uses another is not idle either. None where any of
    /// them is not counted.
    fn counters(self) -> Option<Counters> {
        let mut all: Vec<Interface> = self.interfaces.unwrap_or_default();
        let is_named = !self.first.name.is_empty();
        if is_named && all.iter().all(|other| other.name != self.first.name) {
            all.push(self.first);
        }
        if all.is_empty() {
            return None;
        }
        let mut counters = Counters {
            at: self.time?,
            received: 0,
            sent: 0,
        };
        for interface in all {
            counters.received = counters.received.saturating_add(interface.rx_bytes?);
            counters.sent = counters.sent.saturating_add(interface.tx_bytes?);
        }
        Some(counters)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn read_json(pods: &Value) -> Summary {
        let body = json!({"node": {"nodeName": "n1", "cpu": {}}, "pods": pods});
        read(body.to_string().as_bytes()).unwrap()
    }

    fn interface(name: &str, received: u64, sent: u64) -> Value {
        json!({"name": name, "rxBytes": received, "rxErrors": 0, "txBytes": sent, "txErrors": 0})
    }

    fn pod(uid: &str, network: &Value) -> Value {
        json!({
            "podRef": {"name": "web-1", "namespace": "shop", "uid": uid},
            "startTime": "2026-11-18T12:00:00Z",
            "containers": [{"name": "web", "cpu": {"usageNanoCores": 1}}],
            "network": network,
            "volume": [{"name": "token", "usedBytes": 7}],
        })
    }

    fn with(mut first: Value, interfaces: Value) -> Value {
        first["time"] = "2026-11-18T12:00:10Z".into();
        first["interfaces"] = interfaces;
        first
    }

    #[test]
    fn the_counters_of_a_pod_with_their_time_and_their_beginning() {
        let eth0 = interface("eth0", 1000, 200);
        let summary = read_json(&json!([pod("a", &with(eth0.clone(), json!([eth0])))]));
        let expected = PodCounters {
            counters: Counters {
                at: "2026-11-18T12:00:10Z".parse().unwrap(),
                received: 1000,
                sent: 200,
            },
            started: "2026-11-18T12:00:00Z".parse().ok(),
        };
        assert_eq!(summary, Summary::from([("a".to_owned(), expected)]));
    }

    #[test]
    fn each_interface_counts_once_whoever_lists_them() {
        let [eth0, net1] = [interface("eth0", 1, 2), interface("net1", 30, 40)];
        for network in [
            // As cAdvisor has it, and as container runtimes do.
            with(eth0.clone(), json!([eth0, net1])),
            with(eth0.clone(), json!([net1])),
            // None of them is called eth0.
            with(json!({"name": ""}), json!([eth0, net1])),
        ] {
            let summary = read_json(&json!([pod("a", &network)]));
            let counters = summary["a"].counters;
            assert_eq!((counters.received, counters.sent), (31, 42), "{network}");
        }
        let summary = read_json(&json!([pod("a", &with(eth0, Value::Null))]));
        assert_eq!(summary["a"].counters.received, 1);
    }

    #[test]
    fn a_pod_that_is_not_counted_is_left_out() {
        let eth0 = interface("eth0", 1, 2);
        for network in [
            Value::Null,
            json!({}),
            json!({"time": null, "name": "eth0", "rxBytes": 1, "txBytes": 1}),
            with(json!({"name": "eth0", "rxBytes": 1}), Value::Null),
            with(eth0, json!([{"name": "net1", "txBytes": 1}])),
        ] {
            let pods = json!([pod("a", &network)]);
            assert_eq!(read_json(&pods), Summary::new(), "{network}");
        }
        assert_eq!(read_json(&Value::Null), Summary::new());
    }

    #[test]
    fn of_a_pod_that_is_there_twice_the_newer_one_counts() {
        let old = pod("a", &with(interface("eth0", 9, 9), Value::Null));
        let mut new = pod("a", &with(interface("eth0", 1, 1), Value::Null));
        new["startTime"] = "2026-11-18T12:00:05Z".into();
        for pods in [json!([old, new]), json!([new, old])] {
            assert_eq!(read_json(&pods)["a"].counters.received, 1);
        }
    }

    #[test]
    fn anything_else_is_no_summary() {
        let cut = r#"{"node": {}, "pods": [{"podRef": "#;
        let negative = json!({"node": {}, "pods": [pod("a", &json!({"rxBytes": -1}))]});
        for body in [
            "",
            "null",
            "[]",
            "{}",
            r#"{"pods": []}"#,
            "<html>",
            cut,
            &negative.to_string(),
        ] {
            assert_eq!(read(body.as_bytes()), Err(NotASummary), "{body}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(body in proptest::collection::vec(any::<u8>(), 0..200), at in 0_usize..400) {
            let _ = read(&body);
            let eth0 = interface("eth0", u64::MAX, u64::MAX);
            let network = with(eth0.clone(), json!([eth0, interface("net1", 1, 1)]));
            let mut good = json!({"node": {}, "pods": [pod("a", &network)]}).to_string().into_bytes();
            good.truncate(at);
            let _ = read(&good);
        }
    }
}
