//! Shell scripts parse, in the shell that their first line names; shellcheck has its say where it is installed.

use std::{fs, process::Command};

use anyhow::Result;

use super::{Outcome, files, judge, report};
use crate::repository;

pub(super) fn check() -> Result<Outcome> {
    let root = repository::root();
    let mut findings = Vec::new();
    let shellcheck = Command::new("shellcheck").arg("--version").output().is_ok();
    for file in files::all(&root)? {
        // What is no text is no script.
        let Ok(text) = fs::read_to_string(root.join(&file)) else {
            continue;
        };
        let Some(shell) = shell(&text) else { continue };
        let mut checks = vec![vec![shell, "-n"]];
        if shellcheck {
            checks.push(vec!["shellcheck"]);
        }
        for check in checks {
            let mut command = Command::new(check[0]);
            command.args(&check[1..]).arg(&file).current_dir(&root);
            if judge(&mut command)? == Outcome::Failed {
                findings.push(format!("{}: `{}` fails", file.display(), check.join(" ")));
            }
        }
    }
    Ok(report(&findings))
}

/// The shell that a script is for; none if it is no shell script.
fn shell(text: &str) -> Option<&'static str> {
    let interpreter = text.lines().next()?.strip_prefix("#!")?;
    let program = interpreter
        .split_whitespace()
        .find(|word| !word.ends_with("/env"))?;
    match program.rsplit('/').next()? {
        "bash" => Some("bash"),
        "sh" => Some("sh"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_the_shell() {
        assert_eq!(shell("#!/bin/sh\necho"), Some("sh"));
        assert_eq!(shell("#!/bin/bash -e\n"), Some("bash"));
        assert_eq!(shell("#!/usr/bin/env bash\n"), Some("bash"));
        assert_eq!(shell("#!/usr/bin/env python3\n"), None);
        assert_eq!(shell("# no script\n"), None);
        assert_eq!(shell("#![allow(x)]\n"), None);
    }
}
