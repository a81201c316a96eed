//! A part of the cluster is killed, paused, or restarted; parts are called as in `cargo xtask cluster status`.
//!
//! All processes of the part are meant but for the shims of containers, which outlive their containerd here as they do
//! elsewhere.

use std::{fs, time::Duration};

use rustix::process::Signal;

use crate::{
    cluster::{Cluster, ClusterError, containerd, launch::Launch},
    marks::{self, Marked},
};

/// How long a process may take to end when told to, or to be there; the machine may be busy.
const PATIENCE: Duration = Duration::from_mins(1);

/// Ends a part at once, without a chance to tidy up. Nobody starts it again: see [`start`].
pub fn kill(cluster: &Cluster, part: &str) -> Result<(), ClusterError> {
    let processes = find(cluster, part)?;
    send(&processes, Signal::KILL);
    await_end(cluster, part, &processes)
}

/// Starts a part as it was started before. Returns when its process is there; it may not be ready yet, but for a
/// containerd, whose kubelet may be started next.
pub fn start(cluster: &Cluster, part: &str) -> Result<(), ClusterError> {
    let layout = cluster.layout();
    let launch = Launch::of_part(layout, part).ok_or_else(|| no_such(cluster, part))?;
    launch.start(layout)?;
    let mut nodes = cluster.nodes().into_iter();
    let runtime = nodes.find(|node| node.part(containerd::PART) == part);
    let runs = || {
        marks::leader(layout.state_directory(), part).is_some()
            && runtime.is_none_or(|node| containerd::is_ready(layout, node))
    };
    if marks::until(PATIENCE, runs) {
        return Ok(());
    }
    Err(failed(
        cluster,
        part,
        "has ended as soon as it was started, or does not answer",
    ))
}

/// Ends a part politely, and starts it again.
pub fn restart(cluster: &Cluster, part: &str) -> Result<(), ClusterError> {
    let processes = find(cluster, part)?;
    send(&processes, Signal::TERM);
    if await_end(cluster, part, &processes).is_err() {
        kill(cluster, part)?;
    }
    start(cluster, part)
}

/// A part that stands still: its connections stay open, and nothing answers.
#[derive(Debug)]
#[must_use = "the part goes on when this is dropped"]
pub struct Paused {
    processes: Vec<Marked>,
}

/// Stops a part where it is, until the value is dropped.
pub fn pause(cluster: &Cluster, part: &str) -> Result<Paused, ClusterError> {
    let processes = find(cluster, part)?;
    send(&processes, Signal::STOP);
    let paused = Paused { processes };
    let is_stopped = |process: &Marked| state(process.pid) == Some('T');
    if marks::until(PATIENCE, || paused.processes.iter().all(is_stopped)) {
        return Ok(paused);
    }
    Err(failed(cluster, part, "cannot be stopped"))
}

impl Paused {
    /// Do its processes stand still now?
    pub fn is_so(&self) -> bool {
        let is_stopped = |process: &Marked| state(process.pid) == Some('T');
        self.processes.iter().all(is_stopped)
    }

    /// Lets it go on.
    pub fn resume(self) {}
}

impl Drop for Paused {
    fn drop(&mut self) {
        send(&self.processes, Signal::CONT);
    }
}

fn find(cluster: &Cluster, part: &str) -> Result<Vec<Marked>, ClusterError> {
    let is_shim = |process: &Marked| {
        let name = fs::read_to_string(format!("/proc/{}/comm", process.pid)).unwrap_or_default();
        name.starts_with("containerd-shim")
    };
    let found: Vec<Marked> = marks::of(cluster.layout().state_directory())
        .into_iter()
        .filter(|process| process.part == part && !is_shim(process))
        .collect();
    if found.is_empty() {
        return Err(no_such(cluster, part));
    }
    Ok(found)
}

fn send(processes: &[Marked], signal: Signal) {
    for process in processes {
        marks::send(process, signal);
    }
}

/// They may be children of ours that nobody has waited for: those show as zombies.
fn await_end(cluster: &Cluster, part: &str, processes: &[Marked]) -> Result<(), ClusterError> {
    let has_ended = |process: &Marked| matches!(state(process.pid), None | Some('Z' | 'X'));
    if marks::until(PATIENCE, || processes.iter().all(has_ended)) {
        return Ok(());
    }
    Err(failed(cluster, part, "does not end"))
}

/// `R`, `S`, `T` for stopped, `Z` for one that has ended: the third field of `/proc/…/stat`, after a name in brackets.
fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn no_such(cluster: &Cluster, part: &str) -> ClusterError {
    ClusterError::NoPart {
        part: part.to_owned(),
        known: cluster.parts().join(", "),
    }
}

fn failed(cluster: &Cluster, part: &str, what: &str) -> ClusterError {
    ClusterError::Part {
        part: part.to_owned(),
        what: what.to_owned(),
        lines: crate::cluster::launch::end_of_log(cluster.layout(), part),
    }
}
