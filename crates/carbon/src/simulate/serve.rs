//! A slot's requests, one after the other through the account. Where the turns repeat and the account
//! covers them, whole rounds are taken at once: the same result, without the time.

use super::audit::Audit;
use crate::budget::Account;
use crate::flavour::Flavours;
use crate::unit::{ErrorRate, WHOLE};
use crate::weights::{Turns, Weights};

/// Turns repeat after so many requests.
const ROUND: usize = 100;

/// What a slot came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Served {
    /// Sum of the costs of the flavours.
    pub(super) cost: f64,
    /// Sum of their errors.
    pub(super) error: f64,
}

pub(super) fn slot(
    account: &mut Account,
    audit: &mut Audit,
    flavours: &Flavours,
    weights: &Weights,
    target: ErrorRate,
    requests: u64,
) -> Served {
    let round = Round::of(flavours, weights, target);
    let mut turns = Turns::new(flavours.count());
    let mut served = vec![0_u64; flavours.count()];
    let mut left = requests;
    while left > 0 {
        let rounds = round.covered(account.available()).min(left / ROUND as u64);
        if rounds > 0 {
            account.settle_rounds(round.net, rounds);
            audit.rounds(&round.errors, rounds);
            for (count, percent) in served.iter_mut().zip(weights.percent()) {
                *count += u64::from(*percent) * rounds;
            }
            left -= rounds * ROUND as u64;
            continue;
        }
        for _ in 0..left.min(ROUND as u64) {
            let wanted = turns.next(weights);
            let Some(ticket) = account.choose(wanted, flavours, |_| true, target) else {
                continue;
            };
            account.answered(ticket);
            if let Some((flavour, count)) = flavours
                .all()
                .get(ticket.flavour)
                .zip(served.get_mut(ticket.flavour))
            {
                audit.request(flavour.error().millionths());
                *count += 1;
            }
            left -= 1;
        }
    }
    let mut sum = Served {
        cost: 0.0,
        error: 0.0,
    };
    for (flavour, count) in flavours.all().iter().zip(served) {
        let count = super::to_float(count);
        sum.cost += flavour.cost * count;
        sum.error += flavour.error().fraction() * count;
    }
    sum
}

/// A whole round of turns, as it goes when the account covers each of them.
struct Round {
    errors: Vec<i64>,
    /// What the account must have at its start.
    need: i64,
    /// What it has more at its end.
    net: i64,
}

impl Round {
    fn of(flavours: &Flavours, weights: &Weights, target: ErrorRate) -> Self {
        let target = target.millionths();
        let mut turns = Turns::new(flavours.count());
        let (mut errors, mut need, mut net) = (Vec::with_capacity(ROUND), i64::MIN, 0);
        for _ in 0..ROUND {
            let chosen = flavours.all().get(turns.next(weights));
            let error = chosen.map_or(i64::from(WHOLE), |f| f.error().millionths());
            errors.push(error);
            net += target - error;
            if error > target {
                need = need.max(-net);
            }
        }
        Self { errors, need, net }
    }

    /// How many rounds in a row the account covers.
    fn covered(&self, available: i64) -> u64 {
        if available < self.need {
            0
        } else if self.net >= 0 {
            u64::MAX
        } else {
            let rounds = available.saturating_sub(self.need.max(0)) / -self.net + 1;
            u64::try_from(rounds).unwrap_or(0)
        }
    }
}
