//! Who may depend on whom: the table in CONTRIBUTING.md against what `cargo metadata` says.
//!
//! [`table`] reads the table, [`graph`] judges; here is only what fetches their values.

mod graph;
mod table;

use std::{collections::BTreeSet, fs, process::Stdio};

use anyhow::{Context, Result, bail};

use self::graph::{Crate, Graph};
use super::{Outcome, report};
use crate::repository::{self, Metadata, Package};

const FILE: &str = "CONTRIBUTING.md";

pub(super) fn check() -> Result<Outcome> {
    let text = fs::read_to_string(repository::root().join(FILE))
        .with_context(|| format!("cannot read {FILE}, which has the table of dependencies"))?;
    let table = table::parse(&text).with_context(|| format!("in the table of {FILE}"))?;
    let metadata = Metadata::read(true)?;
    let graph = Graph {
        crates: crates(&metadata)?,
    };
    let mut findings = graph::judge(&graph, &table);
    for entry in table.iter().filter(|entry| entry.pure) {
        if let Some(package) = metadata.members().find(|p| p.directory() == entry.name) {
            findings.extend(graph::judge_pure(&entry.name, &closure(package)?));
        }
    }
    Ok(report(&findings))
}

fn crates(metadata: &Metadata) -> Result<Vec<Crate>> {
    let resolve = metadata
        .resolve
        .as_ref()
        .context("`cargo metadata` has no graph")?;
    let directory = |id: &str| {
        metadata
            .members()
            .find(|p| p.id == id)
            .map(Package::directory)
    };
    let mut crates = Vec::new();
    for node in &resolve.nodes {
        let Some(name) = directory(&node.id) else {
            continue;
        };
        let mut found = Crate {
            name: name.to_owned(),
            ..Crate::default()
        };
        for dependency in &node.deps {
            let Some(on) = directory(&dependency.pkg) else {
                continue;
            };
            for kind in &dependency.dep_kinds {
                let is_for_tests = kind.kind.as_deref() == Some("dev");
                let list = if is_for_tests {
                    &mut found.for_tests
                } else {
                    &mut found.normal
                };
                list.insert(on.to_owned());
            }
        }
        crates.push(found);
    }
    Ok(crates)
}

/// All crates that this one is built with. Asked for it alone: `cargo metadata` would add the features that
/// other crates of the workspace want.
fn closure(package: &Package) -> Result<BTreeSet<String>> {
    let mut command = repository::cargo();
    command.args([
        "tree",
        "--package",
        &package.name,
        "--edges",
        "normal",
        "--all-features",
    ]);
    command.args(["--prefix", "none", "--format", "{p}"]);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("`cargo tree` failed");
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text
        .lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect())
}
