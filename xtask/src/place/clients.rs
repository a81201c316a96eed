//! Who asks the service: the lab's load generator, outside of all nodes, so that every answer goes through the interface of
//! the node that gives it. Every first attempt is counted.

use std::{
    process::{Child, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use super::bed::Bed;
use crate::{kube, load::report::Report};

const PATIENCE: Duration = Duration::from_mins(1);

/// What is asked, how often and for how long.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) path: String,
    pub(crate) rate: u32,
    pub(crate) duration: Duration,
    pub(crate) connections: u32,
    pub(crate) new_connections: bool,
    /// A body that must come back; without one any answer is right if it says success.
    pub(crate) body_bytes: u32,
    /// Longer than anything should take: a client that gives up says nothing about when it would have been answered.
    pub(crate) time_out: Duration,
}

/// One that asks.
pub(crate) struct Client(Option<Child>);

impl Client {
    /// Begins to ask the service of this address.
    pub(crate) fn start(bed: &Bed, address: &str, ask: &Ask) -> Result<Self> {
        let url = format!("http://{address}{}", ask.path);
        let mut command = bed.site.cluster.command(&bed.site.lab_app);
        command.args(["load", &url, "--threads", "1", "--json", "-"]);
        for (flag, value) in [
            ("rate", ask.rate.to_string()),
            ("duration", format!("{}s", ask.duration.as_secs())),
            ("connections", ask.connections.to_string()),
            ("time-out", format!("{}s", ask.time_out.as_secs())),
            ("body-bytes", ask.body_bytes.to_string()),
        ] {
            command.arg(format!("--{flag}")).arg(value);
        }
        if ask.new_connections {
            command.arg("--new-connections");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let child = command.stderr(Stdio::null()).spawn();
        let child = child.context("cannot run the load generator")?;
        Ok(Self(Some(child)))
    }

    /// Waits until it is done; what it counted.
    pub(crate) fn finish(mut self) -> Result<Report> {
        let child = self.0.take().context("it was waited for already")?;
        let output = child.wait_with_output().context("the client is gone")?;
        Report::in_log(&String::from_utf8_lossy(&output.stdout))
    }
}

/// Waits until the service is reached from here: kube-proxy hears of its pods a little after they are ready.
pub(crate) fn until_answered(bed: &Bed, address: &str) -> Result<()> {
    let ask = Ask {
        path: "/ready".to_owned(),
        rate: 10,
        duration: Duration::from_secs(1),
        connections: 10,
        new_connections: true,
        body_bytes: 0,
        time_out: Duration::from_secs(5),
    };
    kube::until(PATIENCE, "the service answers", || {
        let report = Client::start(bed, address, &ask)?.finish()?;
        ensure!(report.failed() == 0, "{} failed", report.failed());
        Ok(())
    })
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // One that has ended by itself is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
