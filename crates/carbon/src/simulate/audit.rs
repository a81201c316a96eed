//! The referee: counts errors by itself, independently of the account, and knows after every
//! request whether the window's mean error was within the target.

use crate::unit::{ErrorRate, WHOLE};

/// What was seen so far.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// Requests that are answered one after the other, perhaps several times over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    errors: Vec<i64>,
    sum: i128,
    /// The least that target − error comes to on the way.
    least: i128,
}

/// What it came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) mean_error: f64,
    pub(super) max_running_error: f64,
    pub(super) violations: u64,
}

impl Pattern {
    pub(super) fn new(errors: Vec<i64>, target: ErrorRate) -> Self {
        let (mut sum, mut credit, mut least) = (0_i64, 0, i64::MAX);
        for error in &errors {
            sum += error;
            credit += target.millionths() - error;
            least = least.min(credit);
        }
        Self {
            errors,
            sum: sum.into(),
            least: least.into(),
        }
    }

    fn length(&self) -> i128 {
        i128::try_from(self.errors.len()).unwrap_or(i128::MAX)
    }
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
        if self.errors > self.target * self.count {
            self.violations += 1;
        }
        self.remember(self.errors, self.count);
    }

    /// The same pattern of requests was answered `times` over; counts as [`Audit::request`] would for each.
    pub(super) fn rounds(&mut self, pattern: &Pattern, times: u64) {
        let (times, length) = (i128::from(times), pattern.length());
        if times == 0 || length == 0 {
            return;
        }
        if !self.cannot_matter(pattern, times) {
            self.walk(pattern, times);
        }
        let (count, errors) = (times * length, times * pattern.sum);
        self.count += count;
        self.errors += errors;
        self.all_count += count;
        self.all_errors += errors;
    }

    /// True if credit stays so high all the way that no request of these can be above the target, or
    /// above the worst that was seen.
    fn cannot_matter(&self, pattern: &Pattern, times: i128) -> bool {
        let net = self.target * pattern.length() - pattern.sum;
        let credit = self.target * self.count - self.errors;
        let least = credit + pattern.least + (net * (times - 1)).min(0);
        let (errors, count) = self.worst;
        let most_count = self.count + times * pattern.length();
        least >= 0 && least * count >= (self.target * count - errors) * most_count
    }

    /// Place by place of the pattern. From round to round the running mean at one place moves one way, so
    /// that its highest is in the first or the last round; and credit there changes by the same amount, so that
    /// the rounds with a violation can be counted without playing them.
    fn walk(&mut self, pattern: &Pattern, times: i128) {
        let (length, sum) = (pattern.length(), pattern.sum);
        let net = self.target * length - sum;
        let (mut count, mut errors) = (self.count, self.errors);
        for error in &pattern.errors {
            count += 1;
            errors += i128::from(*error);
            self.remember(errors, count);
            self.remember(errors + (times - 1) * sum, count + (times - 1) * length);
            let credit = self.target * count - errors;
            let violations = negatives(credit, net, times);
            self.violations += u64::try_from(violations).unwrap_or(u64::MAX);
        }
    }

    fn remember(&mut self, errors: i128, count: i128) {
        if errors * self.worst.1 > self.worst.0 * count {
            self.worst = (errors, count);
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

/// How many of first, first + step, first + 2·step, … (so many of them) are below zero.
fn negatives(first: i128, step: i128, times: i128) -> i128 {
    if step == 0 {
        return if first < 0 { times } else { 0 };
    }
    if step > 0 {
        // Negative until it has climbed to zero.
        return (-first).max(0).div_euclid(step).min(times)
            + i128::from(first < 0 && (-first) % step != 0 && -first / step < times);
    }
    // The first so many are at or above zero.
    let fine = if first < 0 { 0 } else { first / -step + 1 };
    (times - fine).max(0)
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn ratio(errors: i128, count: i128) -> f64 {
    if count == 0 {
        return 0.0;
    }
    errors as f64 / count as f64 / f64::from(WHOLE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn rounds_count_as_their_requests_do(
            target in 0..1_000_000_u32,
            patterns in prop::collection::vec(
                (prop::collection::vec(0..=1_000_000_i64, 1..6), 0..9_u64),
                1..6,
            ),
        ) {
            let target = ErrorRate::from_millionths(target);
            let (mut one_by_one, mut batched) = (Audit::new(target), Audit::new(target));
            for (errors, times) in patterns {
                for _ in 0..times {
                    for error in &errors {
                        one_by_one.request(*error);
                    }
                }
                batched.rounds(&Pattern::new(errors, target), times);
                // Which of two equal means was remembered may differ, the mean may not.
                prop_assert_eq!(one_by_one.verdict(), batched.verdict());
            }
        }

        #[test]
        fn negatives_are_counted(first in -40..40_i128, step in -9..9_i128, times in 0..12_i128) {
            let counted = (0..times).filter(|k| first + k * step < 0).count();
            prop_assert_eq!(negatives(first, step, times), i128::try_from(counted).unwrap());
        }
    }
}
