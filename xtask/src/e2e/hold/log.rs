//! What happened when: watches on the target, its pods and its ElastiService, each change noted with the time at which it was seen.
//!
//! Kubernetes' own times are whole seconds, which is too coarse for what a wake takes.

use std::{
    io::BufReader,
    process::{Child, Stdio},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use serde_json::Value;
use weir_lab::cluster::Cluster;

use super::{kube, target};

/// A watch that ended, say because the API server was away, is begun again after this time.
const AGAIN: Duration = Duration::from_millis(500);

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
pub(super) type Noted = (f64, Fact);

/// All that was seen since it was started.
pub(super) struct Log {
    notes: Arc<Notes>,
    watches: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Notes {
    all: Mutex<Vec<Noted>>,
    changed: Condvar,
    is_over: AtomicBool,
    children: Mutex<Vec<Child>>,
}

impl Log {
    /// Begins to watch.
    pub(super) fn start(cluster: &Cluster, namespace: &str) -> Self {
        let notes = Arc::new(Notes::default());
        let app = format!("-lapp={}", target::NAME);
        let watches = [
            (["deployment", target::NAME], replicas as Read),
            (["pods", &app], pod as Read),
            (["elastiservice", target::NAME], status as Read),
        ]
        .map(|(what, read)| {
            let what = ["-n", namespace].into_iter().chain(what);
            let what: Vec<String> = what.map(str::to_owned).collect();
            let (cluster, notes) = (cluster.clone(), Arc::clone(&notes));
            thread::spawn(move || notes.watch(&cluster, &what, read))
        });
        Self {
            notes,
            watches: watches.into(),
        }
    }

    /// Waits until this is found in what was seen; looks after each change.
    pub(super) fn until<T>(
        &self,
        patience: Duration,
        find: impl Fn(&[Noted]) -> Result<T, &'static str>,
    ) -> Result<T> {
        let deadline = Instant::now() + patience;
        let mut all = lock(&self.notes.all);
        loop {
            let missing = match find(&all) {
                Ok(found) => return Ok(found),
                Err(missing) => missing,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(anyhow!("not seen within {patience:?}: {missing}"));
            }
            let waited = self.notes.changed.wait_timeout(all, left);
            all = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.notes.is_over.store(true, Ordering::SeqCst);
        self.notes.end_children();
        for watch in self.watches.drain(..) {
            // One that panicked has noted less, and somebody missed it.
            let _ = watch.join();
        }
    }
}

type Read = fn(&Value) -> Option<Fact>;

impl Notes {
    fn watch(&self, cluster: &Cluster, what: &[String], read: Read) {
        while !self.is_over.load(Ordering::SeqCst) {
            let mut kubectl = cluster.kubectl();
            kubectl.args(["get", "--watch", "--output-watch-events", "-o", "json"]);
            kubectl.args(what).stdin(Stdio::null());
            let child = kubectl.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
            if let Ok(mut child) = child
                && let Some(output) = child.stdout.take()
            {
                lock(&self.children).push(child);
                if self.is_over.load(Ordering::SeqCst) {
                    self.end_children();
                }
                let events = serde_json::Deserializer::from_reader(BufReader::new(output));
                for event in events.into_iter::<Value>() {
                    let Ok(event) = event else { break };
                    if let Some(fact) = read(&event) {
                        lock(&self.all).push((kube::now(), fact));
                        self.changed.notify_all();
                    }
                }
            }
            if !self.is_over.load(Ordering::SeqCst) {
                thread::sleep(AGAIN);
            }
        }
    }

    fn end_children(&self) {
        for mut child in lock(&self.children).drain(..) {
            // One that has ended by itself is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
