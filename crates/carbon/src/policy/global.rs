//! `forecast-aware-global`, the original's third policy: credit-greedy, adjusted by six signals. Its
//! numbers are judged by the golden vectors; its thresholds in gCO2/kWh are why Poland is always dirty
//! to it and Sweden always clean.

use super::credit_greedy;
use super::legacy::{LegacyFlavour, LegacyForecast, LegacyWeights, enabled, normalise, score};
use crate::credit::Credit;

/// At or below it the grid is green, in gCO2/kWh.
const GREEN: f64 = 80.0;
/// At or above it the grid is red.
const RED: f64 = 220.0;

/// What the policy remembers between evaluations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Memory {
    /// Sum of intensity × cost of the weights so far.
    pub carbon: f64,
    /// Evaluations so far.
    pub evaluations: u32,
}

/// Weights, best precision first.
pub fn weigh(
    memory: &mut Memory,
    credit: &Credit,
    flavours: &[LegacyFlavour],
    forecast: Option<&LegacyForecast<'_>>,
) -> LegacyWeights {
    let mut weights = credit_greedy::weigh(credit, flavours, forecast);
    let Some(forecast) = forecast else {
        return weights;
    };
    if weights.is_empty() {
        return weights;
    }
    let adjustment = 0.30 * trend(forecast)
        + 0.30 * look_ahead(forecast)
        + 0.20 * pressure(credit)
        + 0.10 * demand(forecast)
        + 0.10 * so_far(*memory, forecast)
        + zone(forecast);
    let adjustment = adjustment.clamp(-1.0, 1.0);
    apply(&mut weights, adjustment, flavours, forecast);
    let cost = |i: usize| flavours.get(i).map_or(0.0, |f| f.cost);
    let commanded: f64 = weights.iter().map(|(i, w)| w * cost(*i)).sum();
    memory.carbon += commanded * forecast.now.unwrap_or(0.0);
    memory.evaluations += 1;
    weights
}

/// Towards worse flavours when the next slot is cleaner.
fn trend(forecast: &LegacyForecast<'_>) -> f64 {
    match forecast.now.zip(forecast.next) {
        Some((now, next)) if now > 0.0 => (-2.0 * (next - now) / now).clamp(-1.0, 1.0),
        _ => 0.0,
    }
}

/// The next six slots, near ones weighing more.
fn look_ahead(forecast: &LegacyForecast<'_>) -> f64 {
    let Some(now) = forecast.now.filter(|now| *now > 0.0) else {
        return 0.0;
    };
    let slots = forecast.slots.get(..6).unwrap_or(forecast.slots);
    if slots.len() < 2 {
        return 0.0;
    }
    let (mut sum, mut weights) = (0.0, 0.0);
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    let mut place = 0.0;
    for value in slots.iter().flatten().copied().filter(|v| *v > 0.0) {
        let weight = 1.0 / (1.0 + 0.3 * place);
        sum += value * weight;
        weights += weight;
        least = least.min(value);
        most = most.max(value);
        place += 1.0;
    }
    if weights == 0.0 {
        return 0.0;
    }
    let mut adjustment = -1.2 * (sum / weights / now).ln();
    if least / now < 0.6 {
        adjustment += 0.2;
    }
    if most / now > 1.4 {
        adjustment -= 0.2;
    }
    if now >= RED && most >= RED {
        adjustment += 0.5;
    } else if now <= GREEN {
        adjustment -= 0.4;
    }
    adjustment.clamp(-1.0, 1.0)
}

/// Towards the middle of the credit's band.
fn pressure(credit: &Credit) -> f64 {
    ((credit.normalised() - 0.5) * 0.6).clamp(-1.0, 1.0)
}

fn demand(forecast: &LegacyForecast<'_>) -> f64 {
    let Some((now, next)) = forecast.demand_now.zip(forecast.demand_next) else {
        return 0.0;
    };
    if now <= 0.0 {
        return 0.0;
    }
    match next / now {
        r if r > 1.5 => -0.6,
        r if r > 1.25 => -0.3,
        r if r < 0.6 => 0.4,
        r if r < 0.8 => 0.2,
        _ => 0.0,
    }
}

/// What was emitted per evaluation, against the present intensity.
fn so_far(memory: Memory, forecast: &LegacyForecast<'_>) -> f64 {
    let Some(now) = forecast.now.filter(|now| *now > GREEN) else {
        return 0.0;
    };
    if memory.evaluations < 10 {
        return 0.0;
    }
    let mean = memory.carbon / f64::from(memory.evaluations);
    if mean > now * 1.2 {
        0.5
    } else if mean > now * 1.05 {
        0.2
    } else if mean < now * 0.8 {
        -0.3
    } else {
        0.0
    }
}

/// Green and red grids; else whether one of the next three slots is.
fn zone(forecast: &LegacyForecast<'_>) -> f64 {
    match forecast.now {
        Some(now) if now > 0.0 && now <= GREEN => return -0.6,
        Some(now) if now >= RED => return 0.6,
        _ => {}
    }
    let near = forecast.slots.get(..3).unwrap_or(forecast.slots);
    // A value of exactly zero counts as missing in the original.
    let mut near = near.iter().flatten().filter(|v| **v != 0.0);
    if near.clone().any(|v| *v <= GREEN) {
        -0.2
    } else if near.any(|v| *v >= RED) {
        0.2
    } else {
        0.0
    }
}

fn apply(
    weights: &mut LegacyWeights,
    adjustment: f64,
    flavours: &[LegacyFlavour],
    forecast: &LegacyForecast<'_>,
) {
    if adjustment.abs() < 0.01 {
        return;
    }
    let is_red = forecast.now.is_some_and(|now| now >= RED);
    let is_green = forecast.now.is_some_and(|now| now > 0.0 && now <= GREEN);
    let list = enabled(flavours);
    let Some(((_, best), others)) = weights.split_first_mut() else {
        return;
    };
    if adjustment > 0.0 {
        let (strength, floor) = if is_red { (1.5, 0.01) } else { (1.0, 0.02) };
        let taken = (*best * (0.4 + adjustment) * strength).min(*best - floor);
        if taken > 0.0 && !others.is_empty() {
            *best = (*best - taken).max(floor);
            let scores: Vec<f64> = match list.split_first() {
                Some(((_, first), rest)) => rest.iter().map(|(_, f)| score(*first, *f)).collect(),
                None => Vec::new(),
            };
            let total: f64 = scores.iter().sum();
            for ((_, weight), score) in others.iter_mut().zip(scores) {
                *weight += taken * (score / total);
            }
        }
    } else if others.iter().map(|w| w.1).sum::<f64>() > 0.0 {
        let kept = if is_green {
            (1.0 + 1.5 * adjustment).max(0.1)
        } else {
            (1.0 + adjustment).max(0.2)
        };
        let mut reclaimed = 0.0;
        for (_, weight) in others {
            let less = (*weight * kept).max(0.01);
            reclaimed += *weight - less;
            *weight = less;
        }
        *best = (*best + reclaimed).min(0.98);
    }
    normalise(weights);
}
