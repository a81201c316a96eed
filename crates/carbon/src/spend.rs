//! Where credit is best spent: the fractional knapsack with a clock.
//!
//! Credit that is earned in a slot can be spent in that slot or later, never before (the budget is never
//! in debt). Going through the slots from the last to the first and pouring each slot's credit into
//! the dearest offers open to it is optimal: the sets of offers are nested, so whoever has least choice
//! chooses first, and no later exchange can gain. [`crate::optimum`] uses it with full knowledge.
//! [`crate::policy::optimal`] needs little of the result and needs it fast: [`ranking`] and [`purse`] come to the same
//! from the dearest offer down.

pub mod purse;
pub mod ranking;

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::flavour::Step;

/// Room to spend credit at a price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// Saved per unit of error·request: intensity times cost.
    pub price: f64,
    /// How much error·request fits.
    pub room: f64,
    /// Which slot it belongs to, by the caller's count.
    pub slot: usize,
}

/// The offers that are open to the credit of the slot being looked at.
#[derive(Clone, Debug, Default)]
pub struct Market {
    offers: BinaryHeap<Offer>,
}

impl Market {
    /// Opens a slot: one offer for each rung of the frontier.
    pub fn open(&mut self, slot: usize, intensity: f64, demand: f64, frontier: &[Step]) {
        for step in frontier {
            self.add(Offer {
                price: intensity * step.saving_per_error,
                room: demand * step.error,
                slot,
            });
        }
    }

    /// Adds an offer; one without room, price or sense is left out.
    pub fn add(&mut self, offer: Offer) {
        if offer.room > 0.0 && offer.price > 0.0 && offer.price.is_finite() {
            self.offers.push(offer);
        }
    }

    /// Spends this credit on the dearest offers, telling each purchase. Returns what was saved.
    pub fn pour(&mut self, mut credit: f64, mut bought: impl FnMut(usize, f64)) -> f64 {
        let mut saved = 0.0;
        while credit > 0.0 {
            let Some(mut best) = self.offers.peek_mut() else {
                break;
            };
            let spent = credit.min(best.room);
            saved += spent * best.price;
            bought(best.slot, spent);
            credit -= spent;
            if spent < best.room {
                best.room -= spent;
            } else {
                std::collections::binary_heap::PeekMut::pop(best);
            }
        }
        saved
    }

    /// What one more unit of credit would save now.
    pub fn price(&self) -> f64 {
        self.offers.peek().map_or(0.0, |offer| offer.price)
    }

    /// What is left, dearest first.
    pub fn into_offers(self) -> Vec<Offer> {
        let mut offers = self.offers.into_vec();
        offers.sort_unstable_by(|a, b| b.price.total_cmp(&a.price));
        offers
    }

    /// Forgets all offers and keeps the memory.
    pub fn clear(&mut self) {
        self.offers.clear();
    }
}

impl Eq for Offer {}

impl Ord for Offer {
    /// By price, then the earlier slot: what is certain comes before what is not.
    fn cmp(&self, other: &Self) -> Ordering {
        self.price
            .total_cmp(&other.price)
            .then(other.slot.cmp(&self.slot))
    }
}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::purse::Purse;
    use super::ranking::Ranking;
    use super::*;

    /// Rungs as a frontier has them: each saves less than the one before.
    fn frontier() -> impl Strategy<Value = Vec<Step>> {
        let rung = (0.01..0.5_f64, 0.2..0.99_f64);
        prop::collection::vec(rung, 1..8).prop_map(|rungs| {
            let mut saving = 8.0;
            let mut steps = Vec::new();
            for (to, (error, falls)) in rungs.into_iter().enumerate() {
                saving *= falls;
                steps.push(Step {
                    to,
                    error,
                    saving_per_error: saving,
                });
            }
            steps
        })
    }

    proptest! {
        #[test]
        fn by_price_is_as_slot_by_slot(
            frontier in frontier(),
            // Few different values, so that prices are often equal.
            slots in prop::collection::vec(
                (prop_oneof![(0..5_u32).prop_map(f64::from), 0.0..500.0_f64], 0..4_u32, 0..9_u32),
                1..40,
            ),
        ) {
            let (mut market, mut bought) = (Market::default(), vec![0.0; slots.len()]);
            let (mut ranking, mut purse) = (Ranking::default(), Purse::default());
            for (slot, (intensity, demand, earned)) in slots.iter().enumerate() {
                ranking.open(*intensity, f64::from(*demand));
                purse.earn(f64::from(*earned) * 0.1);
                prop_assert_eq!(purse.slots(), slot + 1);
                prop_assert!((purse.left(slot) - f64::from(*earned) * 0.1).abs() < 1e-12);
            }
            for (slot, (intensity, demand, earned)) in slots.iter().enumerate().rev() {
                market.open(slot, *intensity, f64::from(*demand), &frontier);
                market.pour(f64::from(*earned) * 0.1, |slot, spent| bought[slot] += spent);
            }
            ranking.rank();
            let (mut open, mut last) = (Vec::new(), f64::INFINITY);
            while let Some(mut offer) = ranking.next(&frontier) {
                prop_assert!(offer.price <= last);
                last = offer.price;
                let taken = purse.take(offer.slot, offer.room);
                bought[offer.slot] -= taken;
                offer.room -= taken;
                open.push(offer);
            }
            prop_assert!(bought.iter().all(|difference| difference.abs() < 1e-9), "{bought:?}");
            let room = |offers: &[Offer], price: f64| -> f64 {
                offers.iter().filter(|o| o.price >= price).map(|o| o.room).sum()
            };
            let market = market.into_offers();
            for offer in &open {
                let difference = room(&market, offer.price) - room(&open, offer.price);
                prop_assert!(difference.abs() < 1e-9, "{offer:?}: {difference}");
            }
        }
    }
}
