//! Decides what cargo and the test programs are called with, from what was typed and from what the tests will have around them.

use anyhow::{Result, bail};

/// The module that tests which need the real server live in: they are skipped by this name.
pub(crate) const ON_API_SERVER: &str = "on_api_server";

/// The module that tests which need nodes live in: `--cluster` runs those alone.
pub(crate) const ON_CLUSTER: &str = "on_cluster";

/// What the tests will have around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Around {
    Nothing,
    Server,
    Cluster,
}

/// Which tests were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    /// Crates; all if empty.
    pub(crate) packages: Vec<String>,
    /// Parts of tests' names; all if empty.
    pub(crate) filters: Vec<String>,
}

impl Selection {
    /// Each word is a crate if there is one of that directory or name, else a part of tests' names.
    pub(crate) fn of(what: &[String], crates: &[(&str, &str)]) -> Result<Self> {
        let mut selection = Self::default();
        for word in what {
            let word = word.trim_end_matches('/');
            let directory = word.strip_prefix("crates/").unwrap_or(word);
            let found = crates
                .iter()
                .find(|(dir, name)| *dir == directory || *name == word);
            match found {
                Some((_, name)) => selection.packages.push((*name).to_owned()),
                None if word.contains('/') || word.starts_with("weir-") => {
                    let known: Vec<&str> = crates.iter().map(|(directory, _)| *directory).collect();
                    bail!("there is no crate {word}; there are {}", known.join(", "))
                }
                None => selection.filters.push(word.to_owned()),
            }
        }
        Ok(selection)
    }
}

/// One run of the tests.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) selection: Selection,
    /// For the test programs.
    pub(crate) arguments: Vec<String>,
    pub(crate) around: Around,
}

impl Plan {
    /// What cargo is to be called with to build the test programs and say which they are.
    pub(crate) fn build(&self) -> Vec<String> {
        let mut arguments = self.common();
        arguments
            .extend(["--no-run", "--message-format=json-render-diagnostics"].map(str::to_owned));
        arguments
    }

    /// What each test program is to be called with.
    pub(crate) fn run(&self) -> Vec<String> {
        let mut arguments = self.filters();
        let skipped: &[&str] = match self.around {
            Around::Nothing => &[ON_CLUSTER, ON_API_SERVER],
            Around::Server => &[ON_CLUSTER],
            // In the cluster's network the server, which is on the machine's loopback, is out of reach.
            Around::Cluster => &[ON_API_SERVER],
        };
        for module in skipped {
            arguments.extend(["--skip".to_owned(), (*module).to_owned()]);
        }
        arguments.extend(self.arguments.iter().cloned());
        arguments
    }

    /// What each is to be called with to list what will be skipped, if anything will.
    pub(crate) fn listing(&self) -> Option<Vec<String>> {
        let mut arguments = self.filters();
        arguments.push("--list".to_owned());
        (self.around == Around::Nothing).then_some(arguments)
    }

    /// What cargo is to be called with to run the examples in the documentation, which need nothing around them.
    pub(crate) fn documentation(&self) -> Option<Vec<String>> {
        let mut arguments = self.common();
        arguments.extend(["--doc", "--no-fail-fast", "--"].map(str::to_owned));
        arguments.extend(self.run());
        (self.around != Around::Cluster).then_some(arguments)
    }

    fn filters(&self) -> Vec<String> {
        let mut filters = self.selection.filters.clone();
        if self.around == Around::Cluster && filters.is_empty() {
            filters.push(ON_CLUSTER.to_owned());
        }
        filters
    }

    fn common(&self) -> Vec<String> {
        let mut arguments = vec!["test".to_owned(), "--all-features".to_owned()];
        if self.selection.packages.is_empty() {
            arguments.push("--workspace".to_owned());
        }
        for package in &self.selection.packages {
            arguments.extend(["--package".to_owned(), package.clone()]);
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRATES: &[(&str, &str)] = &[("api", "weir-api"), ("lab", "weir-lab"), ("xtask", "xtask")];

    fn select(what: &[&str]) -> Result<Selection> {
        let what: Vec<String> = what.iter().map(|word| (*word).to_owned()).collect();
        Selection::of(&what, CRATES)
    }

    fn plan(what: &[&str], around: Around) -> Plan {
        let arguments = vec!["--nocapture".to_owned()];
        Plan {
            selection: select(what).unwrap(),
            arguments,
            around,
        }
    }

    #[test]
    fn a_crate_can_be_called_by_its_directory_or_its_name() {
        for word in ["api", "weir-api", "crates/api", "crates/api/"] {
            assert_eq!(select(&[word]).unwrap().packages, ["weir-api"], "{word}");
        }
        assert_eq!(select(&["xtask"]).unwrap().packages, ["xtask"]);
    }

    #[test]
    fn anything_else_is_a_part_of_tests_names() {
        let selection = select(&["api", "plan::", "ports"]).unwrap();
        assert_eq!(selection.packages, ["weir-api"]);
        assert_eq!(selection.filters, ["plan::", "ports"]);
    }

    #[test]
    fn what_can_only_be_a_crate_must_be_one() {
        let error = select(&["crates/apo"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no crate crates/apo; there are api, lab, xtask"
        );
        assert!(select(&["weir-apo"]).is_err());
    }

    #[test]
    fn without_a_server_its_tests_are_skipped_by_name_and_listed() {
        let plan = plan(&["lab", "ports"], Around::Nothing);
        assert_eq!(
            plan.run().join(" "),
            "ports --skip on_cluster --skip on_api_server --nocapture",
        );
        assert_eq!(plan.listing().unwrap().join(" "), "ports --list");
        assert_eq!(
            plan.documentation().unwrap().join(" "),
            "test --all-features --package weir-lab --doc --no-fail-fast -- ports \
             --skip on_cluster --skip on_api_server --nocapture",
        );
    }

    #[test]
    fn with_a_server_only_those_are_skipped_that_need_nodes() {
        let plan = plan(&[], Around::Server);
        assert_eq!(plan.run().join(" "), "--skip on_cluster --nocapture");
        assert!(plan.listing().is_none());
        let build = plan.build().join(" ");
        assert!(build.starts_with("test --all-features --workspace --no-run"));
    }

    #[test]
    fn in_a_cluster_its_tests_alone_are_run() {
        let arguments = plan(&["lab"], Around::Cluster).run().join(" ");
        assert_eq!(arguments, "on_cluster --skip on_api_server --nocapture");
        let arguments = plan(&["dns"], Around::Cluster).run().join(" ");
        assert!(arguments.starts_with("dns --skip"), "{arguments}");
        assert!(plan(&[], Around::Cluster).documentation().is_none());
    }
}
