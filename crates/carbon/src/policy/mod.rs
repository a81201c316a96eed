//! Policies: from what is known to weights. The older ones as formulas ([`credit_greedy`],
//! [`forecast_aware`], [`global`], [`baseline`]) and behind the trait ([`older`]; [`original`] as they once ran), and ours,
//! [`optimal`].

pub mod baseline;
pub mod credit_greedy;
pub mod forecast_aware;
pub mod global;
pub mod legacy;
pub mod older;
pub mod optimal;
pub mod original;

use std::fmt;

use self::older::{Older, Rule};
use self::original::Original;
use crate::flavour::Flavours;
use crate::unit::ErrorRate;
use crate::weights::Weights;

/// All that a policy may know when a slot begins.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Start of the present slot.
    pub now: i64,
    /// Length of a slot.
    pub slot_seconds: i64,
    /// When the budget window ends.
    pub window_end: i64,
    /// What the account has, in 10⁻⁶ error·request.
    pub balance: i64,
    /// The target error in force.
    pub target: ErrorRate,
    /// What there is to choose from.
    pub flavours: &'a Flavours,
    /// Forecast intensities from the present slot on; NaN is unknown, and so is all beyond.
    pub forecast: &'a [f64],
    /// Intensities of all slots before the present one, oldest first; NaN was not observed.
    pub seen: &'a [f64],
    /// Requests of the last slots before the present one, oldest first.
    pub served: &'a [u64],
    /// Mean error of the last slot, if it had requests; drives the older policies' credit.
    pub last_error: Option<f64>,
}

/// What a policy wants, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// As they are published.
    pub weights: Weights,
    /// What one more unit of error would save, in gCO2 per error·request and unit of cost; none where
    /// the policy has no price.
    pub shadow_price: Option<f64>,
    /// In a few words.
    pub why: Why,
}

/// The explanation that goes with each decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// The present slot is worth more than what the credit could save later.
    DirtierThanLater,
    /// Later slots are worth more.
    CleanerThanLater,
    /// The present slot is the last that is worth it, and gets a part.
    AtTheMargin,
    /// Nothing is cheaper than the best flavour, or the target leaves no room.
    NothingToSave,
    /// No forecast at all: a constant mix.
    NoForecast,
    /// One of the older policies; it has no reasons.
    Rule(&'static str),
}

/// A policy with whatever it has learned so far.
pub trait Policy: Send {
    /// As users name it.
    fn name(&self) -> &'static str;

    /// Whether the budget's account stands between its weights and what is served. Only the original's policies as
    /// the original ran them do without.
    fn is_guarded(&self) -> bool {
        true
    }

    /// Weights for the slot that begins now.
    fn decide(&mut self, view: &View<'_>) -> Decision;
}

/// All policies by name, the default first.
pub const NAMES: [&str; 8] = [
    "optimal",
    "constant-mix",
    "credit-greedy",
    "forecast-aware",
    "forecast-aware-global",
    "p100",
    "round-robin",
    "random",
];

/// The original's policies as the original runs them: its credit alone decides, no budget is kept. To be compared with, not
/// to be used.
pub const ORIGINALS: [&str; 5] = [
    "original-credit-greedy",
    "original-forecast-aware",
    "original-forecast-aware-global",
    "original-round-robin",
    "original-random",
];

/// A fresh policy of this name, of [`NAMES`] or [`ORIGINALS`]; `seed` is for `random` alone.
pub fn by_name(name: &str, seed: u64) -> Option<Box<dyn Policy>> {
    let rule = match name {
        "original-credit-greedy" => Some(Rule::CreditGreedy),
        "original-forecast-aware" => Some(Rule::ForecastAware),
        "original-forecast-aware-global" => Some(Rule::ForecastAwareGlobal),
        "original-round-robin" => Some(Rule::RoundRobin),
        "original-random" => Some(Rule::Random),
        _ => None,
    };
    if let Some(rule) = rule {
        return Some(Box::new(Original::new(rule, seed)));
    }
    let rule = match name {
        "optimal" => return Some(Box::new(optimal::Optimal::default())),
        "constant-mix" => Rule::ConstantMix,
        "credit-greedy" => Rule::CreditGreedy,
        "forecast-aware" => Rule::ForecastAware,
        "forecast-aware-global" => Rule::ForecastAwareGlobal,
        "p100" => Rule::P100,
        "round-robin" => Rule::RoundRobin,
        "random" => Rule::Random,
        _ => return None,
    };
    Some(Box::new(Older::new(rule, seed)))
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DirtierThanLater => "dirtier now than what the credit is kept for: spend",
            Self::CleanerThanLater => "dirtier slots are expected: save",
            Self::AtTheMargin => "as dirty as the last slot that is worth it: spend a part",
            Self::NothingToSave => "nothing can be saved within this target",
            Self::NoForecast => "no forecast: a constant mix",
            Self::Rule(rule) => rule,
        })
    }
}
