//! Removes everything that a cluster has made, whether it is well, half started, or all its processes were killed.
//!
//! Nothing here relies on what a cluster has written down: processes are found by their marks and cgroups, the rest by
//! names that follow from the cluster's ([`Layout`]).

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::process::Signal;

use super::{
    ClusterError, add_on::rabbitmq, cgroup, kubelet, layout::Layout, machine, mounts, proxy,
};
use crate::{cache::Cache, marks};

/// Removes it all; nothing to remove is as good.
pub fn clear(cache: &Cache, layout: &Layout) -> Result<(), ClusterError> {
    end_processes(layout)?;
    remove_from_shared_places(layout);
    // Network namespaces are mounts in the run directory; with them go their interfaces, rules and cables.
    for directory in [layout.state_directory(), &layout.run_directory()] {
        mounts::remove_below(directory);
        remove(directory)?;
    }
    machine::restore(cache).map_err(|source| ClusterError::Directory {
        path: cache.clusters(),
        source,
    })
}

/// Is there anything to clear?
pub fn is_needed(layout: &Layout) -> bool {
    layout.state_directory().exists()
        || layout.run_directory().exists()
        || !marks::of(layout.state_directory()).is_empty()
        || cgroup::hierarchies()
            .iter()
            .any(|hierarchy| hierarchy.join(layout.cgroup()).exists())
}

fn end_processes(layout: &Layout) -> Result<(), ClusterError> {
    let directory = layout.state_directory();
    // One that a test has stopped would hear nothing else.
    for process in marks::of(directory) {
        marks::send(&process, Signal::CONT);
    }
    // Kubelets first, or they would start anew what we end; containerd by force, with all its containers: it would
    // only take longer to do the same.
    marks::end(directory, |part| {
        part.ends_with(kubelet::PART) || part.ends_with(proxy::PART)
    });
    // The broker would take 6 s to leave in order, for data that goes with it.
    for process in marks::of(directory) {
        if process.part == rabbitmq::PART || process.part == rabbitmq::EPMD {
            marks::send(&process, Signal::KILL);
        }
    }
    let cgroups_are_gone = cgroup::remove(&layout.cgroup());
    let left = marks::stop_with_keeper(directory);
    if left.is_empty() && cgroups_are_gone {
        return Ok(());
    }
    let mut left: Vec<i32> = left.iter().map(|process| process.pid).collect();
    left.extend(cgroup::processes(&layout.cgroup()));
    Err(ClusterError::Stuck(left))
}

/// What containerd, CNI and the kubelet leave where all clusters and others have their things.
fn remove_from_shared_places(layout: &Layout) {
    for entry in entries(&layout.run_directory()) {
        let tasks = entry.join("io.containerd.runtime.v2.task/k8s.io");
        for task in entries(&tasks) {
            if let Ok(address) = fs::read_to_string(task.join("address")) {
                let socket = address.trim();
                let _ = fs::remove_file(socket.strip_prefix("unix://").unwrap_or(socket));
            }
        }
    }
    let prefix = format!("weir-lab-{}-n", layout.name());
    let results = Path::new("/var/lib/cni/results");
    for file in entries(results) {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        // `<network>-<container>-eth0`, and beside it `cni-loopback-<container>-lo`.
        let container = name
            .strip_prefix(&prefix)
            .and_then(|rest| rest.split_once('-')?.1.strip_suffix("-eth0"));
        if let Some(container) = container {
            let _ = fs::remove_file(&file);
            let _ = fs::remove_file(results.join(format!("cni-loopback-{container}-lo")));
        }
    }
    for link in entries(Path::new("/var/log/containers")) {
        let target = fs::read_link(&link).unwrap_or_default();
        if target.starts_with(layout.state_directory()) {
            let _ = fs::remove_file(link);
        }
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(directory).into_iter().flatten().flatten();
    read.map(|entry| entry.path()).collect()
}

fn remove(directory: &Path) -> Result<(), ClusterError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ClusterError::Directory {
            path: directory.to_owned(),
            source: error,
        }),
        _ => Ok(()),
    }
}
