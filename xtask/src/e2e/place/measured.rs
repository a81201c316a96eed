//! A node fills up: its label says so, new pods keep off it, and Weir's figures are those of the interface. Then the traffic
//! ends, and the label says that, too.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::{CAPACITY, CLEAR_PERCENT, FULL_PERCENT, SHAPED, windows};
use crate::{
    bench::real,
    kube,
    place::{
        bed::{Bed, FULL},
        nic::Nic,
        objects, seen,
    },
};

const NAME: &str = "web";
const REPLICAS: u32 = 3;
/// When the node is full, so many more are asked for.
const MORE: u32 = 6;
const INTERVAL: Duration = Duration::from_secs(10);
const WINDOWS: usize = 5;
const PATIENCE: Duration = Duration::from_mins(2);

/// What came of it.
pub(super) struct Measured {
    /// The mean of [`WINDOWS`] windows.
    pub(super) error: f64,
    pub(super) percent: f64,
    pub(super) flip_seconds: f64,
    pub(super) clear_seconds: f64,
    pub(super) new_pods: u32,
    /// Of them on the full node.
    pub(super) new_pods_there: u32,
}

pub(super) fn run(bed: &Bed) -> Result<Measured> {
    println!("  a node fills up, and nobody is moved …");
    let log = seen::watch(&bed.site.cluster, &bed.namespace, NAME);
    let nic = Nic::start(bed.site.cluster.node_network(FULL));
    place(bed, REPLICAS)?;
    bed.rolled_out(NAME)?;
    let key = objects::key(NAME, &bed.namespace);
    let full = FULL.name();
    let until_label = |is_unfit, from| {
        log.until(PATIENCE, |notes| {
            let at = seen::labelled(notes, &full, &key, is_unfit, from);
            at.ok_or("the label of the node changes")
        })
    };
    for node in bed.nodes() {
        log.until(PATIENCE, |notes| {
            let at = seen::labelled(notes, &node.name(), &key, false, 0.0);
            at.ok_or("all nodes are fit")
        })?;
    }

    let asked = kube::now();
    bed.fill(true)?;
    let began = nic.begins(asked, real(SHAPED) * 0.5, PATIENCE)?;
    let flipped = until_label(true, began)?;
    println!("  full after {:.1} s", flipped - began);

    let before = there(bed)?;
    place(bed, REPLICAS + MORE)?;
    bed.rolled_out(NAME)?;
    let new_pods_there = there(bed)?.saturating_sub(before);

    let steady = began + INTERVAL.as_secs_f64() * 2.0;
    let windows = log.until(INTERVAL * 12, |notes| {
        let readings = seen::readings(notes, &full, steady);
        let windows = windows::between(&readings, &nic.samples(), CAPACITY);
        let enough = windows.get(..WINDOWS).map(<[_]>::to_vec);
        enough.ok_or("readings one interval after another")
    })?;
    for window in &windows {
        let (weir, counted) = (window.weir, window.counted);
        println!("  weir {weir:.2} %, counters {counted:.2} %");
    }

    let asked = kube::now();
    bed.fill(false)?;
    let ended = nic.ends(asked, real(SHAPED) * 0.1, PATIENCE)?;
    let cleared = until_label(false, ended)?;
    println!("  clear after {:.1} s", cleared - ended);
    // Two readings below the limit are an interval apart, however the traffic ended between them.
    ensure!(
        cleared - ended > INTERVAL.as_secs_f64() * 0.9,
        "it was cleared after a single reading"
    );
    bed.remove(NAME)?;

    #[allow(clippy::cast_precision_loss, reason = "five of them")]
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let errors: Vec<f64> = windows.iter().map(windows::Window::error).collect();
    let percents: Vec<f64> = windows.iter().map(|window| window.weir).collect();
    Ok(Measured {
        error: mean(&errors),
        percent: mean(&percents),
        flip_seconds: flipped - began,
        clear_seconds: cleared - ended,
        new_pods: MORE,
        new_pods_there,
    })
}

fn place(bed: &Bed, replicas: u32) -> Result<()> {
    let spec = objects::server_spec(NAME, replicas);
    let fields = json!({
        "maxBandwidthPercent": FULL_PERCENT,
        "clearPercent": CLEAR_PERCENT,
        "capacities": [{"bitsPerSecond": CAPACITY}],
    });
    bed.apply(&[objects::watch(NAME, &bed.namespace, &spec, &fields)])
}

/// How many pods are on the node that fills up.
fn there(bed: &Bed) -> Result<u32> {
    let full = FULL.name();
    let count = bed.nodes_of(NAME)?.iter().filter(|it| **it == full).count();
    Ok(u32::try_from(count)?)
}
