//! What happens: both services are asked while all is quiet, while the node fills up, and when it has been full for a while,
//! always at the same time. All times are in seconds since the first request.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::CAPACITY;
use crate::{
    bench::real,
    kube::{self, log::Noted},
    load::report::Report,
    place::{
        bed::{Bed, FULL},
        clients::{self, Ask, Client},
        nic::{self, Nic},
        objects,
        seen::{self, Fact},
    },
};

/// The one without a watch, and the one with it.
const OFF: &str = "off";
const ON: &str = "on";
const REPLICAS: u32 = 3;
const ANSWER_BYTES: u32 = 256 << 10;
/// Requests a second to each of them: 84 Mbit/s.
const RATE: u32 = 40;
const QUIET: Duration = Duration::from_secs(20);
/// As long as a watch needs to see it and to move a pod.
const TURNING: Duration = Duration::from_secs(45);
const FULL_TIME: Duration = Duration::from_mins(1);
/// How much goes through at most: so many answers as fast as they come, on so many connections.
const BULK: u32 = 800;
const BULK_CONNECTIONS: u32 = 24;
const PATIENCE: Duration = Duration::from_mins(2);

/// What came of it.
pub(super) struct Story {
    pub(super) off: Side,
    pub(super) on: Side,
    /// When the sender began.
    pub(super) filled: f64,
    /// When the node's label said so, and when all pods with a watch were ready elsewhere.
    pub(super) labelled: f64,
    pub(super) moved: f64,
    /// What the full node's interface sent, in Mbit/s, for each second.
    pub(super) carried: Vec<(f64, f64)>,
}

/// What the clients of one service counted.
pub(super) struct Side {
    /// Before anything was filled, while it filled up, and when it had been full for a while.
    pub(super) quiet: Report,
    pub(super) turning: Report,
    pub(super) full: Report,
    /// As much as goes through, after that.
    pub(super) bulk: Report,
}

impl Side {
    fn all(&self) -> [&Report; 4] {
        [&self.quiet, &self.turning, &self.full, &self.bulk]
    }

    /// First attempts, and those of them that were not answered right.
    pub(super) fn sent(&self) -> u64 {
        self.all().into_iter().map(|part| part.sent).sum()
    }

    pub(super) fn failed(&self) -> u64 {
        self.all().into_iter().map(Report::failed).sum()
    }

    /// The slowest answer of each second since then, in milliseconds; not of the last part, which is in no hurry.
    pub(super) fn slowest(&self, began: f64) -> Vec<(f64, f64)> {
        let parts = [&self.quiet, &self.turning, &self.full];
        parts.iter().flat_map(|part| slowest(part, began)).collect()
    }
}

pub(super) fn run(bed: &Bed) -> Result<Story> {
    let log = seen::watch(&bed.site.cluster, &bed.namespace, ON);
    let nic = Nic::start(bed.site.cluster.node_network(FULL));
    deploy(bed)?;
    println!("  one pod of each service on each node, all quiet …");
    let quiet = both(bed, &asked(QUIET))?.finish()?;
    let began = quiet.0.started_unix_seconds;
    println!("  the interface of {} fills up …", FULL.name());
    let turning = both(bed, &asked(TURNING))?;
    let filling = kube::now();
    bed.fill(true)?;
    let filled = nic.begins(filling, real(CAPACITY) * 0.7, PATIENCE)?;
    let turning = turning.finish()?;
    let (labelled, moved) = log.until(Duration::from_secs(1), |notes| {
        turned(notes, bed, filled).ok_or("the pod with a watch has moved while it filled up")
    })?;
    println!("  it is full …");
    let full = both(bed, &asked(FULL_TIME))?.finish()?;
    // One after the other: they would take it from each other.
    let bulk = |name| one(bed, name, &as_fast_as_it_goes())?.finish();
    let bulk = (bulk(OFF)?, bulk(ON)?);
    bed.fill(false)?;
    let there = bed.nodes_of(OFF)?;
    ensure!(
        there.contains(&FULL.name()),
        "without a watch the pods stay where they are: {there:?}"
    );

    let last = full.0.started_unix_seconds + FULL_TIME.as_secs_f64();
    Ok(Story {
        filled: filled - began,
        labelled: labelled - began,
        moved: moved - began,
        carried: carried(&nic.samples(), began, last),
        off: Side {
            quiet: quiet.0,
            turning: turning.0,
            full: full.0,
            bulk: bulk.0,
        },
        on: Side {
            quiet: quiet.1,
            turning: turning.1,
            full: full.1,
            bulk: bulk.1,
        },
    })
}

