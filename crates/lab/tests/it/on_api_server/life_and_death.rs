//! However a user ends, its server ends with the last of them, and the next start works.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use weir_lab::{keeper, marks};

use super::victim::{Starting, Victim, assert_all_gone, part, wait_for_no_part, wait_for_part};

/// A state directory for one test.
fn directory() -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("server");
    (home, directory)
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn ctrl_c_leaves_nothing_behind_and_the_next_start_works() {
    let (_home, directory) = directory();
    Victim::start(&directory).signal_group(Signal::INT);
    // Not waited for: the next user has to cope with a keeper at work.
    let next = Victim::start(&directory);
    assert!(next.serves());
    next.leave();
    assert_all_gone(&directory);
}

#[test]
fn a_user_that_is_killed_or_panics_leaves_nothing_behind() {
    let (_home, directory) = directory();
    Victim::start(&directory).signal(Signal::KILL);
    assert_all_gone(&directory);
    Victim::start(&directory).panic();
    assert_all_gone(&directory);
}

#[test]
fn a_user_that_is_killed_while_it_starts_the_server_leaves_nothing_behind() {
    let (_home, directory) = directory();
    let user = Starting::spawn(&directory);
    wait_for_part(&directory, "kube-apiserver");
    user.signal(Signal::KILL);
    assert_all_gone(&directory);
}

#[test]
fn two_that_start_at_once_get_one_server_and_it_outlives_the_first_to_leave() {
    let (_home, directory) = directory();
    let (first, second) = (Starting::spawn(&directory), Starting::spawn(&directory));
    assert_ne!(first.id(), second.id());
    let (first, second) = (first.ready(), second.ready());
    assert_eq!(first.kubeconfig, second.kubeconfig);
    for name in weir_lab::control_plane::PARTS {
        assert_eq!(part(&directory, name).len(), 1, "{name}");
    }
    first.signal(Signal::KILL);
    assert!(second.serves());
    assert!(!part(&directory, marks::KEEPER).is_empty());
    second.leave();
    assert_all_gone(&directory);
}

#[test]
fn without_a_keeper_the_next_start_clears_up() {
    let (_home, directory) = directory();
    let user = Victim::start(&directory);
    let old: Vec<i32> = part(&directory, "etcd");
    for keeper in part(&directory, marks::KEEPER) {
        kill(keeper);
    }
    wait_for_no_part(&directory, marks::KEEPER);
    user.signal(Signal::KILL);
    assert_eq!(part(&directory, "etcd"), old, "nobody was there to stop it");
    for pid in part(&directory, "kube-apiserver") {
        kill(pid);
    }

    let next = Victim::start(&directory);
    assert!(next.serves());
    assert_ne!(part(&directory, "etcd"), old);
    next.leave();
    assert_all_gone(&directory);
}

#[test]
fn a_server_that_lost_its_keeper_gets_a_new_one_with_the_next_user() {
    let (_home, directory) = directory();
    let first = Victim::start(&directory);
    for keeper in part(&directory, marks::KEEPER) {
        kill(keeper);
    }
    wait_for_no_part(&directory, marks::KEEPER);
    let second = Victim::start(&directory);
    assert_eq!(part(&directory, marks::KEEPER).len(), 1);
    assert_eq!(part(&directory, "etcd").len(), 1);
    first.leave();
    second.leave();
    assert_all_gone(&directory);
}

#[test]
fn servers_without_user_and_keeper_are_swept_away() {
    let (home, directory) = directory();
    let user = Victim::start(&directory);
    keeper::sweep(home.path());
    assert!(user.serves(), "one that is used is not swept");
    for keeper in part(&directory, marks::KEEPER) {
        kill(keeper);
    }
    wait_for_no_part(&directory, marks::KEEPER);
    user.signal(Signal::KILL);
    assert!(!marks::of(&directory).is_empty());
    keeper::sweep(home.path());
    assert_all_gone(&directory);
}

#[test]
fn a_state_directory_deleted_under_a_running_server_leaves_no_process_behind() {
    let (home, directory) = directory();
    let user = Victim::start(&directory);
    drop(home);
    user.leave();
    assert_all_gone(&directory);
}

#[test]
fn a_server_held_by_hand_stays_until_it_is_released() {
    let (_home, directory) = directory();
    let user = Victim::start(&directory);
    keeper::hold(&directory).unwrap();
    let kubeconfig = user.kubeconfig.clone();
    user.leave();
    let next = Victim::start(&directory);
    assert_eq!(next.kubeconfig, kubeconfig);
    assert!(next.serves());
    next.leave();
    assert!(!part(&directory, "etcd").is_empty());
    assert!(marks::release(&directory).is_empty());
    assert_all_gone(&directory);
}

#[test]
fn a_state_file_that_names_a_stranger_does_the_stranger_no_harm() {
    let (_home, directory) = directory();
    let mut stranger = Command::new("sleep")
        .arg("600")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    fs::create_dir_all(&directory).unwrap();
    let stale = serde_json::json!({
        "kubernetes": weir_lab::tools::KUBERNETES.version,
        "url": "https://127.0.0.1:1",
        "started_in_milliseconds": 1,
        "pids": {"etcd": stranger.id(), "kube-apiserver": stranger.id()},
    });
    fs::write(directory.join("state.json"), stale.to_string()).unwrap();

    let user = Victim::start(&directory);
    assert!(user.serves());
    user.leave();
    assert_all_gone(&directory);
    assert!(
        stranger.try_wait().unwrap().is_none(),
        "the stranger was ended"
    );
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}
