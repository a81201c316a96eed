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
    /// Requests by slot.
    demand: Vec<f64>,
    /// The bits of an intensity, inverted, then the slot. Numbers above zero are in the order of their bits, so that in rising
    /// order the dearest slot comes first, and of equals the earlier one; and such numbers are sorted fast.
    order: Vec<u128>,
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
        self.demand.clear();
        self.order.clear();
        self.heads.clear();
        self.through = 0;
    }

    /// Opens the next slot; one without demand, intensity or sense has no offers.
    pub fn open(&mut self, intensity: f64, demand: f64) {
        if demand > 0.0 && intensity > 0.0 && intensity.is_finite() {
            let slot = self.demand.len() as u128;
            self.order
                .push(u128::from(!intensity.to_bits()) << 64 | slot);
        }
        self.demand.push(demand);
    }

    /// To be called once, when all slots are open.
    pub fn rank(&mut self) {
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
                let price = first.map_or(0.0, |first| place(*first).0 * step.saving_per_error);
                self.heads.push(Head { price, taken: 0 });
            }
            let (mut rung, mut price) = (usize::MAX, 0.0);
            for (number, head) in self.heads.iter().enumerate().skip(self.through) {
                if head.price > price {
                    (rung, price) = (number, head.price);
                }
            }
            let step = frontier.get(rung)?;
            let head = self.heads.get_mut(rung)?;
            let (_, slot) = place(*self.order.get(head.taken)?);
            head.taken += 1;
            if let Some(next) = self.order.get(head.taken) {
                head.price = place(*next).0 * step.saving_per_error;
            } else {
                head.price = 0.0;
                // A rung ends before those that save less.
                self.through = rung + 1;
            }
            let room = self.demand.get(slot)? * step.error;
            if room > 0.0 && price.is_finite() {
                return Some(Offer { price, room, slot });
            }
        }
    }
}

/// Intensity and slot.
fn place(order: u128) -> (f64, usize) {
    #[expect(clippy::cast_possible_truncation, reason = "two halves")]
    let (high, low) = ((order >> 64) as u64, order as u64);
    (f64::from_bits(!high), usize::try_from(low).unwrap_or(0))
}
