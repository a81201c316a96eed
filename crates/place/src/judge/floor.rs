//! Never all at once: so many of the nodes that could take pods stay fit, whatever their readings say. Those that stay
//! are the least loaded; one that stays is not exchanged for another that is hardly better, or labels would change with
//! every reading.

use std::{cmp::Ordering, collections::BTreeSet};

use super::State;
use crate::settings::Settings;

/// Another node must be better by this factor to take the place of one that was kept fit.
const CLEARLY_BETTER: f64 = 1.1;

/// A node, and what would become of it by itself.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    pub(super) name: &'a str,
    /// Whether it could take pods.
    pub(super) eligible: bool,
    /// What its label says.
    pub(super) shown: State,
    /// What its label would say by itself.
    pub(super) next: State,
    /// Whether its dwell time is over.
    pub(super) may_change: bool,
    pub(super) load: Option<f64>,
    /// Readings since its label last changed.
    pub(super) readings: u32,
}

/// The nodes that must be fit although they would not be by themselves.
pub(super) fn keep<'a>(places: &[Place<'a>], settings: &Settings) -> BTreeSet<&'a str> {
    let eligible = || places.iter().filter(|place| place.eligible);
    let fit = eligible().filter(|place| place.next == State::Fit).count();
    let needed = settings.min_fit_nodes.saturating_sub(fit);
    if needed == 0 {
        return BTreeSet::new();
    }
    let mut unfit: Vec<&Place<'a>> = eligible()
        .filter(|place| place.next == State::Unfit)
        .collect();
    // Those that are fit stay so before others become it, the least loaded first.
    unfit.sort_by(|one, other| (one.shown.cmp(&other.shown)).then_with(|| by_load(one, other)));
    let others = unfit.split_off(needed.min(unfit.len()));
    exchange(&mut unfit, &others, settings);
    unfit.iter().map(|place| place.name).collect()
}

/// Exchanges kept nodes for others that are clearly less loaded, where both have been what they are for long enough.
fn exchange<'p, 'a>(kept: &mut [&'p Place<'a>], others: &[&'p Place<'a>], settings: &Settings) {
    let has_been_unfit = |place: &&&Place<'_>| {
        place.shown == State::Unfit && place.may_change && place.readings >= settings.samples_fit
    };
    let mut better: Vec<&Place<'a>> = (others.iter().filter(has_been_unfit)).copied().collect();
    better.sort_by(|one, other| by_load(one, other));
    // The most loaded of those that are kept go first.
    kept.sort_by(|one, other| by_load(other, one));
    for (place, other) in kept.iter_mut().zip(better) {
        let has_been_fit = place.shown == State::Fit && place.readings >= settings.samples_unfit;
        let is_better = match (place.load, other.load) {
            (Some(load), Some(less)) => less * CLEARLY_BETTER < load,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if has_been_fit && is_better {
            *place = other;
        }
    }
}

/// The least loaded first, those without a figure last, then by name.
fn by_load(one: &Place<'_>, other: &Place<'_>) -> Ordering {
    let by_load = match (one.load, other.load) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    };
    by_load.then_with(|| one.name.cmp(other.name))
}
