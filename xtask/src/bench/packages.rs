//! Programs of Debian packages that benchmarks compare with or need: installed if they are not there and we may.

use std::process::{Command, Stdio};

/// Is the program there, now that its package was installed if we may?
pub(super) fn ensure(program: &str, package: &str) -> bool {
    let is_there = || {
        let mut ask = Command::new(program);
        ask.arg("-v").stdout(Stdio::null()).stderr(Stdio::null());
        ask.status().is_ok()
    };
    if is_there() {
        return true;
    }
    println!("Installing {package} …");
    let mut install = Command::new("apt-get");
    install
        .args(["install", "--yes", package])
        .stdout(Stdio::null());
    install.env("DEBIAN_FRONTEND", "noninteractive");
    // Without root, or without apt, it fails, and we say so.
    let is_installed = install.status().is_ok_and(|status| status.success()) && is_there();
    if !is_installed {
        println!("\n*** SKIPPED: there is no {program} here: install the package `{package}`");
    }
    is_installed
}
