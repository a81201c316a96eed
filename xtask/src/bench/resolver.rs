//! `cargo xtask bench resolver`: what the resolver costs beside nginx and Envoy, what holding takes, how fast it
//! lets go, and whether anybody notices a restart.
//!
//! All of it is one run on this machine, on loopback. The proxy under test has one core to itself; generators,
//! targets and this program share another. [`direct`] and [`tail`] compare proxies; [`held`], [`ready`] and
//! [`neighbour`] look at what only the resolver does; [`restarts`] stops it under load. The rest are the parts:
//! [`proxies`], [`upstreams`], [`weir`] and [`balancer`] are what runs, [`wrk`], [`h2load`], [`steady`],
//! [`paced`] and [`crowd`] put it under load, [`target`] answers.

mod balancer;
mod crowd;
mod direct;
mod h2load;
mod held;
mod neighbour;
mod paced;
mod programs;
mod proxies;
mod ready;
mod restarts;
mod site;
mod steady;
mod tail;
mod target;
mod upstreams;
mod weir;
mod wrk;

use anyhow::Result;
use clap::ValueEnum;

use self::{programs::Programs, site::Site};
use super::Figure;
use crate::cli::ResolverPart;

/// Measures these parts, or all if none is named. A part that fails is told and counted, and the others go on.
pub(super) fn run(is_quick: bool, only: &[ResolverPart]) -> Result<Vec<Figure>> {
    let Some(programs) = Programs::get()? else {
        return Ok(Vec::new());
    };
    let Some(site) = Site::new(programs, is_quick)? else {
        return Ok(Vec::new());
    };
    let mut figures = Vec::new();
    let mut failed = 0_u32;
    let mut nginx_most = None;
    for part in ResolverPart::value_variants() {
        if !only.is_empty() && !only.contains(part) {
            continue;
        }
        let measured = match part {
            ResolverPart::Small => direct::small(&site, &mut nginx_most),
            ResolverPart::Large => direct::one_mebibyte(&site),
            ResolverPart::H2c => direct::h2c(&site),
            ResolverPart::Tail => tail::measure(&site, nginx_most),
            ResolverPart::Held => held::measure(&site),
            ResolverPart::Ready => ready::measure(&site),
            ResolverPart::Neighbour => neighbour::measure(&site),
            ResolverPart::Restarts => restarts::measure(&site),
        };
        match measured {
            Ok(measured) => figures.extend(measured),
            Err(error) => {
                println!("\n*** FAILED: {part:?}: {error:#}\n");
                failed += 1;
            }
        }
    }
    figures.push(Figure::new("resolver.parts_failed", f64::from(failed), "").exactly(0));
    site.say("done");
    Ok(figures)
}
