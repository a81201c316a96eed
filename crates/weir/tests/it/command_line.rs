//! Help, version, completions, wrong usage, exit codes.

use std::io::Read;
use std::process::Stdio;

use crate::{output_of, weir};

#[test]
fn the_version_names_the_commit() {
    let version = output_of(&["--version"]);
    let known = version
        .trim()
        .strip_prefix("weir ")
        .expect("the name first");
    let (number, commit) = known.split_once(' ').expect("version and commit");
    assert_eq!(number, env!("CARGO_PKG_VERSION"));
    assert!(
        commit.starts_with('(') && commit.ends_with(')') && commit.len() > 8,
        "{commit}"
    );
}

#[test]
fn help_has_examples_and_exit_codes() {
    let help = output_of(&["--help"]);
    for part in [
        "Examples:",
        "weir crds | kubectl apply -f -",
        "Exit codes:",
        "--log-format",
    ] {
        assert!(help.contains(part), "{part:?} is missing in\n{help}");
    }
    assert!(output_of(&["crds", "--help"]).contains("Examples:"));
    assert!(output_of(&["completions", "--help"]).contains("Examples:"));
}

#[test]
fn every_shell_has_completions_that_know_the_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(
            output_of(&["completions", shell]).contains("crds"),
            "{shell}"
        );
    }
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_there_is() {
    for (arguments, said) in [
        (&[][..], "Usage: weir"),
        (&["crd"], "crds"),
        (
            &["crds", "--only", "Pod"],
            "ElastiService, TrafficSchedule, TrafficWatch",
        ),
        (&["crds", "--format", "toml"], "yaml, json"),
        (&["manifests", "--only", "steer"], "hold"),
        (&["manifests", "--resolver-replicas", "0"], "1..=1000"),
        (&["manifests", "--allow-from", "shop"], "10.0.0.0/8"),
        (&["resolver", "--allow-from", "10.0.0.1/8"], "10.0.0.0/8"),
        (&["crds", "--colour"], "unexpected argument"),
        (&["crds", "extra"], "unexpected argument"),
        (&["completions", "csh"], "bash"),
        (
            &["--log-level", "loud", "crds"],
            "error, warn, info, debug, trace, off",
        ),
        (&["crds", "--log-format", "xml"], "text, json"),
    ] {
        let output = weir(arguments).output().expect("weir runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_bad_log_setting_in_the_environment_is_named() {
    let output = weir(&["crds"])
        .env("WEIR_LOG", "loud")
        .output()
        .expect("weir runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--log-level"));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    for arguments in [
        &["crds"][..],
        &["crds", "--format", "json"],
        &["completions", "bash"],
    ] {
        let mut child = weir(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("weir runs");
        drop(child.stdout.take());
        let mut complaint = String::new();
        child
            .stderr
            .take()
            .expect("stderr")
            .read_to_string(&mut complaint)
            .expect("text");
        assert!(
            child.wait().expect("an end").success(),
            "{arguments:?}: {complaint}"
        );
        assert_eq!(complaint, "", "{arguments:?}");
    }
}

#[test]
fn a_full_disk_is_a_failure_that_says_so() {
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("/dev/full");
    let output = weir(&["crds"]).stdout(full).output().expect("weir runs");
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("standard output cannot be written"),
        "{stderr}"
    );
    assert!(stderr.contains("No space left on device"), "{stderr}");
}

#[test]
fn a_namespace_that_cannot_be_is_named_before_anything_is_printed() {
    let output = weir(&["manifests", "--watch-namespace", "My_Shop"])
        .output()
        .expect("weir runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("`My_Shop`"), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_status_without_a_cluster_says_what_to_do() {
    for (file, said) in [
        ("/nowhere/kubeconfig", "/nowhere/kubeconfig cannot be used"),
        (
            "unreachable",
            "see whether `kubectl get trafficwatches` does",
        ),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let unreachable = directory.path().join("unreachable");
        // Nobody listens on port 1.
        let config = "{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"clusters\":[{\"name\":\"a\",\"cluster\":{\"server\":\"http://127.0.0.1:1\"}}],\"contexts\":[{\"name\":\"a\",\"context\":{\"cluster\":\"a\",\"user\":\"a\"}}],\"users\":[{\"name\":\"a\",\"user\":{}}],\"current-context\":\"a\"}";
        std::fs::write(&unreachable, config).expect("a file");
        let file = directory.path().join(file);
        let output = weir(&["status", "--kubeconfig"]).arg(&file).output();
        let output = output.expect("weir runs");
        assert_eq!(output.status.code(), Some(1));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(said), "{error}");
    }
}
