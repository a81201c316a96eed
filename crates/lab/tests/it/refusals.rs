//! What a user hears when there can be no server. These need no real programs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use weir_lab::{
    cache::Cache,
    marks,
    server::{Server, StartError},
    tools::Programs,
};

/// Programs of which etcd is this script.
fn programs(home: &Path, etcd: &str) -> Programs {
    let (text, path) = (home.join("text"), home.join("etcd"));
    fs::write(&text, format!("#!/bin/sh\n{etcd}\n")).unwrap();
    // By another process: a file that this one has open to write, and with it a child that another thread starts just
    // then, cannot be executed.
    let mut install = Command::new("install");
    let installed = install.arg("--mode=755").args([&text, &path]).status();
    assert!(installed.unwrap().success());
    Programs {
        etcd: path,
        kube_apiserver: PathBuf::from("/nonexistent/kube-apiserver"),
        kube_controller_manager: PathBuf::from("/nonexistent/kube-controller-manager"),
        kubectl: PathBuf::from("/nonexistent/kubectl"),
    }
}

#[test]
fn a_server_that_cannot_start_is_reported_with_the_end_of_its_log() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("server");
    let programs = programs(home.path(), "echo 'the disk is on fire'; exit 3");
    let error = Server::take(&directory, &programs).unwrap_err().to_string();
    assert!(
        error.contains("etcd has ended with exit status: 3"),
        "{error}"
    );
    assert!(error.contains("the disk is on fire"), "{error}");

    let gone = || marks::of(&directory).is_empty() && !directory.exists();
    assert!(
        marks::until(std::time::Duration::from_mins(2), gone),
        "something is left"
    );
}

#[test]
fn a_taken_port_is_tried_again_with_others() {
    let home = tempfile::tempdir().unwrap();
    let count = home.path().join("count");
    let etcd = format!(
        "echo x >>{}; echo 'bind: address already in use'; exit 1",
        count.display()
    );
    let error = Server::take(&home.path().join("server"), &programs(home.path(), &etcd));
    assert!(error.is_err());
    assert_eq!(fs::read_to_string(count).unwrap().lines().count(), 5);
}

#[test]
fn programs_that_are_not_built_are_named_with_the_command_that_builds_them() {
    let home = tempfile::tempdir().unwrap();
    let error = Server::shared(&Cache::at(home.path())).unwrap_err();
    assert!(matches!(error, StartError::NotBuilt(_)));
    assert!(
        error.to_string().contains("cargo xtask tools build"),
        "{error}"
    );
}

#[test]
fn a_place_that_cannot_be_written_to_is_named_with_the_setting_that_changes_it() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Server::take(&file.join("server"), &programs(home.path(), "exit 1"));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("WEIR_CACHE"), "{error}");
}
