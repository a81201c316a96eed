//! What place does for a service whose node's network is filled by somebody else: p99 and throughput with and without it.
//!
//! The same Deployment twice, each with one pod on each of three nodes, whose interfaces are all shaped to the same rate. One is
//! as it is, the other is the template of a TrafficWatch that moves pods. Clients outside of the nodes ask both at the same
//! time for answers of 256 KiB, at a constant rate and with a new connection for each. After a while a sender that has nothing
//! to do with either fills the first node's interface, and goes on. In the end clients take as much as goes through, from one
//! and then from the other.
//!
//! Side by side, since the machine is busy with all of it: what disturbs one disturbs the other. [`story`] is what happens,
//! [`plot`] draws it.

mod plot;
mod story;

use std::fs;

use anyhow::{Context, Result};

use self::story::Story;
use super::{Figure, real};
use crate::{load::report::Report, place::bed::Bed, repository};

/// What each node's interface is shaped to, and what the watch is told that it carries.
const CAPACITY: u64 = 200_000_000;
/// Of the sender that fills an interface.
const SENDER_CONNECTIONS: u32 = 64;
/// Answers that nothing is in the way of take some milliseconds; slower ones wait for the machine's cores.
const BUSY_MICROSECONDS: f64 = 100e3;
/// Where the plot goes, for docs/place.md to show.
const PLOT: &str = "docs/place-bench.svg";

pub(super) fn run() -> Result<Vec<Figure>> {
    let mut bed = Bed::prepare(false, SENDER_CONNECTIONS)?;
    let outcome = measure(&mut bed);
    bed.end(outcome.is_err())?;
    outcome
}

fn measure(bed: &mut Bed) -> Result<Vec<Figure>> {
    for node in bed.nodes() {
        bed.shape(node, CAPACITY)?;
    }
    let story = story::run(bed)?;
    let path = repository::root().join(PLOT);
    fs::write(&path, plot::draw(&story, CAPACITY))
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("  drawn to {PLOT}");
    figures(&story)
}

fn figures(story: &Story) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let (mut p99, mut through) = (Vec::new(), Vec::new());
    for (name, side) in [("off", &story.off), ("on", &story.on)] {
        let id = |what: &str| format!("place.{name}.{what}");
        let answered = |report: &Report| report.latency.context("no request was answered");
        let (quiet, full) = (answered(&side.quiet)?, answered(&side.full)?);
        let answers = real(side.full.sent - side.full.failed()) / side.full.took_seconds;
        let mebibytes = real(side.bulk.bytes_received) / f64::from(1 << 20);
        let throughput = mebibytes / side.bulk.took_seconds;
        if quiet.p99 > BUSY_MICROSECONDS {
            println!(
                "*** The machine is busy: p99 was {:.0} ms with all quiet.",
                quiet.p99 / 1e3
            );
            println!(
                "    Its delays are in all other figures as well; measure again when it is not."
            );
        }
        p99.push(full.p99);
        through.push(throughput);
        figures.extend([
            Figure::new(id("quiet.p99"), quiet.p99 / 1e3, "ms"),
            Figure::new(id("full.p50"), full.p50 / 1e3, "ms"),
            Figure::new(id("full.p99"), full.p99 / 1e3, "ms"),
            Figure::new(id("full.answers"), answers, "1/s"),
            Figure::new(id("full.throughput"), throughput, "MiB/s"),
            Figure::new(id("sent"), real(side.sent()), "requests"),
            Figure::new(id("failed"), real(side.failed()), "requests"),
        ]);
    }
    let (p99, through) = (p99[0] / p99[1], through[1] / through[0]);
    figures.extend([
        Figure::new("place.p99_off_over_on", p99, "ratio").at_least(2.0),
        Figure::new("place.throughput_on_over_off", through, "ratio"),
        Figure::new("place.on.labelled", story.labelled - story.filled, "s"),
        Figure::new("place.on.moved", story.moved - story.filled, "s"),
    ]);
    Ok(figures)
}
