//! What is broken while the target goes to zero and back, and which failures that explains.

use std::{
    fs,
    hash::{BuildHasher, RandomState},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use weir_lab::{
    cluster::cgroup,
    control_plane,
    fault::{link, process},
};

use super::site::node_to_lose;
use crate::{
    cli::Fault,
    kube,
    load::report::Failure,
    site::{NAMESPACE, Site},
};

/// About what a cycle takes: the fault comes at any moment of it.
const WITHIN_MILLISECONDS: u64 = 10_000;
/// Longer than a Lease.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long the API server or a node is away.
const AWAY: Duration = Duration::from_secs(20);
/// After a node was lost, so long may new connections still be led to it.
const NODE_NOTICED_SECONDS: f64 = 5.0;
/// Clocks are read a little after things happen.
const BLUR_SECONDS: f64 = 0.1;

/// Breaks it at a random moment, mends it if that is ours to do, and says when it was.
pub(super) fn strike(site: &Site, fault: Fault) -> Result<f64> {
    let random = RandomState::new().hash_one(kube::now().to_bits());
    thread::sleep(Duration::from_millis(random % WITHIN_MILLISECONDS));
    match fault {
        // The one that was killed in the last cycle may still be named: the Lease runs on for a while.
        Fault::Operator => {
            let leader = kube::until(PATIENCE, "an operator that runs leads", || leader(site))?;
            kill(site, &leader)
        }
        Fault::Resolver => kill(site, &resolver(site, random)?),
        Fault::Api => {
            let [_, api_server, _] = control_plane::PARTS;
            let struck = kube::now();
            let paused = process::pause(&site.cluster, api_server)?;
            thread::sleep(AWAY);
            paused.resume();
            Ok(struck)
        }
        Fault::Node => {
            let struck = kube::now();
            let cut = link::partition(&site.cluster, node_to_lose())?;
            thread::sleep(AWAY);
            cut.mend()?;
            Ok(struck)
        }
    }
}

/// Puts new pods in the place of those that had to start again, and waits until all are ready: the kubelet lets one that
/// ends in every cycle wait longer each time, up to five minutes, and nobody's parts break every half a minute.
pub(super) fn renew(site: &Site) -> Result<()> {
    for component in ["operator", "resolver"] {
        let selector = format!("-lapp.kubernetes.io/component={component}");
        let pods = kube::get(&site.cluster, &["-n", NAMESPACE, "pods", &selector])?;
        for pod in pods["items"].as_array().into_iter().flatten() {
            let containers = pod["status"]["containerStatuses"].as_array();
            let mut containers = containers.into_iter().flatten();
            let has_restarted = containers.any(|it| it["restartCount"].as_u64() > Some(0));
            if let (true, Some(name)) = (has_restarted, pod["metadata"]["name"].as_str()) {
                kube::run(
                    &site.cluster,
                    &["-n", NAMESPACE, "delete", "pod", name, "--wait=false"],
                )?;
            }
        }
    }
    site.rolled_out("weir-resolver")?;
    site.rolled_out("weir-operator")
}

/// Is this failure what the fault does to anybody, however good we are?
pub(super) fn explains(fault: Fault, struck: f64, failure: &Failure, started: f64) -> bool {
    let sent = started + failure.at_seconds;
    let ended = sent + failure.took_seconds;
    match fault {
        // What was on the connections of the one that was killed.
        Fault::Resolver => {
            let is_lost = matches!(failure.outcome.as_str(), "cut" | "reset");
            is_lost && sent <= struck + BLUR_SECONDS && ended >= struck - BLUR_SECONDS
        }
        // Nothing comes from a node that is cut off, so whoever got an answer was not sent there. A new connection may
        // be led there for some seconds; one that was there before stays, and nobody can tell its client.
        Fault::Node => {
            let words = ["time-out", "unreachable", "route to host"];
            let is_silence = words.iter().any(|word| failure.outcome.contains(word));
            let until = match failure.link.as_str() {
                "kept-to-proxy" => AWAY.as_secs_f64(),
                _ => NODE_NOTICED_SECONDS,
            };
            let is_then = sent < struck + until && ended >= struck - BLUR_SECONDS;
            is_silence && is_then
        }
        Fault::Operator | Fault::Api => false,
    }
}

fn leader(site: &Site) -> Result<String> {
    let lease = kube::get(&site.cluster, &["-n", NAMESPACE, "lease", "weir-operator"])?;
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    let pods = pods(site, "operator")?;
    let leads = |pod: &String| holder.contains(pod.as_str());
    let found = pods.into_iter().find(leads);
    found.with_context(|| format!("no operator's pod is {holder:?}, who leads"))
}

fn resolver(site: &Site, random: u64) -> Result<String> {
    let pods = pods(site, "resolver")?;
    let count = u64::try_from(pods.len()).unwrap_or(1).max(1);
    let chosen = usize::try_from(random % count).unwrap_or(0);
    pods.into_iter().nth(chosen).context("there is no resolver")
}

/// Those that run and stay.
fn pods(site: &Site, component: &str) -> Result<Vec<String>> {
    let selector = format!("-lapp.kubernetes.io/component={component}");
    let pods = kube::get(&site.cluster, &["-n", NAMESPACE, "pods", &selector])?;
    let items = pods["items"].as_array().into_iter().flatten();
    let stays = |pod: &&serde_json::Value| {
        let containers = pod["status"]["containerStatuses"].as_array();
        let mut containers = containers.into_iter().flatten();
        pod["metadata"]["deletionTimestamp"].is_null() && containers.all(|it| it["ready"] == true)
    };
    let name = |pod: &serde_json::Value| pod["metadata"]["name"].as_str().map(str::to_owned);
    Ok(items.filter(stays).filter_map(name).collect())
}

/// SIGKILL to the pod's process, as if it had crashed: not even the kubelet knows beforehand. Says when it was.
fn kill(site: &Site, pod: &str) -> Result<f64> {
    let mark = format!("POD_NAME={pod}");
    for node in site.cluster.nodes() {
        for process in cgroup::processes(&site.cluster.layout().node_cgroup(node)) {
            let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            let is_marked = environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == mark.as_bytes());
            if is_marked && let Some(process) = Pid::from_raw(process) {
                let struck = kube::now();
                let killed = kill_process(process, Signal::KILL);
                return killed
                    .map(|()| struck)
                    .with_context(|| format!("cannot kill {pod}"));
            }
        }
    }
    bail!("{pod} has no process");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(at_seconds: f64, took_seconds: f64, outcome: &str) -> Failure {
        Failure {
            at_seconds,
            took_seconds,
            outcome: outcome.to_owned(),
            link: "new".to_owned(),
        }
    }

    #[test]
    fn a_killed_resolver_explains_what_was_open_then_and_nothing_else() {
        let explained = |failure: &Failure| explains(Fault::Resolver, 110.0, failure, 100.0);
        assert!(explained(&failure(8.0, 2.0, "cut")));
        assert!(explained(&failure(9.9, 0.1, "reset")));
        assert!(!explained(&failure(8.0, 1.0, "cut")), "it ended before");
        assert!(!explained(&failure(11.0, 1.0, "cut")), "it began later");
        assert!(!explained(&failure(8.0, 2.0, "status 503")));
    }

    #[test]
    fn a_lost_node_explains_five_seconds_and_other_faults_nothing() {
        let early = failure(14.0, 3.0, "time-out");
        let late = failure(15.5, 3.0, "time-out");
        assert!(explains(Fault::Node, 110.0, &early, 100.0));
        assert!(!explains(Fault::Node, 110.0, &late, 100.0));
        let kept = Failure {
            link: "kept-to-proxy".to_owned(),
            ..late
        };
        assert!(explains(Fault::Node, 110.0, &kept, 100.0));
        let answered = failure(11.0, 0.1, "status 503");
        assert!(!explains(Fault::Node, 110.0, &answered, 100.0));
        for fault in [Fault::Operator, Fault::Api] {
            assert!(!explains(fault, 110.0, &early, 100.0));
        }
    }
}
