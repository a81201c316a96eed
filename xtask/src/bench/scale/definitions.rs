//! The definitions that the program brings itself, and the namespace of the operator.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use weir_lab::server::Server;

use super::NAMESPACE;

/// Installs them, and waits until the API server serves this one.
pub(in crate::bench) fn create(server: &Server, weir: &Path, awaited: &str) -> Result<()> {
    let definitions = Command::new(weir).arg("crds").output();
    let definitions = definitions.with_context(|| format!("cannot run {}", weir.display()))?;
    let mut command = server.kubectl();
    command.args(["apply", "--server-side", "-f", "-"]);
    run(command, &definitions.stdout)?;
    let mut command = server.kubectl();
    let definition = format!("crd/{awaited}");
    command.args([
        "wait",
        "--for=condition=Established",
        "--timeout=1m",
        &definition,
    ]);
    run(command, &[])?;
    let mut command = server.kubectl();
    command.args(["create", "namespace", NAMESPACE]);
    run(command, &[])
}

fn run(mut command: Command, input: &[u8]) -> Result<()> {
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().context("cannot run kubectl")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input)?;
    }
    if !child.wait()?.success() {
        bail!("kubectl failed, see above");
    }
    Ok(())
}
