//! How much the load generator can do: against nginx, beside wrk, in the same run.
//!
//! wrk asks again as soon as it has an answer. Ours is told to keep a rate that nginx cannot serve, and to give
//! nothing up, so that no connection ever waits for a request; how long it takes for all of them says what the two
//! can do together. Both use one thread and as many connections.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{Figure, median, nginx, packages, ports, real, scratch::Scratch};
use crate::program::LAB_APP;

/// More than one, since others may be using the machine; the medians count.
const ROUNDS: usize = 3;
const SECONDS: u32 = 4;
const CONNECTIONS: u32 = 64;

/// What of a report is asked for.
#[derive(Deserialize)]
struct Report {
    took_seconds: f64,
    sent: u64,
    outcomes: Outcomes,
}

#[derive(Deserialize)]
struct Outcomes {
    ok: u64,
}

pub(super) fn run() -> Result<Vec<Figure>> {
    for program in ["nginx", "wrk"] {
        if !packages::ensure(program, program) {
            return Ok(Vec::new());
        }
    }
    let generator = LAB_APP.build()?;
    let scratch = Scratch::new()?;
    measure(&generator, scratch.path())
}

fn measure(generator: &Path, home: &Path) -> Result<Vec<Figure>> {
    let address = ports::address()?;
    let _nginx = nginx::start(home, &nginx::ten_bytes(address), address, None)?;
    let url = format!("http://{address}/");
    let (mut theirs, mut ours, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let wrk = wrk(&url)?;
        let own = own(generator, &url, wrk, home)?;
        println!(
            "  round {round}: wrk {wrk:.0}/s, ours {own:.0}/s, {:.2} of it",
            own / wrk
        );
        theirs.push(wrk);
        ours.push(own);
        ratios.push(own / wrk);
    }
    Ok(vec![
        Figure::new("load.wrk_requests", median(&theirs), "1/s"),
        Figure::new("load.own_requests", median(&ours), "1/s"),
        Figure::new("load.ceiling_vs_wrk", median(&ratios), "ratio").at_least(0.7),
    ])
}

/// Requests per second that wrk gets through.
fn wrk(url: &str) -> Result<f64> {
    let mut wrk = Command::new("wrk");
    wrk.arg("-t1").arg(format!("-c{CONNECTIONS}"));
    wrk.arg(format!("-d{SECONDS}s")).arg(url);
    let output = wrk.output().context("cannot run wrk")?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    requests_per_second(&told).with_context(|| format!("wrk said something unexpected:\n{told}"))
}

fn requests_per_second(told: &str) -> Option<f64> {
    let line = told
        .lines()
        .find_map(|line| line.strip_prefix("Requests/sec:"))?;
    line.trim().parse().ok()
}

/// Right answers per second that ours gets through, told to send twice what wrk could.
fn own(generator: &Path, url: &str, wrk: f64, home: &Path) -> Result<f64> {
    let json = home.join("load.json");
    let mut command = Command::new(generator);
    command.args(["load", url, "--threads=1", "--time-out=5m"]);
    command.arg(format!("--rate={:.0}", wrk * 2.0));
    command.arg(format!("--connections={CONNECTIONS}"));
    // Half as long, since at twice the rate that wrk gets through it will take twice that.
    command.arg(format!("--duration={}s", SECONDS / 2));
    let output = command.arg("--json").arg(&json).output();
    let output = output.with_context(|| format!("cannot run {}", generator.display()))?;
    let report = fs::read(&json).ok();
    let report: Option<Report> = report.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let report = report.with_context(|| {
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        format!("the load generator failed: {told}")
    })?;
    if report.outcomes.ok != report.sent {
        bail!(
            "{} of {} requests failed",
            report.sent - report.outcomes.ok,
            report.sent
        );
    }
    Ok(real(report.outcomes.ok) / report.took_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrk_is_understood() {
        let told =
            "Running 2s test @ http://127.0.0.1:1/\nRequests/sec:  84123.45\nTransfer/sec: 1MB\n";
        assert_eq!(requests_per_second(told), Some(84123.45));
        assert_eq!(requests_per_second("unable to connect"), None);
    }
}
