//! What a cluster changes on the machine as a whole, and how it is put back: kernel settings and shared directories.
//!
//! The kubelet writes some kernel settings, and containerd, CNI and the kubelet make directories outside of ours. The
//! first cluster on a machine notes how it was; the last one to go puts it back.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::cache::Cache;

const FILE: &str = "machine.json";
const SETTINGS: [&str; 6] = [
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
];
/// Inner ones first, the order in which they are removed.
const SHARED_DIRECTORIES: [&str; 8] = [
    "/run/containerd/s",
    "/run/containerd",
    "/var/lib/cni/results",
    "/var/lib/cni",
    "/var/log/containers",
    "/var/lib/kubelet/device-plugins",
    "/var/lib/kubelet",
    "/run/weir-lab",
];
/// Every kubelet of the machine makes this one, whatever its own directory is.
const DEVICE_PLUGINS: &str = "/var/lib/kubelet/device-plugins/kubelet.sock";

/// How the machine was before its first cluster.
#[derive(Debug, Serialize, Deserialize)]
struct Machine {
    settings: BTreeMap<String, String>,
    /// Directories that were not there.
    absent: Vec<PathBuf>,
}

/// Notes how the machine is, unless a cluster that still exists has done so.
pub fn remember(cache: &Cache) -> io::Result<()> {
    let directory = cache.clusters();
    fs::create_dir_all(&directory)?;
    let _alone = lock(&directory)?;
    if directory.join(FILE).exists() {
        return Ok(());
    }
    let value = |name: &&str| {
        let value = fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?;
        Some(((*name).to_owned(), value.trim().to_owned()))
    };
    let machine = Machine {
        settings: SETTINGS.iter().filter_map(value).collect(),
        absent: SHARED_DIRECTORIES
            .iter()
            .map(PathBuf::from)
            .filter(|directory| !directory.exists())
            .collect(),
    };
    let unfinished = directory.join("machine.json.new");
    fs::write(&unfinished, serde_json::to_vec_pretty(&machine)?)?;
    fs::rename(unfinished, directory.join(FILE))
}

/// Puts the machine back as it was, if no cluster is left; the caller has removed its own state directory.
pub fn restore(cache: &Cache) -> io::Result<()> {
    let directory = cache.clusters();
    if !directory.exists() {
        return Ok(());
    }
    let _alone = lock(&directory)?;
    let another = fs::read_dir(&directory)?
        .flatten()
        .any(|entry| entry.path().is_dir());
    let Ok(text) = fs::read(directory.join(FILE)) else {
        return Ok(());
    };
    if another {
        return Ok(());
    }
    let machine: Machine = serde_json::from_slice(&text)?;
    for (name, value) in &machine.settings {
        let path = Path::new("/proc/sys").join(name);
        if fs::read_to_string(&path).is_ok_and(|now| now.trim() != value) {
            fs::write(path, value)?;
        }
    }
    let made_by_us = |path: &str| {
        machine
            .absent
            .iter()
            .any(|absent| absent == Path::new(path))
    };
    if made_by_us("/var/lib/kubelet/device-plugins") {
        let _ = fs::remove_file(DEVICE_PLUGINS);
    }
    for path in SHARED_DIRECTORIES.iter().filter(|path| made_by_us(path)) {
        // One that others use by now is not empty, and stays.
        let _ = fs::remove_dir(path);
    }
    fs::remove_file(directory.join(FILE))
}

fn lock(directory: &Path) -> io::Result<File> {
    let file = File::create(directory.join("machine.lock"))?;
    file.lock()?;
    Ok(file)
}
