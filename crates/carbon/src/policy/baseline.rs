//! The original's baselines: `p100`, `round-robin` (an even split, as there) and `random`.

use super::legacy::{LegacyFlavour, LegacyWeights, enabled};

/// All to the best flavour.
pub fn p100(flavours: &[LegacyFlavour]) -> LegacyWeights {
    let list = enabled(flavours);
    list.first().map(|(i, _)| (*i, 1.0)).into_iter().collect()
}

/// The same to each, in input order.
pub fn round_robin(flavours: &[LegacyFlavour]) -> LegacyWeights {
    random(flavours, &mut || 1.0)
}

/// In proportion to numbers drawn by the caller, in input order.
pub fn random(flavours: &[LegacyFlavour], draw: &mut dyn FnMut() -> f64) -> LegacyWeights {
    let enabled = flavours.iter().enumerate().filter(|(_, f)| f.enabled);
    let mut weights: LegacyWeights = enabled.map(|(i, _)| (i, draw())).collect();
    let total: f64 = weights.iter().map(|w| w.1).sum();
    #[expect(clippy::cast_precision_loss, reason = "a few flavours")]
    let even = 1.0 / weights.len().max(1) as f64;
    for weight in &mut weights {
        weight.1 = if total > 0.0 { weight.1 / total } else { even };
    }
    weights
}
