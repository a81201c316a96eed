//! What one client counted, as `lab-app load --json` writes it.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// What of a report is asked for.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Report {
    pub(crate) started_unix_seconds: f64,
    pub(crate) intended: u64,
    pub(crate) sent: u64,
    outcomes: Outcomes,
    pub(crate) cut_by_server: u64,
    #[serde(default)]
    pub(crate) failures: Vec<Failure>,
    #[serde(default)]
    pub(crate) took_seconds: f64,
    #[serde(default)]
    pub(crate) bytes_received: u64,
    /// None if no request was answered right.
    #[serde(default)]
    pub(crate) latency: Option<Latency>,
    pub(crate) timeline: Vec<Second>,
}

/// In microseconds, from when requests were meant to be sent.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct Outcomes {
    ok: u64,
}

/// One request that failed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Failure {
    pub(crate) at_seconds: f64,
    pub(crate) took_seconds: f64,
    pub(crate) outcome: String,
    pub(crate) link: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Second {
    pub(crate) slowest_microseconds: u32,
}

impl Report {
    /// Finds it in a pod's log, where text for people is around it.
    pub(crate) fn in_log(log: &str) -> Result<Self> {
        let line = log.lines().find(|line| line.starts_with('{'));
        let line = line.with_context(|| format!("the client told no figures: {}", log.trim()))?;
        let report: Self = serde_json::from_str(line).context("the client told other figures")?;
        ensure!(
            report.sent == report.intended,
            "the client sent {} of {} requests: it has too few connections",
            report.sent,
            report.intended
        );
        Ok(report)
    }

    /// First attempts that were not answered right, whoever's fault it was.
    pub(crate) fn failed(&self) -> u64 {
        self.sent - self.outcomes.ok
    }

    /// The longest time that a request took which was meant to be sent between these moments, to a second.
    pub(crate) fn slowest_between(&self, from: f64, to: f64) -> Option<f64> {
        let mut begins = self.started_unix_seconds;
        let mut slowest = None::<f64>;
        for second in &self.timeline {
            if begins <= to && begins + 1.0 > from {
                let took = f64::from(second.slowest_microseconds) / 1e6;
                slowest = Some(slowest.map_or(took, |so_far| so_far.max(took)));
            }
            begins += 1.0;
        }
        slowest
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn report(started: f64, slowest_microseconds: &[u32]) -> Report {
        let timeline: Vec<_> = slowest_microseconds
            .iter()
            .map(|slowest| json!({"slowest_microseconds": slowest}))
            .collect();
        let all = slowest_microseconds.len() * 10;
        serde_json::from_value(json!({
            "started_unix_seconds": started, "intended": all, "sent": all, "outcomes": {"ok": all},
            "cut_by_server": 0, "timeline": timeline,
        }))
        .unwrap()
    }

    #[test]
    fn it_is_found_among_what_is_said_to_people() {
        let log = "http://x: 10 requests/s\n  sent 20 of 20\n{\"started_unix_seconds\":1.5,\"intended\":20,\"sent\":20,\
            \"outcomes\":{\"ok\":18},\"cut_by_server\":1,\"timeline\":[],\"failures\":[\
            {\"at_seconds\":0.5,\"took_seconds\":0.1,\"outcome\":\"cut\",\"link\":\"kept-to-server\"}]}\n";
        let report = Report::in_log(log).unwrap();
        assert_eq!((report.failed(), report.cut_by_server), (2, 1));
        assert_eq!(report.failures[0].link, "kept-to-server");
        assert!(Report::in_log("error: no address").is_err());
    }

    #[test]
    fn the_slowest_is_looked_for_in_the_seconds_that_are_meant() {
        let report = report(100.0, &[1_000, 2_000_000, 3_000, 4_000_000]);
        let close = |from, to, expected: f64| {
            let slowest = report.slowest_between(from, to).unwrap();
            assert!((slowest - expected).abs() < 1e-9, "{slowest}");
        };
        close(100.2, 100.9, 0.001);
        close(100.2, 101.2, 2.0);
        close(102.5, 102.6, 0.003);
        close(0.0, 1000.0, 4.0);
        assert_eq!(report.slowest_between(104.1, 200.0), None);
    }
}
