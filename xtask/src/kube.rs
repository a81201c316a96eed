//! What is asked of a cluster, by way of kubectl; [`log`] is what happened in it, and when.

pub(crate) mod log;

use std::{
    process::Stdio,
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use weir_lab::cluster::Cluster;

const GLANCE: Duration = Duration::from_millis(200);

/// What kubectl wrote; it must have succeeded.
pub(crate) fn run(cluster: &Cluster, arguments: &[&str]) -> Result<String> {
    let mut kubectl = cluster.kubectl();
    let output = kubectl.args(arguments).stdin(Stdio::null()).output();
    let output = output.context("cannot run kubectl")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("kubectl {} failed: {}", arguments.join(" "), said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Objects as `kubectl get -o json` gives them.
pub(crate) fn get(cluster: &Cluster, arguments: &[&str]) -> Result<Value> {
    let text = run(cluster, &[&["get", "-o", "json"], arguments].concat())?;
    serde_json::from_str(&text).context("kubectl wrote no JSON")
}

/// Waits until all pods of a Deployment are new and ready.
pub(crate) fn rolled_out(
    cluster: &Cluster,
    namespace: &str,
    deployment: &str,
    patience: Duration,
) -> Result<()> {
    let timeout = format!("--timeout={}s", patience.as_secs());
    let deployment = format!("deployment/{deployment}");
    let arguments = ["-n", namespace, "rollout", "status", &deployment, &timeout];
    run(cluster, &arguments).map(drop)
}

/// Looks until there is an answer; the last reason why there was none is told if it takes too long.
pub(crate) fn until<T>(
    patience: Duration,
    what: &str,
    mut look: impl FnMut() -> Result<T>,
) -> Result<T> {
    let deadline = Instant::now() + patience;
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(error) if Instant::now() >= deadline => {
                return Err(error.context(format!("not within {patience:?}: {what}")));
            }
            Err(_) => thread::sleep(GLANCE),
        }
    }
}

/// Seconds since 1970. All nodes share this machine's clock, so times can be compared.
pub(crate) fn now() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}
