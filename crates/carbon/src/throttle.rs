//! How much work to let through now, how many replicas and workers that needs, and how long it holds: judged by the golden
//! vectors of the original.

/// From this throttle on the consumer takes all that it can, as in the original.
const OPEN: f64 = 0.999;

/// Constants of the formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThrottleSettings {
    /// Never below it.
    pub min: f64,
    /// At or below this intensity nothing is throttled, in gCO2/kWh.
    pub floor: f64,
    /// At or above it everything is.
    pub ceiling: f64,
    /// How far a green grid lifts a throttle that credit holds down.
    pub green_blend: f64,
    /// From this intensity ratio on the throttle is open.
    pub green_override: f64,
}

/// What it comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throttle {
    /// The part of the work that is let through.
    pub factor: f64,
    /// Where the credit lies in its band.
    pub credits_ratio: f64,
    /// How clean the grid is between ceiling (0) and floor (1).
    pub intensity_ratio: f64,
}

impl Default for ThrottleSettings {
    fn default() -> Self {
        Self {
            min: 0.05,
            floor: 150.0,
            ceiling: 350.0,
            green_blend: 0.6,
            green_override: 0.99,
        }
    }
}

/// Where a balance lies between min and max; 1 where there is no band.
pub fn credits_ratio(balance: f64, min: f64, max: f64) -> f64 {
    if max <= min {
        1.0
    } else {
        ((balance - min) / (max - min)).clamp(0.0, 1.0)
    }
}

/// The throttle. `slots` are the forecast values, the present one first; `credits_ratio` is 1 under
/// `optimal`, which spends on purpose when it is dirty.
pub fn throttle(
    settings: &ThrottleSettings,
    credits_ratio: f64,
    now: Option<f64>,
    next: Option<f64>,
    slots: &[Option<f64>],
) -> Throttle {
    let peak = match (now, next) {
        (Some(now), Some(next)) => Some(now.max(next)),
        (one, other) => one.or(other),
    };
    let intensity_ratio = match peak {
        Some(peak) if settings.ceiling > settings.floor => {
            ((settings.ceiling - peak) / (settings.ceiling - settings.floor)).clamp(0.0, 1.0)
        }
        _ => 1.0,
    };
    let mut factor = credits_ratio
        .min(intensity_ratio)
        .min(1.0)
        .max(settings.min);
    if intensity_ratio >= settings.green_override {
        factor = 1.0;
    } else if intensity_ratio > credits_ratio {
        let blended = credits_ratio + settings.green_blend * (intensity_ratio - credits_ratio);
        factor = factor.max(blended);
    }
    let near = slots.get(..6).unwrap_or(slots);
    let least = near.iter().flatten().copied().reduce(f64::min);
    if let Some((now, least)) = now.zip(least)
        && least > 0.0
        && now / least > 1.2
    {
        factor = (factor * least / now).max(settings.min);
    }
    Throttle {
        factor,
        credits_ratio,
        intensity_ratio,
    }
}

/// Replicas that a component may have at this throttle.
pub fn replica_ceiling(factor: f64, min: i32, max: i32) -> i32 {
    let wanted = (f64::from(max) * factor).round_ties_even();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "saturates, and is clamped below"
    )]
    let wanted = wanted as i32;
    wanted.max(min.max(1)).min(max)
}

/// How many requests the consumer works on at once: its workers over all flavours, cut by the throttle to a power, and
/// at least `least`. An exponent below one counts as one, as in the original: the throttle is never softened.
pub fn in_flight_limit(
    factor: f64,
    per_queue: u32,
    flavours: u32,
    exponent: f64,
    least: u32,
) -> u32 {
    let factor = if factor >= OPEN { 1.0 } else { factor };
    let wanted = in_flight_target(factor, per_queue, flavours, exponent).round_ties_even();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and NaN becomes 0"
    )]
    let wanted = wanted as u32;
    wanted.max(least).max(1)
}

/// The same before it is rounded.
pub fn in_flight_target(factor: f64, per_queue: u32, flavours: u32, exponent: f64) -> f64 {
    let workers = f64::from(per_queue) * f64::from(flavours.max(1));
    workers * factor.clamp(0.0, 1.0).powf(exponent.max(1.0))
}

/// Until when a schedule holds, in seconds from now: as long as it may, but not past the present slot of the forecast,
/// which is the first that has not ended.
pub fn valid_for(valid_for: i64, slot_ends: impl IntoIterator<Item = i64>) -> i64 {
    let present = slot_ends.into_iter().find(|end| *end > 0);
    present.map_or(valid_for, |end| end.min(valid_for))
}
