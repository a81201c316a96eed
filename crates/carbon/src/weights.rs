//! Weights as they are published, in whole percent, and the turn-taking that follows them without
//! chance. Made by policies, read by whoever chooses flavours ([`crate::budget`]).

use serde::{Deserialize, Serialize};

/// Whole percentages per flavour, in the order of the set, sum 100.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Weights(Vec<u8>);

/// Who is next, by smooth weighted turns: each flavour is as close to its share as whole requests
/// allow, after every request. The pattern repeats after 100 requests at the latest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turns {
    due: Vec<i32>,
}

impl Weights {
    /// From shares: all but the first (the best flavour) rounded *down*, the rest to the first, so that
    /// rounding never spends what the plan did not.
    pub fn publish(shares: &[f64]) -> Self {
        let sum: f64 = shares.iter().filter(|s| s.is_finite() && **s > 0.0).sum();
        let mut left = 100_u8;
        let mut whole: Vec<u8> = shares
            .iter()
            .skip(1)
            .map(|share| {
                // The tiny push keeps a share of 0.29 from becoming 28 %.
                let percent = (share / sum * 100.0 + 1e-9).floor().clamp(0.0, 100.0);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "0 to 100 by the clamp; NaN becomes 0"
                )]
                let percent = (percent as u8).min(left);
                left -= percent;
                percent
            })
            .collect();
        whole.insert(0, left);
        Self(whole)
    }

    /// As the original rounds: to the nearest percent, halves to even; what is then missing from 100, or too much, goes to
    /// the first of the largest. It can spend more than was planned, by up to 0.0015 of error: kept for comparison alone.
    pub fn nearest(shares: &[f64]) -> Vec<i32> {
        let sum: f64 = shares.iter().sum();
        let percent = |share: &f64| {
            let percent = if sum > 0.0 { share / sum * 100.0 } else { 0.0 };
            #[expect(clippy::cast_possible_truncation, reason = "saturates; NaN becomes 0")]
            let percent = percent.round_ties_even() as i32;
            percent
        };
        let mut whole: Vec<i32> = shares.iter().map(percent).collect();
        let rest = 100 - whole.iter().fold(0_i32, |sum, p| sum.saturating_add(*p));
        // `max_by_key` would take the last of the largest.
        let largest = whole.iter_mut().reduce(|a, b| if *b > *a { b } else { a });
        if let Some(largest) = largest {
            *largest = largest.saturating_add(rest);
        }
        whole
    }

    /// All to the best of so many flavours.
    pub fn best_only(count: usize) -> Self {
        let mut whole = vec![0; count.max(1)];
        if let Some(first) = whole.first_mut() {
            *first = 100;
        }
        Self(whole)
    }

    /// In percent, in the order of the set.
    pub fn percent(&self) -> &[u8] {
        &self.0
    }
}

impl Turns {
    /// Nobody has been served yet.
    pub fn new(flavours: usize) -> Self {
        Self {
            due: vec![0; flavours],
        }
    }

    /// The next flavour by these weights.
    pub fn next(&mut self, weights: &Weights) -> usize {
        self.due.resize(weights.0.len(), 0);
        let mut chosen = 0;
        let mut most = i32::MIN;
        for (i, (due, weight)) in self.due.iter_mut().zip(&weights.0).enumerate() {
            *due += i32::from(*weight);
            if *due > most && *weight > 0 {
                most = *due;
                chosen = i;
            }
        }
        if let Some(due) = self.due.get_mut(chosen) {
            *due -= 100;
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_never_favours_a_worse_flavour() {
        assert_eq!(
            Weights::publish(&[0.5, 0.295, 0.205]).percent(),
            [51, 29, 20]
        );
        assert_eq!(Weights::publish(&[0.71, 0.29]).percent(), [71, 29]);
        assert_eq!(Weights::publish(&[0.0, 1.0]).percent(), [0, 100]);
        assert_eq!(Weights::publish(&[0.0, 0.0]).percent(), [100, 0]);
        assert_eq!(Weights::publish(&[f64::NAN, f64::NAN]).percent(), [100, 0]);
    }

    #[test]
    fn turns_follow_the_weights_and_repeat() {
        let weights = Weights::publish(&[0.57, 0.3, 0.13]);
        let mut turns = Turns::new(3);
        let mut count = [0; 3];
        for _ in 0..100 {
            count[turns.next(&weights)] += 1;
        }
        assert_eq!(count, [57, 30, 13]);
        assert_eq!(turns, Turns::new(3));
    }
}
