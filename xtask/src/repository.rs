//! Where the source is, how `cargo` is called in it, and which crates there are.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    // Set by `cargo run`; the other one serves when the program is run by its path.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest
        .parent()
        .map_or_else(|| manifest.clone(), Path::to_owned)
}

/// The cargo that runs us, in the root of the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // What `cargo run` sets for us is not meant for the cargo that we run: build scripts would see it change.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// What `cargo metadata` says, as far as we ask.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) workspace_members: Vec<String>,
    pub(crate) resolve: Option<Resolve>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Resolve {
    pub(crate) nodes: Vec<Node>,
}

/// A package and what it depends on, with the features that the workspace asks for.
#[derive(Debug, Deserialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) deps: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) pkg: String,
    pub(crate) dep_kinds: Vec<DependencyKind>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct DependencyKind {
    /// `dev`, `build`, or nothing for a normal one.
    pub(crate) kind: Option<String>,
}

impl Metadata {
    /// Reads it, with or without what is outside of the workspace.
    pub(crate) fn read(with_dependencies: bool) -> Result<Self> {
        let mut command = cargo();
        command.args(["metadata", "--format-version=1", "--all-features"]);
        if !with_dependencies {
            command.arg("--no-deps");
        }
        let output = command
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run cargo")?;
        if !output.status.success() {
            bail!("`cargo metadata` failed");
        }
        serde_json::from_slice(&output.stdout).context("`cargo metadata` said something unexpected")
    }

    /// The crates of the workspace.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .iter()
            .filter(|package| self.workspace_members.contains(&package.id))
    }
}

impl Package {
    /// The directory's name, by which people call a crate.
    pub(crate) fn directory(&self) -> &str {
        let directory = self.manifest_path.parent().and_then(Path::file_name);
        directory
            .and_then(|name| name.to_str())
            .unwrap_or(&self.name)
    }
}
