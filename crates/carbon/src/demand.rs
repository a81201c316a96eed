//! How many requests to expect: a profile of the day, learned from what was served.

/// How many days the memory of a time of day reaches back, about.
const MEMORY_DAYS: f64 = 7.0;

/// Mean requests per slot of the day, and over all.
#[derive(Clone, Debug, Default)]
pub struct DemandProfile {
    bins: Vec<Bin>,
    all: Bin,
    learned: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    mean: f64,
    count: f64,
}

impl Bin {
    fn learn(&mut self, value: f64, memory: f64) {
        self.count += 1.0;
        self.mean += (value - self.mean) / self.count.min(memory);
    }
}

impl DemandProfile {
    /// Learns the slots that are new in `served`, whose last one ended at `now`.
    pub fn learn(&mut self, served: &[u64], now: i64, slot_seconds: i64) {
        let per_day = usize::try_from(86_400 / slot_seconds.max(1))
            .unwrap_or(1)
            .max(1);
        if self.bins.len() != per_day {
            self.bins = vec![Bin::default(); per_day];
            self.learned = 0;
        }
        let new = served.len().saturating_sub(self.learned);
        for (k, value) in served.iter().rev().take(new).rev().enumerate() {
            let back = i64::try_from(new - k).unwrap_or(0);
            let bin = self.bin(now - back * slot_seconds, slot_seconds);
            #[expect(clippy::cast_precision_loss, reason = "requests of a slot")]
            let value = *value as f64;
            self.all.learn(value, MEMORY_DAYS * 48.0);
            if let Some(bin) = self.bins.get_mut(bin) {
                bin.learn(value, MEMORY_DAYS);
            }
        }
        self.learned = served.len();
    }

    /// Expected requests of the slot that begins then. One where nothing is known: plans only need
    /// proportions.
    pub fn expect(&self, at: i64, slot_seconds: i64) -> f64 {
        let bin = self.bins.get(self.bin(at, slot_seconds)).copied();
        match bin.filter(|bin| bin.count > 0.0) {
            Some(bin) => bin.mean,
            None if self.all.count > 0.0 => self.all.mean,
            None => 1.0,
        }
    }

    fn bin(&self, at: i64, slot_seconds: i64) -> usize {
        let of_day = at.rem_euclid(86_400) / slot_seconds.max(1);
        usize::try_from(of_day)
            .unwrap_or(0)
            .min(self.bins.len().saturating_sub(1))
    }
}
