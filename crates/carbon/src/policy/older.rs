//! The older policies, the baselines and the constant mix behind the one trait, with what they
//! remember.

use super::legacy::{LegacyFlavour, LegacyForecast, LegacyWeights};
use super::{
    Decision, Policy, View, Why, baseline, credit_greedy, forecast_aware, global, optimal,
};
use crate::credit::Credit;
use crate::flavour::{Flavour, Flavours};
use crate::weights::Weights;

/// How strongly a slot moves the credit, and how many slots its velocity averages: the original's defaults.
const SENSITIVITY: f64 = 0.33;
const CREDIT_WINDOW: usize = 300;

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The original's first.
    CreditGreedy,
    /// Its second.
    ForecastAware,
    /// Its third.
    ForecastAwareGlobal,
    /// Always the best flavour.
    P100,
    /// An even split.
    RoundRobin,
    /// A new random split for each slot.
    Random,
    /// The same mix of the frontier at all times: what can be had without any carbon data.
    ConstantMix,
}

/// A rule with its memory.
#[derive(Clone, Debug)]
pub struct Older {
    rule: Rule,
    credit: Credit,
    memory: global::Memory,
    random: u64,
}

impl Older {
    /// With a credit of zero; `seed` is for [`Rule::Random`] alone.
    pub fn new(rule: Rule, seed: u64) -> Self {
        Self {
            rule,
            credit: Credit::new(0.0, -1.0, 1.0, SENSITIVITY, CREDIT_WINDOW),
            memory: global::Memory::default(),
            random: seed,
        }
    }

    /// Its credit, which whoever runs it feeds.
    pub(super) fn credit(&mut self) -> &mut Credit {
        &mut self.credit
    }

    /// What the rule wants now, by its credit as it is.
    pub(super) fn weigh(&mut self, flavours: &[LegacyFlavour], view: &View<'_>) -> LegacyWeights {
        let at = |t: usize| view.forecast.get(t).copied().filter(|v| v.is_finite());
        let slots: Vec<Option<f64>> = (0..view.forecast.len().min(6)).map(at).collect();
        let forecast = LegacyForecast {
            now: at(0),
            next: at(1),
            // The original's estimator is never fed: demand is always the same.
            demand_now: None,
            demand_next: None,
            slots: &slots,
        };
        let forecast = Some(&forecast);
        match self.rule {
            Rule::CreditGreedy => credit_greedy::weigh(&self.credit, flavours, forecast),
            Rule::ForecastAware => forecast_aware::weigh(&self.credit, flavours, forecast),
            Rule::ForecastAwareGlobal => {
                global::weigh(&mut self.memory, &self.credit, flavours, forecast)
            }
            Rule::P100 => baseline::p100(flavours),
            Rule::RoundRobin => baseline::round_robin(flavours),
            Rule::Random => {
                let state = &mut self.random;
                baseline::random(flavours, &mut || uniform(state))
            }
            Rule::ConstantMix => {
                let room = view.target.fraction() - view.flavours.least_error();
                let shares = optimal::shares(view.flavours, room);
                shares.into_iter().enumerate().collect()
            }
        }
    }
}

impl Policy for Older {
    fn name(&self) -> &'static str {
        match self.rule {
            Rule::CreditGreedy => "credit-greedy",
            Rule::ForecastAware => "forecast-aware",
            Rule::ForecastAwareGlobal => "forecast-aware-global",
            Rule::P100 => "p100",
            Rule::RoundRobin => "round-robin",
            Rule::Random => "random",
            Rule::ConstantMix => "constant-mix",
        }
    }

    fn decide(&mut self, view: &View<'_>) -> Decision {
        self.credit.target = view.target.fraction();
        if let Some(error) = view.last_error {
            self.credit.update(1.0 - error);
        }
        let flavours = legacy(view.flavours);
        let mut shares = vec![0.0; flavours.len()];
        for (flavour, weight) in self.weigh(&flavours, view) {
            if let Some(share) = shares.get_mut(flavour) {
                *share = weight;
            }
        }
        Decision {
            weights: Weights::publish(&shares),
            shadow_price: None,
            why: Why::Rule(self.name()),
        }
    }
}

/// As the older policies see them.
pub(super) fn legacy(flavours: &Flavours) -> Vec<LegacyFlavour> {
    let one = |flavour: &Flavour| LegacyFlavour {
        precision: flavour.precision.fraction(),
        cost: flavour.cost,
        enabled: true,
    };
    flavours.all().iter().map(one).collect()
}

/// The next number of a splitmix sequence, from 0 to 1: chance that the caller's seed decides.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    let number = (z >> 11) as f64;
    number / 9_007_199_254_740_992.0
}
