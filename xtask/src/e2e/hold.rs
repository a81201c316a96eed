//! Hold on a real cluster: a target goes to zero and back, again and again, while clients go on. How many first attempts
//! fail, how long does a wake take, and how much of that is Weir's own doing?
//!
//! - [`site`]: the cluster, the images and what is installed;
//! - [`target`]: what is put to sleep; [`clients`]: who sends;
//! - [`log`]: what happened when, from watches; [`passage`]: one way to zero and back in it;
//! - [`wakes`]: what the resolvers measured;
//! - [`campaign`]: many cycles under load; [`plain`]: a rolling restart under the same load, to compare with;
//! - [`fault`]: what is broken meanwhile;
//! - [`early`]: wakes one at a time, of a target that is ready long before the kubelet asks again;
//! - [`figures`]: what all of it comes to.

mod campaign;
mod clients;
mod early;
mod fault;
mod figures;
mod log;
mod passage;
mod plain;
mod site;
mod target;
mod wakes;

use anyhow::Result;

use crate::{bench::Figure, cli::Fault, site::Site};

/// What was asked for.
pub(crate) struct Options {
    /// How often the target goes to zero; 0: it stays up, and the operator is not needed.
    pub(crate) cycles: u32,
    /// Requests per second, of all clients together.
    pub(crate) rate: u32,
    /// What is broken; each of them has cycles of its own.
    pub(crate) faults: Vec<Fault>,
    /// How many.
    pub(crate) fault_cycles: u32,
    /// How many wakes of a target that is asked often, and as many of one that is asked seldom.
    pub(crate) early_wakes: u32,
    /// The cluster's name; `cargo xtask cluster --name` looks at it.
    pub(crate) cluster: String,
    /// With the programs that tests use, which are slower: times are told without goals.
    pub(crate) is_dev: bool,
    /// Leave the cluster up.
    pub(crate) keep: bool,
}

/// Adds to the figures as it goes: what fails after an hour takes nothing of that hour with it.
pub(crate) fn run(options: &Options, all: &mut Vec<Figure>) -> Result<()> {
    let site = site::prepare(&options.cluster, options.cycles > 0, options.is_dev)?;
    let outcome = measure(&site, options, all);
    match &outcome {
        Ok(()) if !options.keep => site.leave()?,
        _ => site.say_how_to_look(),
    }
    outcome
}

fn measure(site: &Site, options: &Options, all: &mut Vec<Figure>) -> Result<()> {
    let target = target::Target::deploy(site)?;
    let plain = plain::run(site, &target, options.rate)?;
    all.extend(figures::of_plain(&plain));
    if options.cycles == 0 {
        return Ok(());
    }
    target.hold(site)?;
    let undisturbed = std::iter::once(None);
    for fault in undisturbed.chain(options.faults.iter().copied().map(Some)) {
        let campaign = campaign::run(site, &target, options, fault)?;
        println!("{}", figures::table(&campaign));
        all.extend(figures::of_campaign(&campaign, options.is_dev));
    }
    if options.early_wakes > 0 {
        let early = early::run(site, &target, options.early_wakes, options.is_dev);
        all.extend(early?);
    }
    Ok(())
}
