//! One time of it: the service is asked while all is quiet, while the node fills up, and when it has been full for a while.
//! All times are in seconds since the first request.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::{CAPACITY, Place};
use crate::{
    bench::real,
    kube::{self, log::Noted},
    load::report::Report,
    place::{
        bed::{Bed, FULL},
        clients::{self, Ask, Client},
        nic::{self, Nic},
        objects, seen,
    },
};

const NAME: &str = "files";
const REPLICAS: u32 = 3;
const ANSWER_BYTES: u32 = 128 << 10;
/// Requests a second: 84 Mbit/s in all.
const RATE: u32 = 80;
const QUIET: Duration = Duration::from_secs(20);
/// As long as a watch needs to see it and to move a pod.
const TURNING: Duration = Duration::from_secs(50);
const FULL_TIME: Duration = Duration::from_secs(40);
/// How much goes through at most: so many answers as fast as they come, on so many connections.
const BULK: u32 = 2_000;
const BULK_CONNECTIONS: u32 = 24;
const PATIENCE: Duration = Duration::from_mins(2);

/// What came of it.
pub(super) struct Story {
    /// Before anything was filled.
    pub(super) quiet: Report,
    /// When the interface had been full for a while; what is compared.
    pub(super) full: Report,
    /// As much as goes through, after that.
    pub(super) bulk: Report,
    /// When the sender began.
    pub(super) filled: f64,
    /// When the node's label said so, and when all pods were ready elsewhere.
    pub(super) labelled: Option<f64>,
    pub(super) moved: Option<f64>,
    /// The slowest answer of each second, in milliseconds.
    pub(super) slowest: Vec<(f64, f64)>,
    /// What the full node's interface sent, in Mbit/s, for each second.
    pub(super) carried: Vec<(f64, f64)>,
    /// First attempts of all parts.
    pub(super) sent: u64,
    pub(super) failed: u64,
}

pub(super) fn run(bed: &Bed, place: Place) -> Result<Story> {
    println!("  place {place:?}: one pod on each node, all quiet …");
    let log = seen::watch(&bed.site.cluster, &bed.namespace, NAME);
    let nic = Nic::start(bed.site.cluster.node_network(FULL));
    deploy(bed, place)?;
    let address = bed.service(NAME)?;
    let ask = |duration| Client::start(bed, &address, &asked(duration));

    let quiet = ask(QUIET)?.finish()?;
    let began = quiet.started_unix_seconds;
    println!(
        "  place {place:?}: the interface of {} fills up …",
        FULL.name()
    );
    let turning = ask(TURNING)?;
    let filling = kube::now();
    bed.fill(true)?;
    let filled = nic.begins(filling, real(CAPACITY) * 0.5, PATIENCE)?;
    let turning = turning.finish()?;
    let (labelled, moved) = match place {
        Place::Off => (None, None),
        Place::On => {
            let (labelled, moved) = log.read(|notes| turned(notes, bed, filled));
            ensure!(
                labelled.is_some() && moved.is_some(),
                "the pod was not moved within {TURNING:?}: {:?}",
                bed.nodes_of(NAME)?
            );
            (labelled, moved)
        }
    };
    println!("  place {place:?}: it is full …");
    let full = ask(FULL_TIME)?.finish()?;
    let bulk = Client::start(bed, &address, &as_fast_as_it_goes())?.finish()?;
    bed.fill(false)?;
    undeploy(bed, place)?;
    nic.ends(kube::now(), real(CAPACITY) * 0.1, PATIENCE)?;

    let parts = [&quiet, &turning, &full];
    let all = || parts.into_iter().chain([&bulk]);
    let samples = nic.samples();
    let last = full.started_unix_seconds + FULL_TIME.as_secs_f64();
    let seconds = (0..=u32::MAX).map(f64::from);
    let seconds = seconds.take_while(|second| began + second + 1.0 < last);
    let carried = seconds.filter_map(|second| {
        let rate = nic::rate(&samples, began + second, began + second + 1.0)?;
        Some((second + 0.5, rate / 1e6))
    });
    Ok(Story {
        filled: filled - began,
        labelled: labelled.map(|at| at - began),
        moved: moved.map(|at| at - began),
        slowest: parts.iter().flat_map(|part| slowest(part, began)).collect(),
        carried: carried.collect(),
        sent: all().map(|part| part.sent).sum(),
        failed: all().map(Report::failed).sum(),
        quiet,
        full,
        bulk,
    })
}

