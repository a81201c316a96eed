//! `forecast-aware`, the original's second policy: credit-greedy, leaning by the next slot's trend.

use super::credit_greedy;
use super::legacy::{LegacyFlavour, LegacyForecast, LegacyWeights, normalise};
use crate::credit::Credit;

/// Smaller trends are noise, in gCO2/kWh.
const NOISE: f64 = 15.0;

/// Weights, best precision first. Other than in the original, a disabled flavour never gets any.
pub fn weigh(
    credit: &Credit,
    flavours: &[LegacyFlavour],
    forecast: Option<&LegacyForecast<'_>>,
) -> LegacyWeights {
    let mut weights = credit_greedy::weigh(credit, flavours, forecast);
    let Some((now, next)) = forecast.and_then(|f| f.now.zip(f.next)) else {
        return weights;
    };
    let trend = next - now;
    if trend.abs() < NOISE {
        return weights;
    }
    let shift = (trend.abs() / now.max(1e-6) * 0.25).min(0.15);
    let Some(((_, best), others)) = weights.split_first_mut() else {
        return weights;
    };
    if others.is_empty() {
        return weights;
    }
    let rest = 1.0 - *best;
    if trend < 0.0 && rest > 0.0 {
        let shift = shift.min(*best);
        *best = (*best - shift).max(0.05);
        let scale = (rest + shift) / rest;
        for (_, weight) in others {
            *weight = (*weight * scale).min(0.95);
        }
    } else if trend > 0.0 {
        let shift = shift.min(rest);
        for (_, weight) in others {
            let part = if rest == 0.0 { 0.0 } else { *weight / rest };
            *weight = (*weight - shift * part).max(0.02);
        }
        *best = (*best + shift).min(0.98);
    }
    normalise(&mut weights);
    weights
}
