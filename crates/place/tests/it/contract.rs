//! The table of promises in docs/place-tests.md names tests that exist.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn sources(directory: &Path, all: &mut String) {
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|it| it == "rs") {
            all.push_str(&fs::read_to_string(&path).expect("text"));
        }
    }
}

#[test]
fn every_promise_names_tests_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let table = fs::read_to_string(root.join("docs/place-tests.md")).expect("the table");
    let mut all = String::new();
    sources(&root.join("crates"), &mut all);
    let rows = table.lines().filter(|line| line.starts_with("| "));
    let mut promised = BTreeSet::new();
    for row in rows.skip(1) {
        let tests = row.rsplit('|').nth(1).expect("a cell");
        let names: Vec<&str> = (tests.split('`').skip(1).step_by(2))
            .filter(|name| name.contains('_'))
            .collect();
        assert!(!names.is_empty(), "no test: {row}");
        promised.extend(names);
    }
    assert!(promised.len() > 40, "{}", promised.len());
    for name in promised {
        let is_there = all.contains(&format!("fn {name}("));
        assert!(is_there, "there is no test {name}");
    }
}
