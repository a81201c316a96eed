//! wrk: asks again as soon as it has an answer, on one thread.

use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::bench::process::command;

/// What a generator counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Run {
    /// Right answers.
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) seconds: f64,
}

/// Runs it against this URL.
pub(super) fn run(url: &str, connections: u32, span: Duration) -> Result<Run> {
    let mut wrk = command("wrk", None);
    wrk.arg("-t1").arg(format!("-c{connections}"));
    wrk.arg(format!("-d{}s", span.as_secs())).arg(url);
    let output = wrk.output().context("cannot run wrk")?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let run = parse(&told).with_context(|| format!("wrk said something unexpected:\n{told}"))?;
    if run.failed > 0 || run.ok == 0 {
        bail!("not all answers from {url} were right; wrk said:\n{told}");
    }
    Ok(run)
}

fn parse(told: &str) -> Option<Run> {
    let counted = told.lines().find(|line| line.contains(" requests in "))?;
    let (all, rest) = counted.trim().split_once(" requests in ")?;
    let all: u64 = all.parse().ok()?;
    let mut failed = 0;
    for line in told.lines().map(str::trim) {
        if let Some(count) = line.strip_prefix("Non-2xx or 3xx responses:") {
            failed += count.trim().parse::<u64>().ok()?;
        }
        if let Some(kinds) = line.strip_prefix("Socket errors:") {
            for kind in kinds.split(',') {
                failed += kind.trim().rsplit(' ').next()?.parse::<u64>().ok()?;
            }
        }
    }
    Some(Run {
        ok: all.saturating_sub(failed),
        failed,
        seconds: seconds(rest.split(',').next()?)?,
    })
}

/// `4.10s`, `1.02m`, `900.00ms`: as wrk writes times.
fn seconds(text: &str) -> Option<f64> {
    for (unit, factor) in [("ms", 0.001), ("us", 0.000_001), ("s", 1.0), ("m", 60.0)] {
        if let Some(number) = text.strip_suffix(unit) {
            return Some(number.parse::<f64>().ok()? * factor);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrk_is_understood() {
        let told = "Running 4s test @ http://127.0.0.1:1/\n  1 threads and 64 connections\n  \
                    164123 requests in 4.10s, 24.10MB read\n\
                    Requests/sec:  40030.00\nTransfer/sec:      5.88MB\n";
        let run = parse(told).unwrap();
        assert_eq!((run.ok, run.failed), (164_123, 0));
        assert!((run.seconds - 4.1).abs() < 1e-9);

        let told = "  100 requests in 1.02m, 1MB read\n  \
                    Socket errors: connect 1, read 2, write 0, timeout 3\n  \
                    Non-2xx or 3xx responses: 10\n";
        let run = parse(told).unwrap();
        assert_eq!((run.ok, run.failed), (84, 16));
        assert!((run.seconds - 61.2).abs() < 1e-9);

        assert_eq!(parse("unable to connect"), None);
    }
}
