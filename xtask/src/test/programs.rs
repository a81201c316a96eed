//! Which test programs there are, and what to call them.
//!
//! What cargo says as JSON while building has the file of each program and its crate. [`super::lanes`] runs them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::repository::Package;

/// A test program that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestProgram {
    /// Its crate and what of it: `weir-lab tests/it`.
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    /// Its crate's directory, in which its tests expect to run.
    pub(crate) directory: PathBuf,
}

/// A line of `cargo test --no-run --message-format=json`.
#[derive(Deserialize)]
struct Message {
    package_id: Option<String>,
    executable: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Reads what cargo said while building.
pub(crate) fn parse(json_lines: &str, packages: &[&Package]) -> Vec<TestProgram> {
    let messages = json_lines
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let programs = messages.filter_map(|message: Message| {
        let (id, target) = (message.package_id?, message.target?);
        // The programs that the tests start are built as well.
        let file = message.profile?.test.then_some(message.executable?)?;
        let package = packages.iter().find(|package| package.id == id)?;
        Some(TestProgram {
            name: format!("{} {}", package.name, describe(&target)),
            file,
            directory: package.manifest_path.parent()?.to_owned(),
        })
    });
    programs.collect()
}

/// Puts those first that may take long, so that none of them is left alone at the end: the larger ones, which have
/// more parts of the product in them and more to wait for.
pub(crate) fn longest_first(programs: &mut [TestProgram]) {
    let size = |file: &Path| fs::metadata(file).map_or(0, |about| about.len());
    programs.sort_by_cached_key(|program| std::cmp::Reverse(size(&program.file)));
}

fn describe(target: &Target) -> String {
    match target.kind.first().map(String::as_str) {
        Some("test") => format!("tests/{}", target.name),
        Some("bench") => format!("benches/{}", target.name),
        Some("bin") => format!("src/bin {}", target.name),
        Some("example") => format!("examples/{}", target.name),
        _ => "src".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_told_apart_by_their_crates() {
        let lines = r#"
{"reason":"compiler-artifact","package_id":"path+file:///w#weir-api@0.1.0","target":{"kind":["test"],"name":"it"},"profile":{"test":true},"executable":"/t/debug/deps/it-1a"}
{"reason":"compiler-artifact","package_id":"path+file:///w#weir-lab@0.1.0","target":{"kind":["test"],"name":"it"},"profile":{"test":true},"executable":"/t/debug/deps/it-2b"}
{"reason":"compiler-artifact","package_id":"path+file:///w#weir-lab@0.1.0","target":{"kind":["lib"],"name":"weir_lab"},"profile":{"test":true},"executable":"/t/debug/deps/weir_lab-3c"}
{"reason":"compiler-artifact","package_id":"path+file:///w#weir-lab@0.1.0","target":{"kind":["bin"],"name":"lab-app"},"profile":{"test":false},"executable":"/t/debug/lab-app"}
{"reason":"compiler-artifact","package_id":"registry#serde@1","target":{"kind":["lib"],"name":"serde"},"profile":{"test":false},"executable":null}
{"reason":"build-finished","success":true}"#;
        let packages = ["api", "lab"].map(|name| Package {
            id: format!("path+file:///w#weir-{name}@0.1.0"),
            name: format!("weir-{name}"),
            manifest_path: format!("/w/{name}/Cargo.toml").into(),
        });
        let programs = parse(lines, &packages.each_ref());
        let names: Vec<_> = programs.iter().map(|program| &*program.name).collect();
        assert_eq!(
            names,
            ["weir-api tests/it", "weir-lab tests/it", "weir-lab src"]
        );
        assert_eq!(programs[1].file, Path::new("/t/debug/deps/it-2b"));
        assert_eq!(programs[1].directory, Path::new("/w/lab"));
    }
}
