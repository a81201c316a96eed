//! `cargo deny`: licences, sources, banned crates, and known vulnerabilities where the network allows.
//!
//! The rules are in `deny.toml`. The tool is taken from the path if it is the version that we want, else
//! from the cache, and is installed there at first use.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use weir_lab::cache::Cache;

use super::{Outcome, judge};
use crate::repository;

const VERSION: &str = "0.20.2";

pub(super) fn check() -> Result<Outcome> {
    let program = find_or_install()?;
    let rules = judge(deny(&program).args([
        "check",
        "--hide-inclusion-graph",
        "bans",
        "licenses",
        "sources",
    ]))?;
    if rules == Outcome::Failed {
        return Ok(rules);
    }
    let output = deny(&program).args(["check", "advisories"]).output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    let told = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return Ok(Outcome::Passed);
    }
    if lacks_network(&told) {
        println!("\n*** SKIPPED: advisories: their database cannot be fetched from here");
        return Ok(Outcome::Skipped(
            "advisories: no way to their database".to_owned(),
        ));
    }
    println!("{told}");
    Ok(Outcome::Failed)
}

fn deny(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(repository::root());
    command
}

/// Does this say that the database of advisories could not be had, rather than that it has something on us?
fn lacks_network(told: &str) -> bool {
    told.contains("failed to fetch advisory database") || told.contains("failed to load advisory")
}

fn find_or_install() -> Result<PathBuf> {
    let in_cache = Cache::of_environment()?.cargo();
    for program in [PathBuf::from("cargo-deny"), in_cache.join("bin/cargo-deny")] {
        let asked = Command::new(&program).arg("--version").output();
        if asked.is_ok_and(|output| is_wanted(&String::from_utf8_lossy(&output.stdout))) {
            return Ok(program);
        }
    }
    println!(
        "Installing cargo-deny {VERSION} into {} (once; usually about 3 min on two cores).",
        in_cache.display(),
    );
    let mut install = repository::cargo();
    install.args([
        "install",
        "--locked",
        "--force",
        "cargo-deny",
        "--version",
        VERSION,
        "--root",
    ]);
    if judge(install.arg(&in_cache))? == Outcome::Failed {
        bail!(
            "cargo-deny could not be installed: install version {VERSION} yourself, in your path"
        );
    }
    Ok(in_cache.join("bin/cargo-deny"))
}

/// `cargo-deny 0.20.2`
fn is_wanted(told: &str) -> bool {
    told.split_whitespace().nth(1) == Some(VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_wanted_version_will_do() {
        assert!(is_wanted("cargo-deny 0.20.2\n"));
        assert!(!is_wanted("cargo-deny 0.18.0\n"));
        assert!(!is_wanted(""));
    }

    #[test]
    fn a_database_out_of_reach_is_not_an_advisory() {
        assert!(lacks_network(
            "[ERROR] failed to fetch advisory database https://github.com/…"
        ));
        assert!(!lacks_network("error[vulnerability]: use after free in …"));
    }
}
