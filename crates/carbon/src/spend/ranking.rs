//! The offers of many slots, dearest first, without sorting all of them: slots are sorted by intensity once, and each rung of
//! the frontier goes down that list at its own pace.
//!
//! Going through offers by price, each taking from a [`super::purse`] what it may, spends credit as [`super::Market`] does
//! slot by slot: both are the greedy way for the same order of offers. It can stop where nothing more is
//! asked, which is long before the end. A property test compares the two.

use super::Offer;
use crate::flavour::Step;

/// Slots by intensity, and how far each rung has come.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    /// Intensity and requests by slot.
    slots: Vec<(f64, f64)>,
    /// The bits of an intensity, inverted, with the slot in the last ones. Numbers above zero are in the order of their bits, so
    /// that in rising order the dearest slot comes first, and of equals the earlier one; and whole numbers are sorted fast.
    /// What the slot takes the place of is the tenth digit or a later one, and no intensity is known so well.
    order: Vec<u64>,
    /// Which bits are the slot.
    mask: u64,
    /// How far each rung has come that was begun.
    heads: Vec<Head>,
    /// Rungs before this one are through.
    through: usize,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    /// Of its dearest offer that was not taken yet; zero when there is none.
    price: f64,
    /// How many of its offers were taken.
    taken: usize,
}

impl Ranking {
    /// Forgets all slots and keeps the memory.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.order.clear();
        self.heads.clear();
        self.through = 0;
    }

    /// Opens the next slot; one without demand, intensity or sense has no offers.
    pub fn open(&mut self, intensity: f64, demand: f64) {
        self.slots.push((intensity, demand));
    }

    /// To be called once, when all slots are open.
    pub fn rank(&mut self) {
        self.mask = (self.slots.len() as u64).next_power_of_two() - 1;
        for (slot, (intensity, demand)) in (0..).zip(&self.slots) {
            if *demand > 0.0 && *intensity > 0.0 && intensity.is_finite() {
                self.order.push(!intensity.to_bits() & !self.mask | slot);
            }
        }
        self.order.sort_unstable();
    }

    /// The next offer: by price, then the better flavour, then the earlier slot.
    #[inline]
    pub fn next(&mut self, frontier: &[Step]) -> Option<Offer> {
        loop {
            // Rungs save less and less, so that one has to be looked at only when the one before it has moved.
            if self.heads.last().is_none_or(|head| head.taken > 0)
                && let Some(step) = frontier.get(self.heads.len())
            {
                let first = self.order.first();
                let first = first.map_or(0.0, |first| self.intensity(*first));
                let price = first * step.saving_per_error;
                self.heads.push(Head { price, taken: 0 });
            }
            let (mut rung, mut price) = (usize::MAX, 0.0);
            for (number, head) in self.heads.iter().enumerate().skip(self.through) {
                if head.price > price {
                    (rung, price) = (number, head.price);
                }
            }
            let step = frontier.get(rung)?;
            let taken = self.heads.get(rung)?.taken;
            let slot = self.slot(*self.order.get(taken)?);
            let next = self.order.get(taken + 1);
            let next = next.map_or(0.0, |next| self.intensity(*next));
            if next == 0.0 {
                // A rung ends before those that save less.
                self.through = rung + 1;
            }
            *self.heads.get_mut(rung)? = Head {
                price: next * step.saving_per_error,
                taken: taken + 1,
            };
            let room = self.slots.get(slot)?.1 * step.error;
            if room > 0.0 && price.is_finite() {
                return Some(Offer { price, room, slot });
            }
        }
    }

    fn slot(&self, order: u64) -> usize {
        usize::try_from(order & self.mask).unwrap_or(usize::MAX)
    }

    fn intensity(&self, order: u64) -> f64 {
        self.slots.get(self.slot(order)).map_or(0.0, |slot| slot.0)
    }
}
