//! A cgroup for each node: everything that the node starts is in it, which is how it is found again.
//!
//! A container does not carry our mark in its environment ([`crate::marks`]), but it cannot leave its node's cgroup.
//! With cgroup v1 the same directory exists in every hierarchy; with v2 there is one.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::mounts;
use crate::marks;

/// How long killed processes may take to leave their cgroup.
const PATIENCE: Duration = Duration::from_mins(1);
/// Where the daemons of a node are, beside the pods that its kubelet puts into others.
const DAEMONS: &str = "daemons";

/// Makes this cgroup in every hierarchy, with a place for daemons in it.
pub fn create(path: &Path) -> io::Result<()> {
    for hierarchy in hierarchies() {
        let mut directory = hierarchy.clone();
        for component in path.join(DAEMONS).components() {
            let parent = directory.clone();
            directory.push(component);
            fs::create_dir_all(&directory)?;
            inherit(&parent, &directory);
        }
    }
    Ok(())
}

/// A new cpuset of v1 is empty and refuses processes; in v2 a parent hands controllers down only when told.
/// Where neither is there, there is nothing to do.
fn inherit(parent: &Path, child: &Path) {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        if let Ok(value) = fs::read(parent.join(file)) {
            let _ = fs::write(child.join(file), value);
        }
    }
    if let Ok(controllers) = fs::read_to_string(parent.join("cgroup.controllers")) {
        for controller in controllers.split_whitespace() {
            let _ = fs::write(
                parent.join("cgroup.subtree_control"),
                format!("+{controller}"),
            );
        }
    }
}

/// The files that a daemon of this cgroup writes its process id to before it becomes what it is.
pub fn files_to_join(path: &Path) -> Vec<PathBuf> {
    let file = |hierarchy: PathBuf| hierarchy.join(path).join(DAEMONS).join("cgroup.procs");
    hierarchies().into_iter().map(file).collect()
}

/// All processes in this cgroup and below.
pub fn processes(path: &Path) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    for hierarchy in hierarchies() {
        for directory in below(&hierarchy.join(path)) {
            let listed = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
            found.extend(listed.lines().filter_map(|pid| pid.parse::<i32>().ok()));
        }
    }
    // A process of another pid namespace shows as 0, which would be ourselves.
    found.remove(&0);
    found
}

/// Kills all that is in this cgroup and removes it; says whether it is gone.
pub fn remove(path: &Path) -> bool {
    marks::until(PATIENCE, || {
        for pid in processes(path) {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let mut gone = true;
        for hierarchy in hierarchies() {
            // The innermost first: a cgroup with another in it cannot be removed.
            for directory in below(&hierarchy.join(path)).iter().rev() {
                let _ = fs::remove_dir(directory);
            }
            gone &= !hierarchy.join(path).exists();
        }
        gone
    })
}

/// The directory and all below it, outer ones first; nothing if it does not exist.
fn below(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut all = vec![directory.to_owned()];
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            all.extend(below(&entry.path()));
        }
    }
    all
}

/// Where the hierarchies are mounted.
pub fn hierarchies() -> Vec<PathBuf> {
    let is_cgroup = |mount: &mounts::Mount| mount.kind == "cgroup" || mount.kind == "cgroup2";
    let all = mounts::all().into_iter().filter(is_cgroup);
    all.map(|mount| mount.directory).collect()
}
