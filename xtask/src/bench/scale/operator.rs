//! The operator as its own process, with one of its controllers.

use std::{
    net::SocketAddr,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use rustix::process::Signal;
use weir_lab::server::Server;

use super::NAMESPACE;
use crate::bench::{
    ports,
    process::{Process, command, usage},
    real,
};

/// Between two looks at what it has done.
const GLANCE: Duration = Duration::from_millis(500);

/// It runs until this value is dropped.
pub(in crate::bench) struct Operator {
    process: Process,
    internal: SocketAddr,
}

impl Operator {
    pub(in crate::bench) fn start(
        weir: &Path,
        server: &Server,
        home: &Path,
        controller: &str,
        arguments: &[String],
    ) -> Result<Self> {
        let internal = ports::address()?;
        let mut command = command(weir, None);
        command.args(["operator", "--controllers", controller]);
        command.arg("--kubeconfig").arg(server.kubeconfig());
        command.args(["--operator-namespace", NAMESPACE]);
        command.args(["--health-probe-bind-address", "0"]);
        command.arg(format!("--internal-port={}", internal.port()));
        command.args(arguments);
        Ok(Self {
            process: Process::start("weir", command, home)?,
            internal,
        })
    }

    /// Where it tells its metrics.
    pub(in crate::bench) fn internal(&self) -> SocketAddr {
        self.internal
    }

    /// Waits; fails with what it said if it ends meanwhile.
    pub(in crate::bench) fn wait_until(
        &mut self,
        what: &str,
        patience: Duration,
        mut is_so: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        let deadline = Instant::now() + patience;
        while !is_so()? {
            if self.process.ended().is_some() || Instant::now() > deadline {
                let said = self.process.said();
                bail!("in vain: {what}; the operator said:\n{said}");
            }
            thread::sleep(GLANCE);
        }
        Ok(())
    }

    /// For how long it has worked.
    pub(in crate::bench) fn cpu_seconds(&self) -> Result<f64> {
        Ok(usage::cpu(self.process.id())?.as_secs_f64())
    }

    /// The most memory that it has had resident, in MiB.
    pub(in crate::bench) fn peak_mebibytes(&self) -> Result<f64> {
        Ok(real(usage::peak(self.process.id())?) / f64::from(1 << 20))
    }

    /// The memory that it has resident now, in MiB.
    pub(in crate::bench) fn mebibytes(&self) -> Result<f64> {
        Ok(real(usage::resident(self.process.id())?) / f64::from(1 << 20))
    }

    /// Tells it to end, and waits until it has given back its Lease.
    pub(in crate::bench) fn stop(mut self) -> Result<()> {
        self.process.signal(Signal::TERM)?;
        let status = self.process.wait()?;
        if !status.success() {
            let said = self.process.said();
            bail!("the operator ended with {status}; it said:\n{said}");
        }
        Ok(())
    }
}
