//! A cluster that is taken down leaves nothing on the machine, however it ended.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Child, Command},
};

use rustix::process::{Pid, Signal, kill_process};
use weir_lab::{
    cache::Cache,
    cluster::{Cluster, Options, cgroup, clear, layout::Layout, mounts},
    marks,
};

use super::probes;

/// A cluster of these tests' own; the others go on beside it.
const NAME: &str = "weir-victim";

fn cache() -> Cache {
    Cache::of_environment().unwrap()
}

fn layout() -> Layout {
    Layout::new(&cache(), NAME).unwrap()
}

fn up(nodes: u8) -> Cluster {
    let options = Options {
        name: NAME.to_owned(),
        nodes,
        add_ons: Vec::new(),
    };
    Cluster::up(&cache(), &options, &mut |_| {}).unwrap()
}

/// What of the machine a cluster uses, without what other clusters do meanwhile.
#[derive(Debug, PartialEq, Eq)]
struct Machine {
    processes: BTreeSet<i32>,
    mounts: BTreeSet<PathBuf>,
    cgroups: BTreeSet<PathBuf>,
    /// In the machine's own network namespace.
    interfaces: String,
    tables: String,
    settings: String,
    /// What containerd, CNI and the kubelet leave where everyone has their things.
    shared_places: BTreeSet<PathBuf>,
}

impl Machine {
    fn now() -> Self {
        let of_others = |path: &Path| {
            let text = path.to_string_lossy();
            let is_lab = text.contains("/run/weir-lab/") || text.contains("/clusters/");
            is_lab && !text.contains(NAME)
        };
        let entries = |directory: &str| -> Vec<PathBuf> {
            let read = fs::read_dir(directory).into_iter().flatten().flatten();
            read.map(|entry| entry.path()).collect()
        };
        let on_machine = |program: &[&str]| {
            let mut command = Command::new("nsenter");
            let output = command
                .arg("--net=/proc/1/ns/net")
                .args(program)
                .output()
                .unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let cgroups = cgroup::hierarchies()
            .into_iter()
            .map(|hierarchy| hierarchy.join(layout().cgroup()));
        let ours_in = |directory: &str| -> Vec<PathBuf> {
            let is_ours = |path: &PathBuf| {
                let target = fs::read_link(path).unwrap_or_default();
                path.to_string_lossy().contains(NAME)
                    || target.starts_with(layout().state_directory())
            };
            entries(directory).into_iter().filter(is_ours).collect()
        };
        let mut shared_places = BTreeSet::new();
        shared_places.extend(ours_in("/var/lib/cni/results"));
        shared_places.extend(ours_in("/var/log/containers"));
        shared_places.extend(ours_in("/run/weir-lab"));
        shared_places.extend(ours_in("/run/netns"));
        Self {
            processes: cgroup::processes(&layout().cgroup())
                .into_iter()
                .chain(
                    marks::of(layout().state_directory())
                        .iter()
                        .map(|process| process.pid),
                )
                .collect(),
            mounts: mounts::all()
                .into_iter()
                .map(|mount| mount.directory)
                .filter(|directory| !of_others(directory))
                .collect(),
            cgroups: cgroups.filter(|directory| directory.exists()).collect(),
            interfaces: on_machine(&["ip", "-o", "-br", "link"]),
            tables: on_machine(&["nft", "list", "tables"]),
            settings: [
                "vm/overcommit_memory",
                "kernel/panic",
                "kernel/panic_on_oops",
            ]
            .map(|name| fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap())
            .concat(),
            shared_places,
        }
    }
}

/// Network namespaces and shims' sockets of the cluster, which it has while it runs.
fn traces() -> (BTreeSet<u64>, Vec<PathBuf>) {
    let mut namespaces = BTreeSet::new();
    let mut sockets = Vec::new();
    for mount in mounts::below(&layout().run_directory()) {
        if mount.kind == "nsfs" {
            namespaces.insert(fs::metadata(&mount.directory).unwrap().ino());
        }
    }
    let tasks = layout()
        .run_directory()
        .join("n1/io.containerd.runtime.v2.task/k8s.io");
    for task in fs::read_dir(tasks).into_iter().flatten().flatten() {
        let address = fs::read_to_string(task.path().join("address")).unwrap_or_default();
        sockets.extend(address.strip_prefix("unix://").map(PathBuf::from));
    }
    (namespaces, sockets)
}

fn assert_no_trace_of(traces: &(BTreeSet<u64>, Vec<PathBuf>)) {
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        if let Ok(namespace) = fs::metadata(entry.path().join("ns/net")) {
            assert!(
                !traces.0.contains(&namespace.ino()),
                "{entry:?} is in a network of the cluster"
            );
        }
    }
    for socket in &traces.1 {
        assert!(!socket.exists(), "{}", socket.display());
    }
}

