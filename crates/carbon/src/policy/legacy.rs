//! What the older policies share: their inputs as they took them, float for float.

/// A flavour as the older policies see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LegacyFlavour {
    /// 0 to 1.
    pub precision: f64,
    /// Relative cost.
    pub cost: f64,
    /// A disabled flavour gets no weight.
    pub enabled: bool,
}

/// What they know of carbon and demand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LegacyForecast<'a> {
    /// gCO2/kWh in the present slot.
    pub now: Option<f64>,
    /// In the next one.
    pub next: Option<f64>,
    /// Requests per second now.
    pub demand_now: Option<f64>,
    /// In the next slot.
    pub demand_next: Option<f64>,
    /// The slots to come, the present one first.
    pub slots: &'a [Option<f64>],
}

/// Weights by flavour (its place in the input), best precision first; empty when nothing is enabled.
pub type LegacyWeights = Vec<(usize, f64)>;

/// The enabled flavours, best precision first, ties in input order.
pub(super) fn enabled(flavours: &[LegacyFlavour]) -> Vec<(usize, LegacyFlavour)> {
    let mut list: Vec<_> = flavours
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, f)| f.enabled)
        .collect();
    list.sort_by(|a, b| b.1.precision.total_cmp(&a.1.precision));
    list
}

/// How much carbon a flavour saves per error, against the best one.
pub(super) fn score(best: LegacyFlavour, flavour: LegacyFlavour) -> f64 {
    let saving = (best.cost - flavour.cost).max(1e-6);
    saving / (1.0 - flavour.precision).max(1e-6)
}

/// Divides by the sum.
pub(super) fn normalise(weights: &mut LegacyWeights) {
    let total: f64 = weights.iter().map(|w| w.1).sum();
    if total > 0.0 {
        for weight in weights {
            weight.1 /= total;
        }
    }
}
