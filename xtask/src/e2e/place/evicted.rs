//! All pods of a service are on a node that fills up, and `rebalance` moves them off while clients go on: one at a time, by the
//! eviction API, within the service's PodDisruptionBudget. Does any first attempt fail?

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use weir_lab::fault::node;

use super::{CAPACITY, CLEAR_PERCENT, FULL_PERCENT, SHAPED};
use crate::{
    bench::real,
    kube,
    place::{
        bed::{Bed, FULL},
        clients::{self, Ask, Client},
        nic::Nic,
        objects,
        seen::{self, Moves},
    },
};

const NAME: &str = "moved";
pub(super) const REPLICAS: u32 = 3;
/// What the PodDisruptionBudget leaves.
pub(super) const LEAST: u32 = 2;
/// Requests a second of each client.
const RATE: u32 = 50;
/// Of each client at most. They are used in turn, each about once a second: so all of them hear from a pod that ends, before
/// it closes them.
const CONNECTIONS: u32 = 50;
/// As long as all of it takes.
const LOAD: Duration = Duration::from_secs(110);
const PATIENCE: Duration = Duration::from_mins(2);

/// What came of it.
pub(super) struct Evicted {
    pub(super) flip_seconds: f64,
    /// From the label to the last pod that is ready elsewhere.
    pub(super) seconds: f64,
    pub(super) moves: Moves,
    pub(super) sent: u64,
    /// First attempts that were not answered right, whoever's fault it was.
    pub(super) failed: u64,
}

pub(super) fn run(bed: &Bed) -> Result<Evicted> {
    println!("  a node fills up, and pods move off it under load …");
    let log = seen::watch(&bed.site.cluster, &bed.namespace, NAME);
    let nic = Nic::start(bed.site.cluster.node_network(FULL));
    all_on_one(bed)?;
    let all = half_and_half(bed)?;
    let full = FULL.name();
    let asked = kube::now();
    bed.fill(true)?;
    let began = nic.begins(asked, real(SHAPED) * 0.5, PATIENCE)?;
    let key = objects::key(NAME, &bed.namespace);
    let flipped = log.until(PATIENCE, |notes| {
        let at = seen::labelled(notes, &full, &key, true, began);
        at.ok_or("the label of the node changes")
    })?;
    println!("  full after {:.1} s", flipped - began);
    log.until(PATIENCE, |notes| {
        let moves = seen::moves(notes, &full, REPLICAS);
        (moves.serving_elsewhere == REPLICAS)
            .then_some(())
            .ok_or("all pods are ready on other nodes")
    })?;
    let seconds = kube::now() - flipped;
    println!("  all pods moved after {seconds:.1} s more");
    let (mut sent, mut failed) = (0, 0);
    for client in all {
        let report = client.finish()?;
        for failure in report.failures.iter().take(5) {
            println!("  failed: {failure:?}");
        }
        let ended = report.started_unix_seconds + LOAD.as_secs_f64();
        ensure!(
            ended > flipped + seconds,
            "clients ended before the last pod had moved"
        );
        sent += report.sent;
        failed += report.failed();
    }
    bed.fill(false)?;
    let moves = log.read(|notes| seen::moves(notes, &full, REPLICAS));
    bed.remove(NAME)?;
    Ok(Evicted {
        flip_seconds: flipped - began,
        seconds,
        moves,
        sent,
        failed,
    })
}

/// The service, with all its pods on the node that will fill up.
fn all_on_one(bed: &Bed) -> Result<()> {
    let others = bed.nodes().into_iter().filter(|node| *node != FULL);
    let cordoned = others.map(|other| node::cordon(&bed.site.cluster, other));
    let cordoned = cordoned.collect::<Result<Vec<_>, _>>()?;
    let spec = objects::server_spec(NAME, REPLICAS);
    let fields = json!({
        "maxBandwidthPercent": FULL_PERCENT,
        "clearPercent": CLEAR_PERCENT,
        "capacities": [{"bitsPerSecond": CAPACITY}],
        "rebalance": {"mode": "evict", "after": "10s", "cooldown": "5s"},
    });
    bed.apply(&[
        objects::service(NAME, &bed.namespace),
        objects::budget(NAME, &bed.namespace, LEAST),
        objects::watch(NAME, &bed.namespace, &spec, &fields),
    ])?;
    bed.rolled_out(NAME)?;
    for one in cordoned {
        one.uncordon()?;
    }
    let nodes = bed.nodes_of(NAME)?;
    ensure!(
        nodes.iter().all(|node| *node == FULL.name()),
        "the pods are on {nodes:?}"
    );
    Ok(())
}

/// Half of them with a new connection for each request, half with kept ones.
fn half_and_half(bed: &Bed) -> Result<Vec<Client>> {
    let address = bed.service(NAME)?;
    clients::until_answered(bed, &address)?;
    let ask = |new_connections| Ask {
        path: "/mirror".to_owned(),
        rate: RATE,
        duration: LOAD,
        connections: CONNECTIONS,
        new_connections,
        body_bytes: 200,
        time_out: Duration::from_mins(1),
    };
    let start = |new| Client::start(bed, &address, &ask(new));
    [true, false].into_iter().map(start).collect()
}
