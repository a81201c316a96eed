//! How often something took how long.

use std::time::Duration;

/// Counts per bucket, each observation in one; the text has them added up.
#[derive(Clone, Copy, Debug)]
pub struct Histogram<const N: usize> {
    buckets: [u64; N],
    above: u64,
    sum: Duration,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Histogram<N> {
    /// Nothing observed yet.
    pub const fn new() -> Self {
        Self {
            buckets: [0; N],
            above: 0,
            sum: Duration::ZERO,
        }
    }

    /// A value that lies on a bound belongs below it.
    pub fn observe(&mut self, bounds: &[f64; N], took: Duration) {
        let seconds = took.as_secs_f64();
        let slot = bounds
            .iter()
            .zip(&mut self.buckets)
            .find(|(bound, _)| seconds <= **bound);
        match slot {
            Some((_, count)) => *count += 1,
            None => self.above += 1,
        }
        self.sum = self.sum.saturating_add(took);
    }

    /// How many are at or below each bound.
    pub fn cumulative(&self) -> [u64; N] {
        let mut sum = 0;
        self.buckets.map(|count| {
            sum += count;
            sum
        })
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum::<u64>() + self.above
    }

    /// All of them together.
    pub fn sum(&self) -> Duration {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_the_first_bucket_that_takes_them() {
        let bounds = [0.1, 1.0];
        let mut histogram = Histogram::new();
        for millis in [0, 100, 101, 1000, 1001] {
            histogram.observe(&bounds, Duration::from_millis(millis));
        }
        assert_eq!(histogram.cumulative(), [2, 4]);
        assert_eq!(histogram.count(), 5);
        assert_eq!(histogram.sum(), Duration::from_millis(2202));
        histogram.observe(&bounds, Duration::MAX);
        assert_eq!(histogram.count(), 6);
    }
}
