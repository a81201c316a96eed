//! What place does for a service whose node's network is filled by somebody else: p99 and throughput with and without it.
//!
//! One service of three pods, one on each node, whose interfaces are all shaped to the same rate. Clients outside of the nodes
//! ask for answers of 128 KiB at a constant rate, with a new connection for each. After a while a sender that has nothing to
//! do with the service fills the first node's interface, and goes on. Without place the pod there stays. With place it is the
//! same Deployment, as the template of a TrafficWatch that moves it off. In the end the clients take as much as goes through.
//!
//! [`story`] is one time of this; [`plot`] draws both.

mod plot;
mod story;

use std::fs;

use anyhow::{Context, Result};

use self::story::Story;
use super::{Figure, real};
use crate::{place::bed::Bed, repository};

/// What each node's interface is shaped to, and what the watch is told that it carries.
const CAPACITY: u64 = 200_000_000;
/// Where the plot goes, for docs/place.md to show.
const PLOT: &str = "docs/place-bench.svg";

/// Whether there is a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Off,
    On,
}

pub(super) fn run() -> Result<Vec<Figure>> {
    let mut bed = Bed::prepare(false)?;
    let outcome = measure(&mut bed);
    bed.end(outcome.is_err())?;
    outcome
}

fn measure(bed: &mut Bed) -> Result<Vec<Figure>> {
    for node in bed.nodes() {
        bed.shape(node, CAPACITY)?;
    }
    let off = story::run(bed, Place::Off)?;
    let on = story::run(bed, Place::On)?;
    let path = repository::root().join(PLOT);
    fs::write(&path, plot::draw(&off, &on, CAPACITY))
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("  drawn to {PLOT}");
    figures(&off, &on)
}

fn figures(off: &Story, on: &Story) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let (mut p99, mut bulk) = (Vec::new(), Vec::new());
    for (name, story) in [("off", off), ("on", on)] {
        let id = |what: &str| format!("place.{name}.{what}");
        let answered = |report: &crate::load::report::Report| {
            report.latency.context("no request was answered")
        };
        let (quiet, full) = (answered(&story.quiet)?, answered(&story.full)?);
        let seconds = story.full.took_seconds;
        let answers = real(story.full.sent - story.full.failed()) / seconds;
        let mebibytes = real(story.bulk.bytes_received) / f64::from(1 << 20);
        let throughput = mebibytes / story.bulk.took_seconds;
        bulk.push(throughput);
        p99.push(full.p99);
        figures.extend([
            Figure::new(id("quiet.p99"), quiet.p99 / 1e3, "ms"),
            Figure::new(id("full.p50"), full.p50 / 1e3, "ms"),
            Figure::new(id("full.p99"), full.p99 / 1e3, "ms"),
            Figure::new(id("full.answers"), answers, "1/s"),
            Figure::new(id("full.throughput"), throughput, "MiB/s"),
            Figure::new(id("sent"), real(story.sent), "requests"),
            Figure::new(id("failed"), real(story.failed), "requests"),
        ]);
    }
    let p99 = p99[0] / p99[1];
    let throughput = bulk[1] / bulk[0];
    figures.push(Figure::new("place.p99_off_over_on", p99, "ratio").at_least(2.0));
    figures.push(Figure::new(
        "place.throughput_on_over_off",
        throughput,
        "ratio",
    ));
    if let (Some(labelled), Some(moved)) = (on.labelled, on.moved) {
        figures.push(Figure::new("place.on.labelled", labelled - on.filled, "s"));
        figures.push(Figure::new("place.on.moved", moved - on.filled, "s"));
    }
    Ok(figures)
}
