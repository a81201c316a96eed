//! The controller of Argo Rollouts.

use std::net::Ipv4Addr;

use super::super::{Cluster, ClusterError, http, launch};
use crate::{control_plane::flag, tools::ROLLOUTS};

pub(super) const PART: &str = "argo-rollouts";
const METRICS: u16 = 18090;
const HEALTH: u16 = 18091;

pub(super) fn start(cluster: &Cluster) -> Result<(), ClusterError> {
    let program = ROLLOUTS
        .directory(&cluster.cache)
        .join("rollouts-controller");
    let launch = cluster.launch(PART, &program).args([
        flag("kubeconfig", &cluster.kubeconfig().to_string_lossy()),
        flag("leader-elect", "false"),
        flag("metricsport", &METRICS.to_string()),
        flag("healthzPort", &HEALTH.to_string()),
    ]);
    let mut child = launch.start(&cluster.layout)?;
    launch::wait_until_ready(&cluster.layout, PART, &mut child, || {
        let ask = || http::is_ok(Ipv4Addr::LOCALHOST, HEALTH, "/healthz");
        cluster.network().inside(ask).unwrap_or(false)
    })
}
