//! What all parts of the run share: programs, a place for files, which core is whose, and a clock.

use std::{
    fs,
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use rustix::{
    process::{Resource, getrlimit, setrlimit},
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

use super::programs::Programs;
use crate::bench::{nginx, ports, process::Process, scratch::Scratch};

/// Where it all happens.
pub(super) struct Site {
    pub(super) programs: Programs,
    pub(super) is_quick: bool,
    /// The core that belongs to the proxy under test alone.
    pub(super) proxy_core: usize,
    /// Where wakes are asked for. It says yes to all and does nothing: the benchmarks make targets ready.
    pub(super) operator: SocketAddr,
    _operator: Process,
    /// After the process, which is gone before its files are.
    pub(super) scratch: Scratch,
    began: Instant,
}

impl Site {
    /// Takes the machine's first core for proxies, and moves this process, with all that it will start, to the last.
    pub(super) fn new(programs: Programs, is_quick: bool) -> Result<Option<Self>> {
        // Before anything of ours runs.
        let load_average = fs::read_to_string("/proc/loadavg").ok();
        let ours = sched_getaffinity(None).context("cannot ask which cores we may use")?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| ours.is_set(*core));
        let (Some(first), Some(last)) = (cores.next(), cores.next_back()) else {
            println!("\n*** SKIPPED: there is one core, and proxy and load need one each");
            return Ok(None);
        };
        let mut set = CpuSet::new();
        set.set(last);
        sched_setaffinity(None, &set).context("cannot move to one core")?;
        // For what we start: ten thousand connections are as many files, on both sides.
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        setrlimit(Resource::Nofile, limit).context("cannot raise the limit of open files")?;
        let scratch = Scratch::new()?;
        let operator = ports::address()?;
        let home = scratch.part("operator")?;
        let site = Self {
            programs,
            is_quick,
            proxy_core: first,
            operator,
            _operator: nginx::start(&home, &nginx::ten_bytes(operator), operator, None)?,
            scratch,
            began: Instant::now(),
        };
        site.say(&format!(
            "proxies run on core {first}, the rest on core {last}"
        ));
        if let Some(load) = others(load_average.as_deref()) {
            site.say(&format!(
                "*** others use this machine (load {load}): times will vary, and long tails are theirs"
            ));
        }
        Ok(Some(site))
    }

    /// How often everything that is compared is measured.
    pub(super) fn rounds(&self) -> usize {
        if self.is_quick { 1 } else { 5 }
    }

    /// How long a generator runs each time.
    pub(super) fn span(&self) -> Duration {
        Duration::from_secs(if self.is_quick { 2 } else { 4 })
    }

    /// A line of progress, with the time since the start.
    pub(super) fn say(&self, what: &str) {
        println!("[{:6.1} s] {what}", self.began.elapsed().as_secs_f64());
    }
}

/// The machine's load over the last minute, if it is more than our own start can be.
fn others(load_average: Option<&str>) -> Option<f64> {
    let load = load_average?.split_whitespace().next()?;
    load.parse().ok().filter(|load| *load > 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_noticed() {
        assert_eq!(others(Some("4.13 4.53 4.20 3/900 1234\n")), Some(4.13));
        assert_eq!(others(Some("0.40 4.53 4.20 3/900 1234\n")), None);
        assert_eq!(others(None), None);
    }
}
