//! Builds a program of this workspace, for release or as tests have it, and says where it is.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::repository;

/// A program, and what it takes to build it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    package: &'static str,
    name: &'static str,
    features: &'static [&'static str],
}

/// The product.
pub(crate) const WEIR: Program = Program {
    package: "weir",
    name: "weir",
    features: &[],
};

/// The lab's server and load generator. Without what tests need: no Kubernetes, no TLS.
pub(crate) const LAB_APP: Program = Program {
    package: "weir-lab",
    name: "lab-app",
    features: &["--no-default-features", "--features=app"],
};

/// A line of `cargo build --message-format=json`.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    /// It is the program's unit tests, not the program.
    test: bool,
}

impl Program {
    /// Builds it for release, if need be.
    pub(crate) fn build(&self) -> Result<PathBuf> {
        let mut command = repository::cargo();
        command.args(["build", "--release", "--package", self.package]);
        command.args(["--bin", self.name]).args(self.features);
        self.build_by(command)
    }

    /// The one that `cargo xtask test` builds, so that after it nothing has to be built.
    pub(crate) fn build_for_tests(&self) -> Result<PathBuf> {
        let mut command = repository::cargo();
        command.args(["test", "--all-features", "--workspace", "--no-run"]);
        self.build_by(command)
    }

    fn build_by(&self, mut command: Command) -> Result<PathBuf> {
        command.arg("--message-format=json-render-diagnostics");
        let built = command.stderr(Stdio::inherit()).output();
        let built = built.context("cannot run cargo")?;
        if !built.status.success() {
            bail!("{} cannot be built", self.name);
        }
        find(&String::from_utf8_lossy(&built.stdout), self.name)
            .with_context(|| format!("cargo did not say where it has put {}", self.name))
    }
}

fn find(json_lines: &str, name: &str) -> Option<PathBuf> {
    json_lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.target.as_ref().is_some_and(|t| t.name == name))
        .filter(|message| message.profile.as_ref().is_none_or(|profile| !profile.test))
        .find_map(|message| message.executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_among_all_that_cargo_says() {
        let lines = r#"
            {"reason":"compiler-artifact","target":{"name":"weir_api"},"executable":null}
            {"reason":"compiler-artifact","target":{"name":"weir"},"profile":{"test":true},"executable":"/t/release/deps/weir-1"}
            {"reason":"compiler-artifact","target":{"name":"weir"},"profile":{"test":false},"executable":"/t/release/weir"}
            {"reason":"build-finished","success":true}"#;
        assert_eq!(find(lines, "weir"), Some("/t/release/weir".into()));
        assert_eq!(find(lines, "weir_api"), None);
    }
}
