//! A benchmark in a network of its own, where addresses that are nobody's are local, and all ports are free.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};

/// Where the part in the network of its own finds the program to measure.
const PROGRAM: &str = "WEIR_BENCH_PROGRAM";

/// Begins anew with these arguments in a network of its own.
pub(in crate::bench) fn begin_anew(
    weir: &Path,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<ExitCode> {
    let mut command = Command::new("unshare");
    command.args(["--net", "--"]).arg(env::current_exe()?);
    command.arg("bench").args(arguments);
    let status = command.env(PROGRAM, weir).status();
    let status = status.context("cannot run unshare, which is part of util-linux")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Makes these addresses local in the network in which this began anew. Which program to measure.
pub(in crate::bench) fn enter(addresses: &str) -> Result<PathBuf> {
    let weir = env::var_os(PROGRAM).map(PathBuf::from);
    let weir = weir.context("this part is begun by another; see `cargo xtask bench --help`")?;
    for line in [
        "link set lo up",
        // Whoever listens on all addresses answers on each of these.
        &format!("route add local {addresses} dev lo"),
    ] {
        let status = Command::new("ip").args(line.split(' ')).status();
        if !status.is_ok_and(|status| status.success()) {
            bail!("`ip {line}` failed: run this as root, with iproute2 installed");
        }
    }
    Ok(weir)
}
