//! Tests of the `weir` command as a user meets it.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod command_line;
mod crds;
mod image;
mod on_api_server;
mod on_cluster;
mod resolver;
mod sentry;
mod simulate;

use std::process::{Command, Output};

/// The command, with nothing of the tester's own settings.
fn weir(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command
        .args(arguments)
        .env_remove("WEIR_LOG")
        .env_remove("WEIR_LOG_FORMAT");
    command
}

/// What it wrote to standard output; it must have succeeded.
fn output_of(arguments: &[&str]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = weir(arguments).output().expect("weir runs");
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "weir {arguments:?} failed: {stderr}");
    String::from_utf8(stdout).expect("text")
}
