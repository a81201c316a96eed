//! How much the load generator can do: against nginx, beside wrk, in the same run.
//!
//! wrk asks again as soon as it has an answer. Ours is told to keep a rate that nginx cannot serve, and to give
//! nothing up, so that no connection ever waits for a request; how long it takes for all of them says what the two
//! can do together. Both use one thread and as many connections.

use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::Figure;
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
        if !ensure(program) {
            println!("\n*** SKIPPED: there is no {program} here: install the package `{program}`");
            return Ok(Vec::new());
        }
    }
    let generator = LAB_APP.build()?;
    let home = std::env::temp_dir().join(format!("weir-bench-{}", std::process::id()));
    fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
    let measured = measure(&generator, &home);
    // What is left there is small, and nobody misses it.
    let _ = fs::remove_dir_all(&home);
    measured
}

fn measure(generator: &Path, home: &Path) -> Result<Vec<Figure>> {
    let nginx = Nginx::start(home)?;
    let url = format!("http://{}/", nginx.address);
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
        Figure::new("load.wrk_requests", median(theirs), "1/s"),
        Figure::new("load.own_requests", median(ours), "1/s"),
        Figure::new("load.ceiling_vs_wrk", median(ratios), "ratio").at_least(0.7),
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
    #[allow(clippy::cast_precision_loss, reason = "exact up to 2^53 requests")]
    let ok = report.outcomes.ok as f64;
    Ok(ok / report.took_seconds)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Is the program there, now that it was installed if we may?
fn ensure(program: &str) -> bool {
    let is_there = || {
        let mut ask = Command::new(program);
        ask.arg("-v").stdout(Stdio::null()).stderr(Stdio::null());
        ask.status().is_ok()
    };
    if is_there() {
        return true;
    }
    println!("Installing {program} …");
    let mut install = Command::new("apt-get");
    install
        .args(["install", "--yes", program])
        .stdout(Stdio::null());
    install.env("DEBIAN_FRONTEND", "noninteractive");
    // Without root, or without apt, it fails, and we say so.
    install.status().is_ok_and(|status| status.success()) && is_there()
}

/// nginx with one worker that answers ten bytes; it ends with this value.
struct Nginx {
    address: SocketAddr,
    process: Child,
}

impl Nginx {
    fn start(home: &Path) -> Result<Self> {
        // Free now, and nobody is likely to take it in the next moment.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let configuration = home.join("nginx.conf");
        fs::write(&configuration, nginx_configuration(home, address))?;
        let process = Command::new("nginx")
            .arg("-e")
            .arg(home.join("error.log"))
            .arg("-c")
            .arg(&configuration)
            .spawn()
            .context("cannot run nginx")?;
        let nginx = Self { address, process };
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(address).is_err() {
            if Instant::now() > deadline {
                let log = fs::read_to_string(home.join("error.log")).unwrap_or_default();
                bail!("nginx does not listen; its log:\n{log}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(nginx)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The worker is a child of the master, which must be told kindly to take it along.
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.process.wait();
    }
}

fn nginx_configuration(home: &Path, address: SocketAddr) -> String {
    let home = home.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("  {kind}_temp_path {home}/{kind};\n"))
        .concat();
    format!(
        "daemon off;\npid {home}/nginx.pid;\nworker_processes 1;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n{temporary}  access_log off;\n  keepalive_requests 1000000000;\n  \
         server {{ listen {address}; location / {{ return 200 'ten bytes\\n'; }} }}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_one_counts() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
    }

    #[test]
    fn wrk_is_understood() {
        let told =
            "Running 2s test @ http://127.0.0.1:1/\nRequests/sec:  84123.45\nTransfer/sec: 1MB\n";
        assert_eq!(requests_per_second(told), Some(84123.45));
        assert_eq!(requests_per_second("unable to connect"), None);
    }
}
