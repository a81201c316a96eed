//! Whatever happens to `cargo xtask test`, its server goes.

use std::{
    os::unix::{fs::symlink, process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use weir_lab::{cache::Cache, marks};

/// The part that is started last, when all others are ready.
const LAST: &str = "kube-controller-manager";
/// A start takes some seconds on a quiet machine, an end as many at most.
const PATIENCE: Duration = Duration::from_mins(2);

#[test]
fn a_test_run_that_is_killed_leaves_no_server_behind() {
    ends_with_its_server(|run| {
        kill_process(pid_of(run), Signal::KILL).expect("it is there");
    });
}

#[test]
fn a_test_run_that_is_interrupted_leaves_no_server_behind() {
    // As Ctrl-C does: to all in the foreground.
    ends_with_its_server(|run| {
        kill_process_group(pid_of(run), Signal::INT).expect("it is there");
    });
}

/// Starts a run with a cache of its own, ends it like this once its server is up, and waits for the server's end.
fn ends_with_its_server(end: impl FnOnce(&Child)) {
    let home = tempfile::tempdir().expect("a directory");
    let tools = Cache::of_environment().expect("a cache").tools();
    symlink(tools, home.path().join("tools")).expect("a link to the built programs");

    let mut run = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["test", "role"])
        .env("WEIR_CACHE", home.path())
        .env_remove("WEIR_LAB_KUBECONFIG")
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("xtask runs");
    let is_up = marks::until(PATIENCE, || {
        parts_below(home.path()).contains(&LAST.to_owned())
    });
    assert!(is_up, "no server was started");

    end(&run);
    run.wait().expect("an end");
    let is_gone = marks::until(PATIENCE, || parts_below(home.path()).is_empty());
    assert!(is_gone, "still there: {:?}", parts_below(home.path()));
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// What runs of the lab with its state below this directory.
fn parts_below(directory: &Path) -> Vec<String> {
    marks::all()
        .into_iter()
        .filter(|process| process.server.starts_with(directory))
        .map(|process| process.part)
        .collect()
}