/// The next two take as long as two clusters take; one after the other, since they use one name.
#[test]
fn nothing_is_left_of_a_cluster_that_was_taken_down_or_killed() {
    Cluster::down(&cache(), NAME).unwrap();
    let before = Machine::now();
    assert!(!clear::is_needed(&layout()));

    taken_down_in_order(&before);
    killed_with_pods(&before);
    killed_halfway_and_taken_down(&before);
    killed_halfway_and_started_again(&before);
    assert!(
        !Cluster::down(&cache(), NAME).unwrap(),
        "there is nothing left to take down"
    );
}

fn with_a_pod() -> Cluster {
    let cluster = up(2);
    let again = up(2);
    assert_eq!(
        again.state(),
        cluster.state(),
        "a second `up` takes the running cluster"
    );
    probes::deploy(&cluster, "default", "app", 2);
    probes::ready_pods(&cluster, "default", "app", 2);
    cluster
}

fn taken_down_in_order(before: &Machine) {
    let cluster = with_a_pod();
    assert!(cluster.resident_memory() > 100 << 20);
    let traces = traces();
    assert!(
        traces.0.len() >= 5,
        "control plane, two nodes, two pods: {traces:?}"
    );
    assert!(!traces.1.is_empty());
    assert!(Cluster::down(&cache(), NAME).unwrap());
    assert_eq!(Machine::now(), *before);
    assert_no_trace_of(&traces);
}

fn killed_with_pods(before: &Machine) {
    with_a_pod();
    let traces = traces();
    kill_everything(None);
    assert!(Cluster::down(&cache(), NAME).unwrap());
    assert_eq!(Machine::now(), *before);
    assert_no_trace_of(&traces);
}

fn killed_halfway_and_taken_down(before: &Machine) {
    for part in ["kube-apiserver", "n1-containerd", "n1-kubelet"] {
        kill_everything(Some((starting(), part)));
        let traces = traces();
        assert!(Cluster::down(&cache(), NAME).unwrap());
        assert_eq!(Machine::now(), *before, "killed at {part}");
        assert_no_trace_of(&traces);
    }
}

fn killed_halfway_and_started_again(before: &Machine) {
    kill_everything(Some((starting(), "n1-kubelet")));
    let cluster = with_a_pod();
    drop(cluster);
    assert!(Cluster::down(&cache(), NAME).unwrap());
    assert_eq!(Machine::now(), *before);
}

fn starting() -> Child {
    Command::new(env!("CARGO_BIN_EXE_lab-up"))
        .args([NAME, "2"])
        .spawn()
        .unwrap()
}

/// Kills the starter when it has got to this part, and all processes of the cluster with their containers.
fn kill_everything(starter: Option<(Child, &str)>) {
    if let Some((mut child, part)) = starter {
        let is_there = || {
            marks::of(layout().state_directory())
                .iter()
                .any(|p| p.part == part)
        };
        assert!(marks::until(probes::PATIENCE, is_there), "no {part}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let processes = || Machine::now().processes;
    let all_are_gone = || {
        for pid in processes() {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        }
        processes().is_empty()
    };
    assert!(marks::until(probes::PATIENCE, all_are_gone));
}
