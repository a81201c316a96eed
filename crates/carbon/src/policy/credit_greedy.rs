//! `credit-greedy`, the original's first policy: the fuller the credit and the dirtier the grid, the
//! more goes to worse flavours.

use super::legacy::{LegacyFlavour, LegacyForecast, LegacyWeights, enabled, score};
use crate::credit::Credit;

/// Below this the grid counts as clean, in gCO2/kWh.
const CLEAN: f64 = 80.0;
/// From clean to fully dirty.
const SPAN: f64 = 200.0;
/// The best flavour keeps at least one part in twenty.
const MOST: f64 = 0.95;

/// Weights, best precision first.
pub fn weigh(
    credit: &Credit,
    flavours: &[LegacyFlavour],
    forecast: Option<&LegacyForecast<'_>>,
) -> LegacyWeights {
    let list = enabled(flavours);
    let Some(((first, best), others)) = list.split_first() else {
        return Vec::new();
    };
    if others.is_empty() {
        return vec![(*first, 1.0)];
    }
    let allowance = allowance(credit, forecast.and_then(|f| f.now));
    let scores: Vec<f64> = others.iter().map(|(_, f)| score(*best, *f)).collect();
    let total: f64 = scores.iter().sum();
    let mut weights = vec![(*first, 1.0 - allowance)];
    for ((i, _), score) in others.iter().zip(scores) {
        weights.push((*i, allowance * score / total));
    }
    weights
}

fn allowance(credit: &Credit, now: Option<f64>) -> f64 {
    let mut base = credit.normalised().clamp(0.0, 1.0);
    if credit.balance() < 0.0 && credit.min < 0.0 {
        let debt = credit.balance() / credit.min;
        base *= (1.0 - 0.5 * debt).max(0.2);
    }
    let dirt = now.map_or(1.0, |now| {
        0.3 + 1.7 * ((now - CLEAN) / SPAN).clamp(0.0, 1.0)
    });
    (base * dirt).clamp(0.0, MOST)
}
