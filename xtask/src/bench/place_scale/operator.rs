//! The operator as its own process, with place alone.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use weir_lab::server::Server;

use super::exporters::PORT;
use crate::bench::{
    ports,
    process::{Process, command, usage},
    real,
};

/// It runs until this value is dropped.
pub(super) struct Operator(Process);

impl Operator {
    pub(super) fn start(weir: &Path, server: &Server, home: &Path) -> Result<Self> {
        let mut command = command(weir, None);
        command.args(["operator", "--controllers", "place"]);
        command.arg("--kubeconfig").arg(server.kubeconfig());
        command.args(["--operator-namespace", "bench"]);
        command.args(["--health-probe-bind-address", "0"]);
        command.arg(format!("--internal-port={}", ports::port()?));
        command.arg(format!("--node-exporter-port={PORT}"));
        Ok(Self(Process::start("weir", command, home)?))
    }

    /// Waits; fails with what it said if it ends meanwhile.
    pub(super) fn wait_until(
        &mut self,
        what: &str,
        patience: Duration,
        mut is_so: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        let deadline = Instant::now() + patience;
        while !is_so()? {
            if self.0.ended().is_some() || Instant::now() > deadline {
                bail!("in vain: {what}; the operator said:\n{}", self.0.said());
            }
            thread::sleep(Duration::from_millis(500));
        }
        Ok(())
    }

    /// For how long it has worked.
    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        Ok(usage::cpu(self.0.id())?.as_secs_f64())
    }

    /// The most memory that it has had resident, in MiB.
    pub(super) fn peak_mebibytes(&self) -> Result<f64> {
        Ok(real(usage::peak(self.0.id())?) / f64::from(1 << 20))
    }
}
