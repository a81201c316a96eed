//! Ten thousand requests held at once, each on a connection of its own with a body of 1 KiB: what memory that takes,
//! how long it takes to answer all of them once the target is ready, and whether a weak target loses any. And a thousand for
//! one that falls over if it is sent twice of what it takes: whether it does, and how long it takes compared with the least
//! that it could.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use anyhow::Result;

use super::{
    crowd::{Crowd, End},
    site::Site,
    target::Target,
    weir::{Resolver, Service},
};
use crate::bench::{
    Figure, ask, ports,
    process::{Process, command, wait_until},
    real,
};

const REQUESTS: usize = 10_000;
const BODY_BYTES: usize = 1024;
/// More than are held. What is left of the 20,000 files that one may often open is for connections to the target.
const LIMITS: [&str; 4] = [
    "--max-connections",
    "15000",
    "--max-held-per-service",
    "15000",
];
/// What the weak target does at once, and for how long.
const WORKERS: usize = 10;
const WORK: Duration = Duration::from_millis(5);

/// How many are held for the one that falls over, what it does at once and for how long, and when it falls over. A POST is not
/// sent again once it was sent, so one that goes down with it has failed.
const PACED: u32 = 1000;
const PACED_AT_A_TIME: u32 = 10;
const PACED_FALLS_OVER_AT: u32 = 20;
const PACED_WORK: Duration = Duration::from_millis(100);

/// What came of one release.
struct Released {
    mebibytes_above_idle: f64,
    seconds: f64,
    cpu_seconds: f64,
    faults: BTreeMap<String, u64>,
}

pub(super) fn measure(site: &Site) -> Result<Vec<Figure>> {
    let (address, _strong) = lab_app(site, "held", &[])?;
    let quick = release(site, "held, a target that can", address, REQUESTS)?;
    let weak = Target::start(WORKERS, WORK, None)?;
    let slow = release(
        site,
        "held, a target that takes 10 at a time",
        weak.address(),
        REQUESTS,
    )?;
    let (address, _fragile) = lab_app(site, "paced", &fragile())?;
    let paced = release(
        site,
        "held, a target that falls over at 20",
        address,
        PACED.try_into()?,
    )?;
    let ideal = PACED_WORK * PACED / PACED_AT_A_TIME;
    let failed = |released: &Released| real(released.faults.values().sum());
    Ok(vec![
        Figure::new(
            "resolver.held_10k.mib_above_idle",
            quick.mebibytes_above_idle,
            "MiB",
        )
        .below(200.0),
        Figure::new("resolver.held_10k.release_seconds", quick.seconds, "s").at_most(1.0),
        Figure::new(
            "resolver.held_10k.release_cpu_seconds",
            quick.cpu_seconds,
            "s",
        ),
        Figure::new("resolver.held_10k.failed", failed(&quick), "").exactly(0),
        Figure::new("resolver.held_10k.slow_target.failed", failed(&slow), "").exactly(0),
        Figure::new("resolver.held_10k.slow_target.seconds", slow.seconds, "s"),
        Figure::new("hold.pacing.failed", failed(&paced), "").exactly(0),
        Figure::new(
            "hold.pacing_vs_ideal",
            paced.seconds / ideal.as_secs_f64(),
            "",
        )
        .at_most(1.3),
    ])
}

/// Flags of the lab's server that make it fragile.
fn fragile() -> [String; 6] {
    let (most, fall) = (PACED_AT_A_TIME.to_string(), PACED_FALLS_OVER_AT.to_string());
    let work = format!("{}ms", PACED_WORK.as_millis());
    let flag = |name: &str| format!("--{name}");
    [
        flag("max-concurrent"),
        most,
        flag("fall-over-at"),
        fall,
        flag("work"),
        work,
    ]
}

/// The lab's server, which gives each body back.
fn lab_app(site: &Site, part: &str, flags: &[String]) -> Result<(SocketAddr, Process)> {
    let (address, tcp) = (ports::address()?, ports::address()?);
    let mut command = command(&site.programs.lab_app, None);
    command.args(["echo", "--listen", &address.to_string()]);
    command.args(["--tcp-listen", &tcp.to_string()]).args(flags);
    let home = site.scratch.part(part)?;
    let mut process = Process::start("lab-app", command, &home)?.killed_at_the_end();
    process.wait_until_ready(|| ask::get(address, "/ready").is_ok_and(|it| it.status == 200))?;
    Ok((address, process))
}

fn release(site: &Site, what: &str, target: SocketAddr, requests: usize) -> Result<Released> {
    let port = ports::port()?;
    let asleep = Service::new("crowd", port);
    let resolver = Resolver::start(site, "held-weir", &LIMITS, std::slice::from_ref(&asleep))?;
    let idle = resolver.mebibytes()?;
    let crowd = Crowd::send(vec![resolver.address(port); requests], BODY_BYTES)?;
    let mut held = 0;
    wait_until("all requests are held", Duration::from_mins(1), || {
        // To say it takes the resolver a while as well, so it is not asked all the time.
        std::thread::sleep(Duration::from_millis(200));
        held = resolver.held().unwrap_or(held);
        usize::try_from(held).is_ok_and(|held| held >= requests)
    })
    .map_err(|error| error.context(format!("{held} of {requests} are held")))?;
    let mebibytes_above_idle = resolver.mebibytes()? - idle;
    site.say(&format!(
        "{what}: {held} held, {mebibytes_above_idle:.0} MiB above the {idle:.0} MiB of an idle one"
    ));
    let cpu_before = resolver.cpu_seconds()?;
    let began = resolver.tell(&[asleep.ready_at(target)])?;
    let ends = crowd.answers(Duration::from_mins(2))?;
    let cpu_seconds = resolver.cpu_seconds()? - cpu_before;
    let last = ends.iter().map(|end| end.at).max().unwrap_or(began);
    let seconds = (last - began).as_secs_f64();
    let faults = faults(&ends);
    site.say(&format!(
        "{what}: the last answer after {seconds:.2} s, of which the resolver worked {cpu_seconds:.2} s; {}",
        told(&faults)
    ));
    Ok(Released {
        mebibytes_above_idle,
        seconds,
        cpu_seconds,
        faults,
    })
}

fn faults(ends: &[End]) -> BTreeMap<String, u64> {
    let mut faults = BTreeMap::new();
    for fault in ends.iter().filter_map(|end| end.fault.as_ref()) {
        *faults.entry(fault.clone()).or_default() += 1;
    }
    faults
}

fn told(faults: &BTreeMap<String, u64>) -> String {
    if faults.is_empty() {
        return "none failed".to_owned();
    }
    let each: Vec<String> = faults
        .iter()
        .map(|(kind, count)| format!("{kind}: {count}"))
        .collect();
    format!("FAILED: {}", each.join(", "))
}
