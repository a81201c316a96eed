//! Place on nodes whose network is shaped to a known rate: does Weir see what the interface's own counters see, how soon does
//! it say so, do pods keep off and move off, and does anybody notice the move?
//!
//! - [`measured`]: a node fills up while nobody moves, and clears again; [`windows`]: Weir's figures beside the counters;
//! - [`evicted`]: the same with pods that move off it, under load.
//!
//! The cluster and what is in it are [`crate::place`]'s.

mod evicted;
mod measured;
mod windows;

use anyhow::Result;

use self::{evicted::Evicted, measured::Measured};
use crate::{
    bench::{Figure, real},
    place::bed::{Bed, FULL},
};

/// What the watch is told that interfaces carry: a veth says 10 Gbit/s whatever it is shaped to.
const CAPACITY: u64 = 200_000_000;
/// What the node's interface is shaped to: 75 % of that.
const SHAPED: u64 = 150_000_000;
const SENDER_CONNECTIONS: u32 = 16;
/// Above the first of these the node is full, below the second it is not.
const FULL_PERCENT: &str = "50";
const CLEAR_PERCENT: &str = "30";

/// What was asked for.
pub(crate) struct Options {
    /// With the programs that tests use: times are told without goals.
    pub(crate) is_dev: bool,
    /// Leave the cluster up.
    pub(crate) keep: bool,
}

pub(crate) fn run(options: &Options) -> Result<Vec<Figure>> {
    let mut bed = Bed::prepare(options.is_dev, SENDER_CONNECTIONS)?;
    let outcome = measure(&mut bed, options.is_dev);
    bed.end(options.keep || outcome.is_err())?;
    outcome
}

fn measure(bed: &mut Bed, is_dev: bool) -> Result<Vec<Figure>> {
    bed.shape(FULL, SHAPED)?;
    let measured = measured::run(bed)?;
    let evicted = evicted::run(bed)?;
    Ok(figures(&measured, &evicted, is_dev))
}

fn figures(measured: &Measured, evicted: &Evicted, is_dev: bool) -> Vec<Figure> {
    let seconds = |id: &str, value: f64, most: f64| {
        let figure = Figure::new(id, value, "s");
        if is_dev { figure } else { figure.at_most(most) }
    };
    let count = |id: &str, value: u32| Figure::new(id, f64::from(value), "count");
    let shaped = real(SHAPED) / real(CAPACITY) * 100.0;
    let moves = &evicted.moves;
    let as_count = |all: usize| u32::try_from(all).unwrap_or(u32::MAX);
    vec![
        Figure::new("place.error_vs_counters", measured.error, "ratio").at_most(0.03),
        Figure::new(
            "place.percent_vs_shaped",
            measured.percent / shaped,
            "ratio",
        ),
        seconds(
            "place.flip_seconds",
            measured.flip_seconds.max(evicted.flip_seconds),
            35.0,
        ),
        seconds("place.clear_seconds", measured.clear_seconds, 35.0),
        count("place.new_pods", measured.new_pods),
        count("place.new_pods_on_full_node", measured.new_pods_there).exactly(0),
        count("place.evict.moved", as_count(moves.evicted.len())).exactly(evicted::REPLICAS),
        count("place.evict.gone_otherwise", as_count(moves.others.len())).exactly(0),
        count("place.evict.most_at_once", moves.most_at_once).exactly(1),
        count("place.evict.least_serving", moves.least_serving).at_least(f64::from(evicted::LEAST)),
        Figure::new("place.evict.seconds", evicted.seconds, "s"),
        Figure::new("place.evict.sent", real(evicted.sent), "requests"),
        Figure::new("place.evict.failed", real(evicted.failed), "requests").exactly(0),
    ]
}
