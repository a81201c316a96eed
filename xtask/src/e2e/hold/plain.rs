//! The same target and the same load without anything of ours: a rolling restart, as Kubernetes does it. Connections
//! that the target cuts here it cuts there as well.

use std::{thread, time::Duration};

use anyhow::Result;

use super::{
    clients::Clients,
    target::{self, Target},
};
use crate::{kube, load::report::Report, site::Site};

/// How many pods come to their end.
const RESTARTS: u32 = 3;
const LOAD: Duration = Duration::from_mins(1);
/// The old pod is there for some seconds more, and clients must meet its end.
const AFTER_EACH: Duration = Duration::from_secs(6);

/// What came of it.
pub(super) struct Plain {
    pub(super) pod_ends: u32,
    pub(super) reports: Vec<Report>,
}

pub(super) fn run(site: &Site, target: &Target, rate: u32) -> Result<Plain> {
    println!("  {RESTARTS} rolling restarts under load …");
    let clients = Clients::start(site, target, rate, LOAD)?;
    let deployment = format!("deployment/{}", target::NAME);
    for _ in 0..RESTARTS {
        let restart = ["-n", &target.namespace, "rollout", "restart", &deployment];
        kube::run(&site.cluster, &restart)?;
        target.rolled_out(site)?;
        thread::sleep(AFTER_EACH);
    }
    let reports = clients.finish()?;
    Ok(Plain {
        pod_ends: RESTARTS,
        reports,
    })
}
