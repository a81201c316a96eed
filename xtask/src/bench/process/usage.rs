//! What a process has used, from `/proc`: CPU time of all its threads, and resident memory.

use std::{fs, time::Duration};

use anyhow::{Context, Result};

/// CPU time that a process and its children have used so far, in all threads.
///
/// With the children, since nginx's work is done by a child of the process that we started.
pub(in crate::bench) fn cpu(pid: u32) -> Result<Duration> {
    let children = read(&format!("/proc/{pid}/task/{pid}/children"))?;
    let children = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok());
    let mut ticks = 0;
    for pid in children.chain([pid]) {
        let stat = read(&format!("/proc/{pid}/stat"))?;
        ticks += ticks_of(&stat).with_context(|| format!("cannot understand /proc/{pid}/stat"))?;
    }
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Ok(Duration::from_micros(ticks * 1_000_000 / per_second))
}

/// Resident memory of a process, in bytes.
pub(in crate::bench) fn resident(pid: u32) -> Result<u64> {
    let status = read(&format!("/proc/{pid}/status"))?;
    kibibytes_of(&status, "VmRSS:").with_context(|| format!("cannot understand /proc/{pid}/status"))
}

/// The most memory that a process has had resident so far, in bytes.
pub(in crate::bench) fn peak(pid: u32) -> Result<u64> {
    let status = read(&format!("/proc/{pid}/status"))?;
    kibibytes_of(&status, "VmHWM:").with_context(|| format!("cannot understand /proc/{pid}/status"))
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {path}: has the process ended?"))
}

/// `utime` and `stime`, the 14th and the 15th field.
fn ticks_of(stat: &str) -> Option<u64> {
    // The name comes second, in brackets, and may hold anything, even brackets and blanks.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// A line of the status, in bytes.
fn kibibytes_of(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ticks_are_found_behind_any_name() {
        let stat = "7 (a) R 1 (b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 3 4 20 0 1 0 99 1 2 3";
        assert_eq!(ticks_of(stat), Some(300));
        assert_eq!(ticks_of("7 (a) S 1"), None);
    }

    #[test]
    fn resident_memory_is_in_kibibytes() {
        let status =
            "Name:\tweir\nVmPeak:\t  999 kB\nVmHWM:\t 3072 kB\nVmRSS:\t   2048 kB\nThreads:\t1\n";
        assert_eq!(kibibytes_of(status, "VmRSS:"), Some(2 << 20));
        assert_eq!(kibibytes_of(status, "VmHWM:"), Some(3 << 20));
        assert_eq!(kibibytes_of("Name:\tzombie\n", "VmRSS:"), None);
    }

    #[test]
    fn this_process_uses_some() {
        let me = std::process::id();
        cpu(me).unwrap();
        assert!(resident(me).unwrap() > 0);
    }
}
