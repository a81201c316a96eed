//! h2load: the same as wrk for h2c, by prior knowledge.

use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::wrk::Run;
use crate::bench::process::command;

/// Runs it with so many connections, and so many requests at once on each.
pub(super) fn run(url: &str, connections: u32, streams: u32, span: Duration) -> Result<Run> {
    let seconds = span.as_secs();
    let mut h2load = command("h2load", None);
    h2load.arg(format!("--clients={connections}"));
    h2load.arg(format!("--max-concurrent-streams={streams}"));
    h2load.arg(format!("--duration={seconds}")).arg(url);
    let output = h2load.output().context("cannot run h2load")?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let counted =
        parse(&told).with_context(|| format!("h2load said something unexpected:\n{told}"))?;
    let (ok, failed) = counted;
    if failed > 0 || ok == 0 {
        bail!("not all answers from {url} were right; h2load said:\n{told}");
    }
    Ok(Run {
        ok,
        failed,
        seconds: span.as_secs_f64(),
    })
}

/// How many succeeded with a status of 2xx, and how many did not.
fn parse(told: &str) -> Option<(u64, u64)> {
    let named = |line: &str, name: &str| -> Option<u64> {
        let part = line.split(", ").find(|part| part.trim().ends_with(name))?;
        part.split_whitespace().next()?.parse().ok()
    };
    let line = |start: &str| told.lines().find_map(|line| line.strip_prefix(start));
    let requests = line("requests:")?;
    let statuses = line("status codes:")?;
    let mut failed = 0;
    for name in ["failed", "errored", "timeout"] {
        failed += named(requests, name)?;
    }
    let succeeded = named(requests, "succeeded")?;
    // What is on its way when the time is over counts as a status, but not as a request.
    let right = named(statuses, "2xx")?.min(succeeded);
    Some((right, failed + (succeeded - right)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2load_is_understood() {
        let told = "finished in 2.00s, 9053.75 req/s, 200KB/s\n\
            requests: 18100 total, 18164 started, 18100 done, 18100 succeeded, 0 failed, 0 errored, 0 timeout\n\
            status codes: 18104 2xx, 0 3xx, 0 4xx, 0 5xx\n";
        assert_eq!(parse(told), Some((18100, 0)));

        let told = "requests: 100 total, 100 started, 100 done, 90 succeeded, 10 failed, 3 errored, 0 timeout\n\
            status codes: 80 2xx, 0 3xx, 0 4xx, 10 5xx\n";
        assert_eq!(parse(told), Some((80, 23)));
        assert_eq!(parse("could not connect"), None);
    }
}
