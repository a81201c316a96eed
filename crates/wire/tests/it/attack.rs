//! Clients that are up to no good.

mod body;
mod bomb;
mod crumbs;
mod http2;
mod smuggling;
mod taken;

use std::{env, process::Stdio, time::Duration};

use tokio::{process::Command, time::timeout};

/// How long such a test may take; longer than others, as it does much and shares the machine with them.
const PATIENCE: Duration = Duration::from_mins(5);

/// Runs an ignored test of this module in a process of its own, since it looks at all of the process: its memory, its
/// open files.
async fn alone(test: &str) {
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture", test])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(PATIENCE, output).await;
    let output = output.expect("it takes too long").unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}{errors}");
    assert!(told.contains("1 passed"), "no such test: {test}");
}

/// What the process has in memory, in bytes.
fn resident() -> usize {
    let told = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = told.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size()
}
