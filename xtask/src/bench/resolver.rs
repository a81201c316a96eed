//! `cargo xtask bench resolver`: what the resolver costs beside nginx and Envoy, what holding takes, how fast it
//! lets go, and whether anybody notices a restart.
//!
//! All of it is one run on this machine, on loopback. The proxy under test has one core to itself; generators,
//! targets and this program share another. [`direct`] and [`tail`] compare proxies; [`held`], [`ready`] and
//! [`neighbour`] look at what only the resolver does; [`restarts`] stops it under load. The rest are the parts:
//! [`proxies`], [`upstreams`], [`weir`] and [`balancer`] are what runs, [`wrk`], [`h2load`], [`steady`] and
//! [`crowd`] put it under load, [`target`] answers.

mod ask;
mod balancer;
mod crowd;
mod direct;
mod h2load;
mod held;
mod message;
mod neighbour;
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

use self::{programs::Programs, site::Site};
use super::Figure;

/// Measures everything. A part that fails is told and counted, and the others go on.
pub(super) fn run(is_quick: bool) -> Result<Vec<Figure>> {
    let Some(programs) = Programs::get()? else {
        return Ok(Vec::new());
    };
    let Some(site) = Site::new(programs, is_quick)? else {
        return Ok(Vec::new());
    };
    let mut figures = Vec::new();
    let mut failed = 0_u32;
    let mut nginx_most = None;
    let mut part = |name: &str, measured: Result<Vec<Figure>>| match measured {
        Ok(measured) => figures.extend(measured),
        Err(error) => {
            println!("\n*** FAILED: {name}: {error:#}\n");
            failed += 1;
        }
    };
    part("small", direct::small(&site, &mut nginx_most));
    part("1mib", direct::one_mebibyte(&site));
    part("h2c", direct::h2c(&site));
    part("tail", tail::measure(&site, nginx_most));
    part("held", held::measure(&site));
    part("ready", ready::measure(&site));
    part("neighbour", neighbour::measure(&site));
    part("restarts", restarts::measure(&site));
    figures.push(Figure::new("resolver.parts_failed", f64::from(failed), "").exactly(0));
    site.say("done");
    Ok(figures)
}
