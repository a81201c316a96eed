//! Which crate a test program belongs to.
//!
//! `cargo test` says only `Running tests/it/main.rs (…/it-dc1fe466cf027a6f)`, the same for every crate; what it
//! says as JSON while building has the crate as well. [`super::output`] looks names up here.

use std::{collections::HashMap, path::PathBuf};

use serde::Deserialize;

/// What to call a test program, by the name of its file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(HashMap<String, String>);

/// A line of `cargo test --no-run --message-format=json`.
#[derive(Deserialize)]
struct Message {
    package_id: Option<String>,
    executable: Option<PathBuf>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

impl Names {
    /// From what cargo said while building, and from the ids and names of our crates.
    pub(crate) fn parse(json_lines: &str, packages: &[(&str, &str)]) -> Self {
        let messages = json_lines
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let named = messages.filter_map(|message: Message| {
            let (package, target) = (message.package_id?, message.target?);
            let file = message.executable?.file_name()?.to_str()?.to_owned();
            let (_, package) = packages.iter().find(|(id, _)| *id == package)?;
            Some((file, format!("{package} {}", describe(&target))))
        });
        Self(named.collect())
    }

    /// The name for this file, if it is one of ours.
    pub(crate) fn get(&self, file: &str) -> Option<&str> {
        self.0.get(file).map(String::as_str)
    }
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
{"reason":"compiler-artifact","package_id":"path+file:///w#weir-api@0.1.0","target":{"kind":["test"],"name":"it"},"executable":"/t/debug/deps/it-1a"}
{"reason":"compiler-artifact","package_id":"path+file:///w#weir-lab@0.1.0","target":{"kind":["test"],"name":"it"},"executable":"/t/debug/deps/it-2b"}
{"reason":"compiler-artifact","package_id":"path+file:///w#weir-lab@0.1.0","target":{"kind":["lib"],"name":"weir_lab"},"executable":"/t/debug/deps/weir_lab-3c"}
{"reason":"compiler-artifact","package_id":"registry#serde@1","target":{"kind":["lib"],"name":"serde"},"executable":null}
{"reason":"build-finished","success":true}"#;
        let packages = [
            ("path+file:///w#weir-api@0.1.0", "weir-api"),
            ("path+file:///w#weir-lab@0.1.0", "weir-lab"),
        ];
        let names = Names::parse(lines, &packages);
        assert_eq!(names.get("it-1a"), Some("weir-api tests/it"));
        assert_eq!(names.get("it-2b"), Some("weir-lab tests/it"));
        assert_eq!(names.get("weir_lab-3c"), Some("weir-lab src"));
        assert_eq!(names.get("it-4d"), None);
    }
}
