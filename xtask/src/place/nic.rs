//! A node's interface by its own counters, read from the kernel many times a second, beside Weir and node_exporter. What
//! comes of them are functions of values.

use std::{
    fs,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, bail};
use weir_lab::cluster::network::{NODE_INTERFACE, Network};

use crate::{bench::real, kube};

const EVERY: Duration = Duration::from_millis(50);
/// Some hours of them.
const MOST_SAMPLES: usize = 500_000;
/// Traffic has begun when it is so much over this time.
const BEGINNING_SECONDS: f64 = 0.5;
const GLANCE: Duration = Duration::from_millis(100);

/// One reading: when, in seconds since 1970, and how many bytes were sent so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) at: f64,
    pub(crate) sent: u64,
}

/// Reads until it is dropped.
pub(crate) struct Nic {
    samples: Arc<Mutex<Vec<Sample>>>,
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Nic {
    /// Begins to read.
    pub(crate) fn start(network: Network) -> Self {
        let samples = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (all, ends) = (Arc::clone(&samples), Arc::clone(&is_over));
        let reader = thread::spawn(move || {
            // Where the namespace cannot be entered nothing is read, and whoever asks is told.
            let _ = network.inside(|| read(&all, &ends));
        });
        Self {
            samples,
            is_over,
            reader: Some(reader),
        }
    }

    /// All that was read so far.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        lock(&self.samples).clone()
    }

    /// Waits until it sends at least this much; returns when that began.
    pub(crate) fn begins(
        &self,
        from: f64,
        bits_per_second: f64,
        patience: Duration,
    ) -> Result<f64> {
        self.until(patience, |samples| began(samples, from, bits_per_second))
    }

    /// Waits until it sends less than this; returns when that began.
    pub(crate) fn ends(&self, from: f64, bits_per_second: f64, patience: Duration) -> Result<f64> {
        self.until(patience, |samples| ended(samples, from, bits_per_second))
    }

    fn until(&self, patience: Duration, find: impl Fn(&[Sample]) -> Option<f64>) -> Result<f64> {
        let deadline = Instant::now() + patience;
        loop {
            let samples = self.samples();
            if let Some(found) = find(&samples) {
                return Ok(found);
            }
            if samples.is_empty() && Instant::now() > deadline {
                bail!("the counters of {NODE_INTERFACE} cannot be read");
            }
            if Instant::now() > deadline {
                return Err(anyhow!("the traffic did not change within {patience:?}"));
            }
            thread::sleep(GLANCE);
        }
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(reader) = self.reader.take() {
            // One that panicked has read less, and somebody missed it.
            let _ = reader.join();
        }
    }
}

fn read(all: &Mutex<Vec<Sample>>, is_over: &AtomicBool) {
    while !is_over.load(Ordering::SeqCst) {
        let before = kube::now();
        // That of this thread, which is inside; /sys would show the devices of the namespace that it was mounted in.
        let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
        if let Some(sent) = sent(&table, NODE_INTERFACE) {
            let at = f64::midpoint(before, kube::now());
            let mut all = lock(all);
            if all.len() < MOST_SAMPLES {
                all.push(Sample { at, sent });
            }
        }
        thread::sleep(EVERY);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that an interface has sent, in the kernel's table.
fn sent(table: &str, interface: &str) -> Option<u64> {
    let mut lines = table.lines();
    let counters = lines.find_map(|line| {
        let (name, counters) = line.trim().split_once(':')?;
        (name == interface).then_some(counters)
    })?;
    // Eight columns about what was received come first.
    counters.split_whitespace().nth(8)?.parse().ok()
}

/// When the counter stood at this value; between two readings it is taken to grow evenly.
pub(crate) fn when(samples: &[Sample], sent: u64) -> Option<f64> {
    let after = samples.partition_point(|sample| sample.sent < sent);
    let (one, other) = (samples.get(after.checked_sub(1)?)?, samples.get(after)?);
    let share = real(sent - one.sent) / real(other.sent - one.sent);
    Some(one.at + (other.at - one.at) * share)
}

/// Bits per second between two moments.
pub(crate) fn rate(samples: &[Sample], from: f64, to: f64) -> Option<f64> {
    let at = |moment: f64| {
        let after = samples.partition_point(|sample| sample.at < moment);
        let (one, other) = (samples.get(after.checked_sub(1)?)?, samples.get(after)?);
        let share = (moment - one.at) / (other.at - one.at);
        Some(real(one.sent) + (real(other.sent) - real(one.sent)) * share)
    };
    (to > from).then_some(())?;
    Some((at(to)? - at(from)?) * 8.0 / (to - from))
}

/// The first moment after `from` at which at least this much was sent for half a second.
fn began(samples: &[Sample], from: f64, bits_per_second: f64) -> Option<f64> {
    first(samples, from, |rate| rate >= bits_per_second)
}

/// The first moment after `from` at which less than this was sent for half a second.
fn ended(samples: &[Sample], from: f64, bits_per_second: f64) -> Option<f64> {
    first(samples, from, |rate| rate < bits_per_second)
}

fn first(samples: &[Sample], from: f64, is_it: impl Fn(f64) -> bool) -> Option<f64> {
    let mut later = samples.iter().filter(|sample| sample.at >= from);
    later.find_map(|sample| {
        let rate = rate(samples, sample.at, sample.at + BEGINNING_SECONDS)?;
        is_it(rate).then_some(sample.at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 bytes in each tenth of a second between 10 and 20, else none.
    fn samples() -> Vec<Sample> {
        (0..300_u32)
            .map(|tenth| Sample {
                at: f64::from(tenth) / 10.0,
                sent: u64::from(tenth.clamp(100, 200) - 100) * 100,
            })
            .collect()
    }

    fn close(found: Option<f64>, expected: f64) {
        let found = found.unwrap();
        assert!((found - expected).abs() < 1e-6, "{found}");
    }

    #[test]
    fn the_kernels_table_is_understood() {
        let table = "Inter-|   Receive                                                |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n    \
            lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  \
            eth0:11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26\n";
        assert_eq!(sent(table, "eth0"), Some(19));
        assert_eq!(sent(table, "lo"), Some(9));
        assert_eq!(sent(table, "eth1"), None);
        assert_eq!(sent("", "eth0"), None);
    }

    #[test]
    fn a_moment_is_found_by_what_the_counter_said_then() {
        close(when(&samples(), 5_000), 15.0);
        close(when(&samples(), 5_050), 15.05);
        assert_eq!(when(&samples(), 1_000_000), None, "it never got there");
        assert_eq!(when(&[], 1), None);
    }

    #[test]
    fn a_rate_is_what_was_sent_between_two_moments() {
        close(rate(&samples(), 12.0, 18.0), 8_000.0);
        close(rate(&samples(), 5.0, 15.0), 4_000.0);
        close(rate(&samples(), 12.03, 12.08), 8_000.0);
        assert_eq!(rate(&samples(), 12.0, 12.0), None);
        assert_eq!(rate(&samples(), 12.0, 40.0), None, "nobody was there");
    }

    #[test]
    fn traffic_begins_and_ends_where_it_changes() {
        close(began(&samples(), 0.0, 8_000.0), 10.0);
        close(began(&samples(), 12.0, 8_000.0), 12.0);
        assert_eq!(began(&samples(), 0.0, 9_000.0), None);
        close(ended(&samples(), 12.0, 1_000.0), 20.0);
    }
}
