//! The referee: counts errors by itself, independently of the account, and knows after every
//! request whether the window's mean error was within the target.

use crate::unit::{ErrorRate, WHOLE};

/// What was seen so far.
#[derive(Clone, Debug)]
pub(super) struct Audit {
    target: i128,
    window: Option<i64>,
    count: i128,
    errors: i128,
    all_count: i128,
    all_errors: i128,
    worst: (i128, i128),
    violations: u64,
}

/// What it came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) mean_error: f64,
    pub(super) max_running_error: f64,
    pub(super) violations: u64,
}

impl Audit {
    pub(super) fn new(target: ErrorRate) -> Self {
        Self {
            target: i128::from(target.millionths()),
            window: None,
            count: 0,
            errors: 0,
            all_count: 0,
            all_errors: 0,
            worst: (0, 1),
            violations: 0,
        }
    }

    /// A slot of this window begins.
    pub(super) fn window(&mut self, since: i64) {
        if self.window != Some(since) {
            self.window = Some(since);
            self.count = 0;
            self.errors = 0;
        }
    }

    /// One request was answered with this error.
    pub(super) fn request(&mut self, error: i64) {
        self.count += 1;
        self.errors += i128::from(error);
        self.all_count += 1;
        self.all_errors += i128::from(error);
        self.check(1);
    }

    /// The same pattern of requests was answered `times` over. The running mean moves towards the
    /// pattern's own, monotonically at each place of the pattern, so that the first and the last round
    /// show its extremes.
    pub(super) fn rounds(&mut self, pattern: &[i64], times: u64) {
        let sum: i128 = pattern.iter().map(|e| i128::from(*e)).sum();
        let length = i128::try_from(pattern.len()).unwrap_or(0);
        let between = i128::from(times).saturating_sub(2).max(0);
        for round in 0..times.min(2) {
            for error in pattern {
                self.count += 1;
                self.errors += i128::from(*error);
                self.check(if round == 0 { 1 } else { times - 1 });
            }
            if round == 0 {
                self.count += between * length;
                self.errors += between * sum;
            }
        }
        self.all_count += i128::from(times) * length;
        self.all_errors += i128::from(times) * sum;
    }

    fn check(&mut self, weight: u64) {
        if self.errors > self.target * self.count {
            self.violations += weight;
        }
        if self.errors * self.worst.1 > self.worst.0 * self.count {
            self.worst = (self.errors, self.count);
        }
    }

    pub(super) fn verdict(&self) -> Verdict {
        Verdict {
            mean_error: ratio(self.all_errors, self.all_count),
            max_running_error: ratio(self.worst.0, self.worst.1),
            violations: self.violations,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn ratio(errors: i128, count: i128) -> f64 {
    if count == 0 {
        return 0.0;
    }
    errors as f64 / count as f64 / f64::from(WHOLE)
}
