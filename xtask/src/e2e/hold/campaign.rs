//! Many cycles under load, half of them by hand and half by a trigger.
//!
//! A client sends for a time that is given beforehand, so cycles come in rounds: as many as fit while clients send.

use std::{collections::BTreeMap, thread, time::Duration};

use anyhow::{Result, anyhow};

use super::{
    Options,
    clients::Clients,
    fault,
    log::{self, Log},
    passage::{self, Passage},
    target::{How, Target},
    wakes,
};
use crate::{cli::Fault, kube, load::report::Report, site::Site};

const CYCLES_IN_A_ROUND: u32 = 10;
/// What a cycle takes, about.
const A_CYCLE: Duration = Duration::from_secs(25);
/// A cycle that begins later would go on without clients, and then nobody wakes the target.
const LAST_BEGINS_BEFORE: Duration = Duration::from_secs(90);
/// Any step of a cycle.
const PATIENCE: Duration = Duration::from_mins(3);
/// Between cycles clients meet the pod alone.
const REST: Duration = Duration::from_secs(4);

/// One way to zero and back.
pub(super) struct Cycle {
    pub(super) passage: Passage,
    /// What resolvers measured, by phase, in seconds.
    pub(super) wakes: BTreeMap<String, f64>,
    /// When something was broken.
    pub(super) struck: Option<f64>,
}

/// All of them, and what clients counted.
pub(super) struct Campaign {
    pub(super) fault: Option<Fault>,
    pub(super) cycles: Vec<Cycle>,
    pub(super) reports: Vec<Report>,
}

pub(super) fn run(
    site: &Site,
    target: &Target,
    options: &Options,
    fault: Option<Fault>,
) -> Result<Campaign> {
    let log = log::start(&site.cluster, &target.namespace);
    let mut campaign = Campaign {
        fault,
        cycles: Vec::new(),
        reports: Vec::new(),
    };
    let cycles = match fault {
        None => options.cycles,
        Some(_) => options.fault_cycles,
    };
    let mut left = cycles;
    while left > 0 {
        let duration = A_CYCLE * left.min(CYCLES_IN_A_ROUND) + LAST_BEGINS_BEFORE;
        let clients = Clients::start(site, target, options.rate, duration)?;
        thread::sleep(REST);
        while left > 0 && clients.left() > LAST_BEGINS_BEFORE {
            let how = if left.is_multiple_of(2) {
                How::ByHand
            } else {
                How::ByTrigger
            };
            let cycle = cycle(site, target, &log, how, fault)?;
            left -= 1;
            println!(
                "  cycle {} of {}, {how:?}: pod ready after {:.2} s",
                cycles - left,
                cycles,
                cycle.passage.pod_start()
            );
            campaign.cycles.push(cycle);
        }
        campaign.reports.extend(clients.finish()?);
    }
    Ok(campaign)
}

fn cycle(site: &Site, target: &Target, log: &Log, how: How, fault: Option<Fault>) -> Result<Cycle> {
    if fault.is_some() {
        kube::until(PATIENCE, "what was broken is whole again", || {
            fault::renew(site)
        })?;
    }
    let before = read_wakes(site, target)?;
    let from = kube::now();
    let (passage, struck) = thread::scope(|scope| {
        let striking = fault.map(|fault| scope.spawn(move || fault::strike(site, fault)));
        let passage = go_and_return(site, target, log, how, from);
        let struck = striking.map(|it| it.join().map_err(|_| anyhow!("the fault panicked"))?);
        Ok::<_, anyhow::Error>((passage?, struck.transpose()?))
    })?;
    thread::sleep(REST);
    Ok(Cycle {
        passage,
        wakes: wakes::between(&before, &read_wakes(site, target)?),
        struck,
    })
}

/// Clients go on, so whoever puts it to sleep wakes it with the next request.
fn go_and_return(site: &Site, target: &Target, log: &Log, how: How, from: f64) -> Result<Passage> {
    let set_idle = |is_idle: bool| {
        kube::until(PATIENCE, "the ElastiService is changed", || {
            target.set_idle(site, is_idle)
        })
    };
    match how {
        How::ByHand => kube::until(PATIENCE, "the target is scaled", || {
            target.scale_to_zero(site)
        })?,
        How::ByTrigger => set_idle(true)?,
    }
    log.until(PATIENCE, |notes| passage::slept(notes, from))?;
    if how == How::ByTrigger {
        set_idle(false)?;
    }
    log.until(PATIENCE, |notes| passage::find(notes, from))
}

fn read_wakes(site: &Site, target: &Target) -> Result<wakes::Sums> {
    kube::until(PATIENCE, "the resolvers tell their metrics", || {
        wakes::read(site, &target.namespace)
    })
}
