//! What happened to the target, its pods and its ElastiService, and when.

use serde_json::Value;
use weir_lab::cluster::Cluster;

use super::target;
use crate::kube::log;

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// How many replicas are wanted.
    Replicas(u64),
    /// A pod of the target.
    Pod {
        /// Its name.
        name: String,
        /// Ready, and not on its way out.
        is_ready: bool,
    },
    /// What the operator says.
    Status {
        /// `serve` and `Serving`: requests go straight to the pods.
        is_serving: bool,
    },
}

/// A fact, and when it was seen.
pub(super) type Noted = log::Noted<Fact>;

/// All that was seen since it was started.
pub(super) type Log = log::Log<Fact>;

/// Begins to watch.
pub(super) fn start(cluster: &Cluster, namespace: &str) -> Log {
    let app = format!("-lapp={}", target::NAME);
    let watches = [
        (["deployment", target::NAME], replicas as log::Read<Fact>),
        (["pods", &app], pod as log::Read<Fact>),
        (["elastiservice", target::NAME], status as log::Read<Fact>),
    ]
    .map(|(what, read)| {
        let what = ["-n", namespace].into_iter().chain(what);
        (what.map(str::to_owned).collect(), read)
    });
    Log::start(cluster, watches.into())
}

fn replicas(event: &Value) -> Option<Fact> {
    event["object"]["spec"]["replicas"]
        .as_u64()
        .map(Fact::Replicas)
}

fn pod(event: &Value) -> Option<Fact> {
    let pod = &event["object"];
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let is_ready = conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
        && pod["metadata"]["deletionTimestamp"].is_null()
        && event["type"] != "DELETED";
    let name = pod["metadata"]["name"].as_str()?.to_owned();
    Some(Fact::Pod { name, is_ready })
}

fn status(event: &Value) -> Option<Fact> {
    let status = event["object"].get("status")?;
    let is_serving = status["mode"] == "serve" && status["phase"] == "Serving";
    Some(Fact::Status { is_serving })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_is_ready_until_it_is_told_to_go() {
        let seen = |kind: &str, gone: Value, ready: &str| {
            let event = json!({"type": kind, "object": {
                "metadata": {"name": "a", "deletionTimestamp": gone},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            }});
            matches!(pod(&event), Some(Fact::Pod { is_ready: true, .. }))
        };
        assert!(seen("MODIFIED", Value::Null, "True"));
        assert!(!seen("MODIFIED", Value::Null, "False"));
        assert!(!seen("MODIFIED", json!("2026-01-01T00:00:00Z"), "True"));
        assert!(!seen("DELETED", Value::Null, "True"));
    }

    #[test]
    fn what_is_not_there_yet_is_no_fact() {
        assert_eq!(status(&json!({"object": {"spec": {}}})), None);
        assert_eq!(replicas(&json!({"object": {"spec": {}}})), None);
        let asleep = json!({"object": {"status": {"mode": "proxy", "phase": "Asleep"}}});
        assert_eq!(status(&asleep), Some(Fact::Status { is_serving: false }));
        let deployment = json!({"object": {"spec": {"replicas": 0}}});
        assert_eq!(replicas(&deployment), Some(Fact::Replicas(0)));
    }
}