fn asked(duration: Duration) -> Ask {
    Ask {
        path: format!("/bytes/{ANSWER_BYTES}"),
        rate: RATE,
        duration,
        connections: 2000,
        new_connections: true,
        body_bytes: 0,
        time_out: Duration::from_secs(30),
    }
}

/// All of them are meant for the first second, and none is given up: how long they take says what goes through.
fn as_fast_as_it_goes() -> Ask {
    Ask {
        rate: BULK,
        connections: BULK_CONNECTIONS,
        time_out: Duration::from_mins(5),
        ..asked(Duration::from_secs(1))
    }
}

/// When the node's label said that it is full, and when every pod was ready on another node.
fn turned(notes: &[Noted<seen::Fact>], bed: &Bed, filled: f64) -> (Option<f64>, Option<f64>) {
    let full = FULL.name();
    let key = objects::key(NAME, &bed.namespace);
    let labelled = seen::labelled(notes, &full, &key, true, filled);
    let is_moved = |until: usize| {
        let notes = notes.get(..=until).unwrap_or_default();
        seen::moves(notes, &full, REPLICAS).serving_elsewhere == REPLICAS
    };
    let moved = (0..notes.len()).find(|until| is_moved(*until));
    let moved = moved.and_then(|index| notes.get(index)).map(|(at, _)| *at);
    (labelled, moved)
}

/// The same Deployment in both cases, by itself or as a watch has it, with a pod on each node.
fn deploy(bed: &Bed, place: Place) -> Result<()> {
    let mut spec = objects::server_spec(NAME, REPLICAS);
    // Of a node that an affinity forbids the scheduler expects nothing, so this does not hold a moved pod back.
    spec["template"]["spec"]["topologySpreadConstraints"] = json!([{
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": NAME}},
    }]);
    let fields = json!({
        "maxBandwidthPercent": "60",
        "clearPercent": "40",
        "interval": "5s",
        "capacities": [{"bitsPerSecond": CAPACITY}],
        "rebalance": {"mode": "evict", "after": "5s", "cooldown": "5s"},
    });
    let workload = match place {
        Place::Off => objects::deployment(NAME, &bed.namespace, &spec),
        Place::On => objects::watch(NAME, &bed.namespace, &spec, &fields),
    };
    bed.apply(&[objects::service(NAME, &bed.namespace), workload])?;
    bed.rolled_out(NAME)?;
    let mut nodes = bed.nodes_of(NAME)?;
    nodes.sort();
    nodes.dedup();
    ensure!(
        nodes.len() == bed.nodes().len(),
        "the pods are on {nodes:?}"
    );
    clients::until_answered(bed, &bed.service(NAME)?)
}

fn undeploy(bed: &Bed, place: Place) -> Result<()> {
    match place {
        Place::Off => {
            bed.kubectl(&["delete", "deployment", NAME])?;
            bed.gone(NAME)
        }
        Place::On => bed.remove(NAME),
    }
}

fn slowest(report: &Report, began: f64) -> Vec<(f64, f64)> {
    let begins = report.started_unix_seconds - began;
    let seconds = (0..=u32::MAX).map(f64::from);
    let all = seconds.zip(&report.timeline);
    all.map(|(second, all)| {
        let milliseconds = f64::from(all.slowest_microseconds) / 1e3;
        (begins + second + 0.5, milliseconds)
    })
    .collect()
}
