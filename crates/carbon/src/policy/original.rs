//! The original's policies as the original runs them, to be compared with: its credit is all that holds them back, and it is
//! fed as there, with what was *planned* at each evaluation and again with what was served. The error budget is not kept;
//! [`crate::simulate`] counts by how much.

use super::legacy::LegacyWeights;
use super::older::{Older, Rule, legacy};
use super::{Decision, Policy, View, Why};
use crate::weights::Weights;

/// How often the original evaluates, in seconds.
const INTERVAL: i64 = 15;
/// At most so many evaluations of one slot: longer slots are sampled.
const MOST_EVALUATIONS: i64 = 240;

/// A rule, its credit, and nothing else.
#[derive(Clone, Debug)]
pub struct Original {
    rule: Rule,
    older: Older,
}

impl Original {
    /// With a credit of zero.
    pub fn new(rule: Rule, seed: u64) -> Self {
        Self {
            rule,
            older: Older::new(rule, seed),
        }
    }
}

impl Policy for Original {
    fn name(&self) -> &'static str {
        match self.rule {
            Rule::CreditGreedy => "original-credit-greedy",
            Rule::ForecastAware => "original-forecast-aware",
            Rule::ForecastAwareGlobal => "original-forecast-aware-global",
            Rule::RoundRobin => "original-round-robin",
            Rule::Random => "original-random",
            Rule::P100 => "original-p100",
            Rule::ConstantMix => "original-constant-mix",
        }
    }

    fn is_guarded(&self) -> bool {
        false
    }

    /// The mean of all evaluations of the slot, each rounded as it would have been published.
    fn decide(&mut self, view: &View<'_>) -> Decision {
        self.older.credit().target = view.target.fraction();
        if let Some(error) = view.last_error {
            self.older.credit().update(1.0 - error);
        }
        let flavours = legacy(view.flavours);
        let precision = |i: usize| flavours.get(i).map_or(1.0, |f| f.precision);
        let mut shares = vec![0.0; flavours.len()];
        for _ in 0..(view.slot_seconds / INTERVAL).clamp(1, MOST_EVALUATIONS) {
            let weights: LegacyWeights = self.older.weigh(&flavours, view);
            let planned = weights.iter().map(|(i, w)| w * precision(*i)).sum();
            self.older.credit().update(planned);
            let floats: Vec<f64> = weights.iter().map(|w| w.1).collect();
            for ((flavour, _), percent) in weights.iter().zip(Weights::nearest(&floats)) {
                if let Some(share) = shares.get_mut(*flavour) {
                    *share += f64::from(percent);
                }
            }
        }
        Decision {
            weights: Weights::publish(&shares),
            shadow_price: None,
            why: Why::Rule(self.name()),
        }
    }
}
