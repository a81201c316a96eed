//! The commands of `docs/migration-kubeelasti.md`, by the heading that they stand under. What is run is what users read.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;
use weir_lab::ApiServer;

/// The guide, and a shell in which its commands mean this server and this build.
pub(super) struct Guide {
    /// What was not run yet.
    left: Vec<Step>,
    programs: TempDir,
}

struct Step {
    heading: String,
    commands: String,
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Guide {
    pub(super) fn open(k8s: &ApiServer) -> Self {
        let text = fs::read_to_string(repository().join("docs/migration-kubeelasti.md"));
        let programs = tempfile::tempdir().expect("a directory");
        let kubectl = k8s.kubectl();
        let variables = kubectl.get_envs().filter_map(|(name, value)| {
            let (name, value) = (name.to_str()?, value?.to_str()?);
            Some(format!("export {name}='{value}'\n"))
        });
        let variables: String = variables.collect();
        let path = kubectl.get_program().to_str().expect("text").to_owned();
        script(
            &programs,
            "kubectl",
            &format!("{variables}exec '{path}' \"$@\""),
        );
        let weir = env!("CARGO_BIN_EXE_weir");
        script(&programs, "weir", &format!("exec '{weir}' \"$@\""));
        Self {
            left: steps(&text.expect("the guide")),
            programs,
        }
    }

    /// Runs the next step, which must stand under this heading; what it wrote.
    pub(super) fn run(&mut self, heading: &str) -> String {
        let (succeeded, said) = self.tried(heading);
        assert!(succeeded, "{heading}: {said}");
        self.left.remove(0);
        said
    }

    /// Runs the next step as if it were not: whether it went well, and what it wrote.
    pub(super) fn tried(&self, heading: &str) -> (bool, String) {
        let step = self.left.first().expect("a step that is left");
        assert_eq!(step.heading, heading, "the guide has another step here");
        self.shell(&step.commands)
    }

    /// The next step, not run.
    pub(super) fn next(&self) -> &str {
        &self.left.first().expect("a step that is left").commands
    }

    /// Any commands, as a user of the guide would run them.
    pub(super) fn shell(&self, commands: &str) -> (bool, String) {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("bash");
        let output = shell
            .args(["-euo", "pipefail", "-c", commands])
            // What it writes beside itself goes with the test; the examples are where they are.
            .current_dir(self.programs.path())
            .env("PATH", format!("{}:{path}", self.programs.path().display()))
            .output()
            .expect("bash runs");
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.push_str(&String::from_utf8_lossy(&output.stderr));
        (output.status.success(), said)
    }

    /// Nothing was left out.
    pub(super) fn is_through(&self) {
        let left: Vec<&str> = self.left.iter().map(|step| &*step.heading).collect();
        assert!(left.is_empty(), "not run: {left:?}");
    }
}

fn script(directory: &TempDir, name: &str, body: &str) {
    use std::os::unix::fs::PermissionsExt;
    let examples = directory.path().join("examples");
    if !examples.exists() {
        std::os::unix::fs::symlink(repository().join("examples"), &examples).expect("a link");
    }
    let path: &Path = &directory.path().join(name);
    fs::write(path, format!("#!/bin/sh\n{body}\n")).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("may be run");
}

/// All blocks that are marked as shell, with the last heading before each.
fn steps(text: &str) -> Vec<Step> {
    let mut heading = String::new();
    let mut steps = Vec::new();
    let mut block: Option<String> = None;
    for line in text.lines() {
        match &mut block {
            Some(commands) if line == "```" => {
                let commands = std::mem::take(commands);
                steps.push(Step {
                    heading: heading.clone(),
                    commands,
                });
                block = None;
            }
            Some(commands) => {
                commands.push_str(line);
                commands.push('\n');
            }
            None if line == "```sh" => block = Some(String::new()),
            None => {
                if let Some(found) = line.strip_prefix("## ") {
                    found.clone_into(&mut heading);
                }
            }
        }
    }
    assert!(block.is_none(), "a block has no end");
    steps
}