/// Clients of both services, at the same time.
struct Both(Client, Client);

impl Both {
    fn finish(self) -> Result<(Report, Report)> {
        Ok((self.0.finish()?, self.1.finish()?))
    }
}

fn both(bed: &Bed, ask: &Ask) -> Result<Both> {
    Ok(Both(one(bed, OFF, ask)?, one(bed, ON, ask)?))
}

fn one(bed: &Bed, name: &str, ask: &Ask) -> Result<Client> {
    Client::start(bed, &bed.service(name)?, ask)
}

fn asked(duration: Duration) -> Ask {
    Ask {
        path: format!("/bytes/{ANSWER_BYTES}"),
        rate: RATE,
        duration,
        connections: 2000,
        new_connections: true,
        body_bytes: 0,
        time_out: Duration::from_mins(1),
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
fn turned(notes: &[Noted<Fact>], bed: &Bed, filled: f64) -> Option<(f64, f64)> {
    let full = FULL.name();
    let key = objects::key(ON, &bed.namespace);
    let labelled = seen::labelled(notes, &full, &key, true, filled)?;
    let is_moved = |until: usize| {
        let notes = notes.get(..=until).unwrap_or_default();
        seen::moves(notes, &full, REPLICAS).serving_elsewhere == REPLICAS
    };
    let moved = (0..notes.len()).find(|until| is_moved(*until))?;
    Some((labelled, notes.get(moved)?.0))
}

/// The same Deployment twice, by itself and as a watch has it, each with a pod on each node.
fn deploy(bed: &Bed) -> Result<()> {
    let spec = |name| {
        let mut spec = objects::server_spec(name, REPLICAS);
        // Of a node that an affinity forbids the scheduler expects nothing, so this does not hold a moved pod back.
        spec["template"]["spec"]["topologySpreadConstraints"] = json!([{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": name}},
        }]);
        spec
    };
    let fields = json!({
        "maxBandwidthPercent": "60",
        "clearPercent": "40",
        "interval": "5s",
        "capacities": [{"bitsPerSecond": CAPACITY}],
        "rebalance": {"mode": "evict", "after": "5s", "cooldown": "5s"},
    });
    bed.apply(&[
        objects::service(OFF, &bed.namespace),
        objects::service(ON, &bed.namespace),
        objects::deployment(OFF, &bed.namespace, &spec(OFF)),
        objects::watch(ON, &bed.namespace, &spec(ON), &fields),
    ])?;
    for name in [OFF, ON] {
        bed.rolled_out(name)?;
        let mut nodes = bed.nodes_of(name)?;
        nodes.sort();
        nodes.dedup();
        ensure!(
            nodes.len() == bed.nodes().len(),
            "the pods are on {nodes:?}"
        );
        clients::until_answered(bed, &bed.service(name)?)?;
    }
    Ok(())
}

fn carried(samples: &[nic::Sample], began: f64, last: f64) -> Vec<(f64, f64)> {
    let seconds = (0..=u32::MAX).map(f64::from);
    let seconds = seconds.take_while(|second| began + second + 1.0 < last);
    let carried = seconds.filter_map(|second| {
        let rate = nic::rate(samples, began + second, began + second + 1.0)?;
        Some((second + 0.5, rate / 1e6))
    });
    carried.collect()
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
