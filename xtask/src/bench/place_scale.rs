//! `cargo xtask bench place-scale`: the operator's place with 5,000 nodes and 50 TrafficWatches that all measure
//! differently: how long a round takes, how much memory it needs, what it writes when nothing changes, and whether a
//! third of exporters that do harm delays the others.
//!
//! The API server is the lab's, the operator the real program in a process of its own. Nodes are objects; one process,
//! this one, answers as all of their exporters ([`exporters`]). That needs a network of its own, so the benchmark begins
//! anew in one where 10.98.0.0/16 is local. [`objects`] says what nodes and watches look like, [`round`] times rounds; what
//! other benchmarks of the kind need as well is in [`super::scale`].

mod exporters;
mod objects;
mod round;

use std::{
    ffi::OsString,
    path::Path,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use weir_lab::{
    cache::Cache,
    server::{NODE_LIFECYCLE, Server},
    tools::CONTROL_PLANE,
};

use self::exporters::Exporters;
use super::{
    Figure, finish, real,
    scale::{api::Api, definitions, network, operator::Operator},
    scratch::Scratch,
};
use crate::{program::WEIR, progress::Progress, tools};

/// What place could write. Its Lease is renewed whatever happens, so it is not among them.
const RESOURCES: [&str; 6] = [
    "nodes",
    "trafficwatches",
    "deployments",
    "replicasets",
    "pods",
    "events",
];
/// What the watches ask for, and what "on time" is measured by.
const INTERVAL: Duration = Duration::from_secs(10);
/// Two answers of a node may lie so much further apart than the interval.
const LATE: Duration = Duration::from_secs(1);
/// Longer than the minute after which figures alone are written, so that one such write would be seen.
const WATCHED: Duration = Duration::from_secs(65);

/// How large the cluster is.
#[derive(Clone, Copy, Debug)]
struct Size {
    nodes: usize,
    watches: usize,
}

/// Builds what is needed, and begins anew in a network of its own.
pub(super) fn run(is_quick: bool, json: Option<&Path>) -> Result<ExitCode> {
    tools::ensure(CONTROL_PLANE, &Cache::of_environment()?)?;
    let weir = WEIR.build()?;
    let mut arguments = vec![OsString::from("place-scale-inside")];
    if is_quick {
        arguments.push("--quick".into());
    }
    if let Some(file) = json {
        arguments.extend(["--json".into(), file.into()]);
    }
    network::begin_anew(&weir, arguments)
}

/// Measures, in a network of its own.
pub(super) fn run_inside(is_quick: bool, json: Option<&Path>) -> Result<ExitCode> {
    let weir = network::enter("10.98.0.0/16")?;
    let size = if is_quick {
        Size {
            nodes: 500,
            watches: 10,
        }
    } else {
        Size {
            nodes: 5000,
            watches: 50,
        }
    };
    let figures = measure(&weir, size)?;
    finish("place-scale", &figures, json)
}

fn measure(weir: &Path, size: Size) -> Result<Vec<Figure>> {
    let progress = Progress::new();
    let scratch = Scratch::new()?;
    progress.doing("starting an API server");
    // Nothing is behind the nodes: they are what their objects say.
    let server = Server::fresh_without(&Cache::of_environment()?, &[NODE_LIFECYCLE])?;
    let api = Api::new(&server, scratch.path())?;
    progress.doing(&format!("making {} nodes", size.nodes));
    objects::create_nodes(&api, size.nodes)?;
    definitions::create(&server, weir, "trafficwatches.traffic.example.com")?;
    objects::create_watches(&api, size.watches)?;
    let exporters = Exporters::start(size.nodes)?;

    progress.doing("starting the operator");
    let began = Instant::now();
    let port = format!("--node-exporter-port={}", exporters::PORT);
    let mut operator = Operator::start(weir, &server, scratch.path(), "place", &[port])?;
    operator.wait_until(
        "every watch is ready and has its Deployment",
        Duration::from_mins(10),
        || objects::are_placed(&api, size.watches),
    )?;
    let start = began.elapsed();
    progress.done(&format!("all watches are ready after {start:.1?}"));

    let mut figures = vec![Figure::new(
        "place.scale.start_seconds",
        start.as_secs_f64(),
        "s",
    )];
    progress.doing("timing rounds");
    // What began with the watches ends first: labels become "false", statuses are written.
    thread::sleep(INTERVAL * 3);
    let cpu = operator.cpu_seconds()?;
    let began = Instant::now();
    let rounds = round::time(&api, &exporters, size)?;
    let intervals = began.elapsed().as_secs_f64() / INTERVAL.as_secs_f64();
    let cpu = (operator.cpu_seconds()? - cpu) / intervals;
    let longest = rounds.iter().copied().fold(0.0, f64::max);
    figures.push(Figure::new("place.scale.round_seconds", longest, "s").at_most(10.0));
    figures.push(Figure::new("place.scale.round_cpu_seconds", cpu, "s"));

    progress.doing("counting writes while nothing changes");
    // Figures of the last round may be written within a minute after it.
    thread::sleep(WATCHED);
    let unchanged = writes(&api)?;
    figures.push(Figure::new("place.scale.writes_unchanged", unchanged, "").exactly(0));
    progress.doing("counting writes while figures change and verdicts do not");
    exporters.send_all(objects::CAPACITY / 10);
    thread::sleep(INTERVAL * 2);
    let steady = writes(&api)? * 60.0 / WATCHED.as_secs_f64();
    figures.push(Figure::new(
        "place.scale.writes_steady",
        steady,
        "per minute",
    ));

    progress.doing("a third of the exporters is slow, silent or lies");
    exporters.spoil_a_third();
    thread::sleep(WATCHED);
    let gaps = exporters.gaps();
    let on_time = gaps.iter().filter(|gap| **gap <= INTERVAL + LATE).count();
    let on_time = share(on_time, gaps.len());
    figures.push(Figure::new("place.scale.healthy_on_time", on_time, "share").at_least(1.0));
    let longest = gaps.iter().max().copied().unwrap_or(Duration::MAX);
    figures.push(Figure::new(
        "place.scale.healthy_longest_gap",
        longest.as_secs_f64(),
        "s",
    ));
    // The most that it ever had, with all that was done to it.
    let memory = operator.peak_mebibytes()?;
    figures.push(Figure::new("place.scale.rss_mib", memory, "MiB").below(512.0));
    Ok(figures)
}

fn share(part: usize, of: usize) -> f64 {
    real(u64::try_from(part).unwrap_or(u64::MAX)) / real(u64::try_from(of.max(1)).unwrap_or(1))
}

/// Writes within [`WATCHED`], as the API server counts them.
fn writes(api: &Api) -> Result<f64> {
    let before = api.writes(&RESOURCES)?;
    thread::sleep(WATCHED);
    Ok(real(api.writes(&RESOURCES)?.saturating_sub(before)))
}
