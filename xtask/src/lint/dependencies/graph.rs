//! Judges the crates' dependencies by the table and by the rules that hold whatever the table says.

use std::collections::BTreeSet;

use super::table::Entry;

/// What a pure crate may not be built with: sockets, runtimes, clients.
const IMPURE: [&str; 7] = [
    "tokio",
    "hyper",
    "reqwest",
    "kube-client",
    "mio",
    "socket2",
    "rustls",
];
/// Nothing may depend on it: it is the program.
const PROGRAM: &str = "weir";
/// Only tests may depend on it, and `xtask`.
const LAB: &str = "lab";
const XTASK: &str = "xtask";

/// A crate and those of ours that it depends on, all called by their directories.
#[derive(Debug, Default)]
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) normal: BTreeSet<String>,
    pub(super) for_tests: BTreeSet<String>,
}

/// All crates of the workspace.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) crates: Vec<Crate>,
}

/// Everything that is wrong, as sentences.
pub(super) fn judge(graph: &Graph, table: &[Entry]) -> Vec<String> {
    let mut findings = Vec::new();
    let exists = |name: &str| graph.crates.iter().any(|found| found.name == name);
    for entry in table {
        for name in [&entry.name]
            .into_iter()
            .chain(&entry.may)
            .chain(&entry.for_tests)
        {
            if !exists(name) {
                findings.push(format!(
                    "the row of {} names {name}, which does not exist",
                    entry.name
                ));
            }
        }
        if table
            .iter()
            .filter(|other| other.name == entry.name)
            .count()
            > 1
        {
            findings.push(format!("{} has more than one row", entry.name));
        }
    }
    for found in &graph.crates {
        let name = &found.name;
        match table.iter().find(|entry| entry.name == *name) {
            Some(entry) => findings.extend(judge_by_row(found, entry)),
            None => findings.push(format!("{name} has no row in the table: add one")),
        }
        let both = found.normal.union(&found.for_tests);
        findings.extend(both.filter(|on| *on == PROGRAM).map(|_| {
            format!(
                "{name} depends on {PROGRAM}, which is the program: move what it needs to a crate"
            )
        }));
        if found.normal.contains(LAB) && name != XTASK {
            findings.push(format!(
                "{name} depends on {LAB}, which is for tests: make it a dev-dependency"
            ));
        }
    }
    findings
}

fn judge_by_row(found: &Crate, entry: &Entry) -> Vec<String> {
    let name = &found.name;
    // A crate may name itself for tests, to turn on features.
    let allowed_in_tests =
        |on: &&String| entry.may.contains(*on) || entry.for_tests.contains(*on) || *on == name;
    let normal = found
        .normal
        .difference(&entry.may)
        .map(|on| format!("{name} may not depend on {on}"));
    let tests = found.for_tests.iter().filter(|on| !allowed_in_tests(on));
    let tests = tests.map(|on| format!("{name} may not depend on {on}, not even for tests"));
    normal.chain(tests).collect()
}

/// What a pure crate is built with that it may not be.
pub(super) fn judge_pure(name: &str, closure: &BTreeSet<String>) -> Vec<String> {
    let impure = IMPURE.iter().filter(|impure| closure.contains(**impure));
    impure
        .map(|impure| format!("{name} is pure and may not be built with {impure}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn row(name: &str, may: &[&str], for_tests: &[&str]) -> Entry {
        Entry {
            name: name.to_owned(),
            pure: false,
            may: set(may),
            for_tests: set(for_tests),
        }
    }

    fn found(name: &str, normal: &[&str], for_tests: &[&str]) -> Crate {
        Crate {
            name: name.to_owned(),
            normal: set(normal),
            for_tests: set(for_tests),
        }
    }

    fn findings(crates: Vec<Crate>, table: &[Entry]) -> Vec<String> {
        judge(&Graph { crates }, table)
    }

    #[test]
    fn what_the_table_allows_is_fine_and_need_not_be_used() {
        let crates = vec![
            found("api", &[], &["lab"]),
            found("lab", &[], &[]),
            found("role", &[], &["api"]),
        ];
        let table = [
            row("api", &[], &["lab"]),
            row("lab", &[], &[]),
            row("role", &["api"], &["lab"]),
        ];
        assert_eq!(findings(crates, &table), Vec::<String>::new());
    }

    #[test]
    fn what_the_table_does_not_allow_is_found() {
        let crates = vec![found("api", &["role"], &[]), found("role", &[], &["api"])];
        let table = [row("api", &[], &["role"]), row("role", &[], &[])];
        assert_eq!(
            findings(crates, &table),
            [
                "api may not depend on role",
                "role may not depend on api, not even for tests"
            ],
        );
    }

    #[test]
    fn table_and_workspace_must_name_the_same_crates() {
        let table = [row("api", &["gone"], &[]), row("old", &[], &[])];
        let found = findings(vec![found("api", &[], &[]), found("new", &[], &[])], &table);
        assert_eq!(
            found,
            [
                "the row of api names gone, which does not exist",
                "the row of old names old, which does not exist",
                "new has no row in the table: add one",
            ],
        );
    }

    #[test]
    fn some_rules_hold_whatever_the_table_says() {
        let crates = vec![
            found("weir", &[], &[]),
            found("lab", &[], &[]),
            found("role", &["lab"], &["weir"]),
            found("xtask", &["lab"], &[]),
        ];
        let table = [
            row("weir", &[], &[]),
            row("lab", &[], &[]),
            row("role", &["lab"], &["weir"]),
            row("xtask", &["lab"], &[]),
        ];
        let findings = findings(crates, &table);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].starts_with("role depends on weir"));
        assert!(findings[1].starts_with("role depends on lab"));
    }

    #[test]
    fn a_pure_crate_is_built_with_nothing_that_does_io() {
        assert!(judge_pure("api", &set(&["serde", "kube-core"])).is_empty());
        assert_eq!(
            judge_pure("api", &set(&["serde", "tokio"])),
            ["api is pure and may not be built with tokio"],
        );
    }
}
