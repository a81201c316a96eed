//! The lab's own generator: a constant rate whether answers come or not, and each first attempt counted by how it
//! ended.

use std::{collections::BTreeMap, fmt, fs, path::PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::site::Site;
use crate::bench::process::{Process, command};

/// A run that goes on.
pub(super) struct Steady {
    process: Process,
    json: PathBuf,
}

/// What of its report is asked for.
#[derive(Debug, Deserialize)]
pub(super) struct Report {
    pub(super) sent: u64,
    pub(super) unsent: u64,
    pub(super) outcomes: Outcomes,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Outcomes {
    pub(super) ok: u64,
    #[serde(default)]
    pub(super) status: BTreeMap<u16, u64>,
    #[serde(default)]
    refused: u64,
    #[serde(default)]
    reset: u64,
    #[serde(default)]
    time_out: u64,
    #[serde(default)]
    wrong_body: u64,
    #[serde(default)]
    cut: u64,
    #[serde(default)]
    other: BTreeMap<String, u64>,
}

impl Steady {
    /// Starts it, below all others in priority if it is `in_the_background`.
    pub(super) fn start(
        site: &Site,
        name: &str,
        in_the_background: bool,
        arguments: &[String],
    ) -> Result<Self> {
        let home = site.scratch.part("steady")?;
        let json = home.join(format!("{name}.json"));
        // A report of an earlier run must not pass for this one's.
        let _ = fs::remove_file(&json);
        let generator = &site.programs.lab_app;
        let mut command = if in_the_background {
            let mut nice = command("nice", None);
            nice.args(["-n", "19"]).arg(generator);
            nice
        } else {
            command(generator, None)
        };
        command.args(["load", "--threads=1", "--json"]).arg(&json);
        command.args(arguments);
        Ok(Self {
            process: Process::start(name, command, &home)?.killed_at_the_end(),
            json,
        })
    }

    /// Waits for its end.
    pub(super) fn finish(mut self) -> Result<Report> {
        let status = self.process.wait()?;
        let Ok(report) = fs::read(&self.json) else {
            bail!("the load generator wrote no report, and ended with {status}");
        };
        let report = serde_json::from_slice(&report);
        report.context("the load generator wrote a report that we do not understand")
    }
}

impl Outcomes {
    pub(super) fn failed(&self) -> u64 {
        self.kinds().map(|(_, count)| count).sum()
    }

    fn kinds(&self) -> impl Iterator<Item = (String, u64)> {
        let named = [
            ("refused", self.refused),
            ("reset", self.reset),
            ("time-out", self.time_out),
            ("wrong body", self.wrong_body),
            ("cut", self.cut),
        ];
        let named = named
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count));
        let statuses = self.status.iter();
        let statuses = statuses.map(|(status, count)| (format!("status {status}"), *count));
        let others = self
            .other
            .iter()
            .map(|(text, count)| (text.clone(), *count));
        named.chain(statuses).chain(others)
    }
}

impl fmt::Display for Outcomes {
    /// What did not happen is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ok {}", self.ok)?;
        for (kind, count) in self.kinds().filter(|(_, count)| *count > 0) {
            write!(f, ", {kind} {count}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_and_every_failure_counts_once() {
        let json = r#"{"url": "", "sent": 20, "unsent": 0, "latency": {"mean": 1.5, "p99": 900},
            "outcomes": {"ok": 10, "status": {"503": 4}, "refused": 1, "reset": 2, "time_out": 0,
            "wrong_body": 0, "cut": 1, "other": {"odd": 2}}}"#;
        let report: Report = serde_json::from_str(json).unwrap();
        assert_eq!((report.outcomes.failed(), report.sent), (10, 20));
        assert_eq!(
            report.outcomes.to_string(),
            "ok 10, refused 1, reset 2, cut 1, status 503 4, odd 2"
        );
    }
}
