//! A slot's requests through the account. The turns repeat after a hundred requests, so whole rounds are taken at once:
//! many of them where the account covers each turn, and where it does not, a round that was played before
//! with the same balance is not played again. The result is the same as one by one, and the [`Audit`] counts every request.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::audit::{Audit, Pattern};
use crate::budget::Account;
use crate::flavour::Flavours;
use crate::unit::{ErrorRate, WHOLE};
use crate::weights::{Turns, Weights};

/// Turns repeat after so many requests.
const ROUND: u64 = 100;

/// Rounds are remembered only if so many different balances are possible at most; else none would come again soon.
const MOST_BALANCES: i64 = 20_000;

/// How many rounds are remembered, over all weights: some tens of megabytes.
const MOST_REMEMBERED: usize = 20_000;

/// What a slot came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Served {
    /// Sum of the costs of the flavours.
    pub(super) cost: f64,
    /// Sum of their errors.
    pub(super) error: f64,
}

/// Where requests are served, with the rounds that it remembers.
#[derive(Debug)]
pub(super) struct Desk<'a> {
    flavours: &'a Flavours,
    target: ErrorRate,
    can_remember: bool,
    remembered: HashMap<Weights, Rounds>,
    count: usize,
}

/// Rounds by the balance with which they begin.
type Rounds = HashMap<i64, Round, BuildHasherDefault<Mixed>>;

/// A hash of a balance: these are our own numbers, so that a quick one will do.
#[derive(Debug, Default)]
struct Mixed(u64);

/// A hundred requests.
#[derive(Clone, Debug, PartialEq)]
struct Round {
    /// Whose turn it is, request by request; empty where it is not needed again.
    turns: Vec<usize>,
    pattern: Pattern,
    /// Requests by flavour.
    served: Vec<u64>,
    /// What the account must have at its start for each turn to be covered.
    need: i64,
    /// What it has more at its end.
    net: i64,
}

impl<'a> Desk<'a> {
    pub(super) fn new(flavours: &'a Flavours, target: ErrorRate) -> Self {
        let changes = flavours.all().iter();
        let changes = changes.map(|f| target.millionths() - f.error().millionths());
        let (step, reach) = changes.fold((0, 0), |(step, reach), change| {
            (gcd(step, change.abs()), reach.max(change.abs()))
        });
        Self {
            flavours,
            target,
            can_remember: step > 0 && reach / step <= MOST_BALANCES,
            remembered: HashMap::new(),
            count: 0,
        }
    }

    /// Serves so many requests by these weights, as far as the account covers them.
    pub(super) fn slot(
        &mut self,
        account: &mut Account,
        audit: &mut Audit,
        weights: &Weights,
        requests: u64,
    ) -> Served {
        let (flavours, target) = (self.flavours, self.target);
        let wanted = Round::wanted(flavours, weights, target);
        let mut known = self.recall(weights);
        let before = known.len();
        let mut served = vec![0_u64; flavours.count()];
        let mut left = requests;
        while left >= ROUND {
            let rounds = wanted.covered(account.available()).min(left / ROUND);
            let played;
            let play = || Round::played(&wanted.turns, flavours, target, account.clone());
            let (round, times) = if rounds > 0 {
                (&wanted, rounds)
            } else if self.can_remember {
                (&*known.entry(account.available()).or_insert_with(play), 1)
            } else {
                played = play();
                (&played, 1)
            };
            account.settle_rounds(round.net, times);
            audit.rounds(&round.pattern, times);
            for (sum, count) in served.iter_mut().zip(&round.served) {
                *sum += count * times;
            }
            left -= times * ROUND;
        }
        let turns = wanted.turns.iter().copied().take(few(left));
        turn_by_turn(turns, flavours, target, account, |flavour, error| {
            audit.request(error);
            count(&mut served, flavour);
        });
        self.count += known.len() - before;
        if !known.is_empty() {
            self.remembered.insert(weights.clone(), known);
        }
        self.sum(&served)
    }

    /// Serves so many requests exactly by these weights, with no account in between.
    pub(super) fn unguarded(&self, audit: &mut Audit, weights: &Weights, requests: u64) -> Served {
        let wanted = Round::wanted(self.flavours, weights, self.target);
        let rounds = requests / ROUND;
        audit.rounds(&wanted.pattern, rounds);
        let mut served: Vec<u64> = wanted.served.iter().map(|n| n * rounds).collect();
        for flavour in wanted.turns.iter().take(few(requests % ROUND)) {
            audit.request(error_of(self.flavours, *flavour));
            count(&mut served, *flavour);
        }
        self.sum(&served)
    }

    /// Takes out what is remembered of these weights. When there is too much of it all is forgotten.
    fn recall(&mut self, weights: &Weights) -> Rounds {
        if self.count > MOST_REMEMBERED {
            self.remembered.clear();
            self.count = 0;
        }
        self.remembered.remove(weights).unwrap_or_default()
    }

    fn sum(&self, served: &[u64]) -> Served {
        let mut sum = Served::default();
        for (flavour, count) in self.flavours.all().iter().zip(served) {
            let count = super::to_float(*count);
            sum.cost += flavour.cost * count;
            sum.error += flavour.error().fraction() * count;
        }
        sum
    }
}

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }
}

impl Round {
    /// As it goes when the account covers each turn.
    fn wanted(flavours: &Flavours, weights: &Weights, target: ErrorRate) -> Self {
        let mut turns = Turns::new(flavours.count());
        let turns: Vec<usize> = (0..ROUND).map(|_| turns.next(weights)).collect();
        let mut served = vec![0; flavours.count()];
        let (mut errors, mut need, mut net) = (Vec::with_capacity(turns.len()), i64::MIN, 0);
        for flavour in turns.iter().copied() {
            let error = error_of(flavours, flavour);
            count(&mut served, flavour);
            errors.push(error);
            net += target.millionths() - error;
            if error > target.millionths() {
                need = need.max(-net);
            }
        }
        Self {
            turns,
            pattern: Pattern::new(errors, target),
            served,
            need,
            net,
        }
    }

    /// As it goes with this account.
    fn played(
        turns: &[usize],
        flavours: &Flavours,
        target: ErrorRate,
        mut account: Account,
    ) -> Self {
        let begins = account.available();
        let mut served = vec![0; flavours.count()];
        let mut errors = Vec::with_capacity(turns.len());
        let turns = turns.iter().copied();
        turn_by_turn(turns, flavours, target, &mut account, |flavour, error| {
            errors.push(error);
            count(&mut served, flavour);
        });
        Self {
            turns: Vec::new(),
            pattern: Pattern::new(errors, target),
            served,
            need: begins,
            net: account.available() - begins,
        }
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

/// Each turn through the account, as a decider takes them.
fn turn_by_turn(
    turns: impl Iterator<Item = usize>,
    flavours: &Flavours,
    target: ErrorRate,
    account: &mut Account,
    mut told: impl FnMut(usize, i64),
) {
    for wanted in turns {
        let Some(ticket) = account.choose(wanted, flavours, |_| true, target) else {
            continue;
        };
        account.answered(ticket);
        told(ticket.flavour, error_of(flavours, ticket.flavour));
    }
}

fn few(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn error_of(flavours: &Flavours, flavour: usize) -> i64 {
    let chosen = flavours.all().get(flavour);
    chosen.map_or(i64::from(WHOLE), |f| f.error().millionths())
}

fn count(served: &mut [u64], flavour: usize) {
    if let Some(count) = served.get_mut(flavour) {
        *count += 1;
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::budget::Windows;
    use crate::flavour::Flavour;
    use crate::unit::Precision;

    /// Precisions in steps that balances come again with, or in any.
    fn flavours() -> impl Strategy<Value = Flavours> {
        let coarse = (0..=20_u32).prop_map(|p| p * 50_000);
        let precision = prop_oneof![coarse, 0..=1_000_000_u32];
        prop::collection::vec((precision, 0.0..2.0_f64), 1..5).prop_map(|list| {
            let mut all: Vec<Flavour> = Vec::new();
            for (precision, cost) in list {
                let flavour = Flavour::new(Precision::from_millionths(precision), cost);
                if all.iter().all(|f| f.precision != flavour.precision) {
                    all.push(flavour);
                }
            }
            Flavours::new(all).unwrap()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn batched_is_as_one_by_one(
            flavours in flavours(),
            target in prop_oneof![(0..=20_u32).prop_map(|t| t * 50_000), 0..=1_000_000_u32],
            slots in prop::collection::vec(
                (prop::collection::vec(0.0..1.0_f64, 5), prop_oneof![0..99_u64, 100..3_000_u64]),
                1..5,
            ),
        ) {
            let target = ErrorRate::from_millionths(target);
            let windows = Windows::new(3_600).unwrap();
            let (mut account, mut audit) = (Account::new(windows, 0), Audit::new(target));
            let (mut same_account, mut same_audit) = (account.clone(), audit.clone());
            let mut desk = Desk::new(&flavours, target);
            for (shares, requests) in slots.iter().cycle().take(slots.len() * 3) {
                let weights = Weights::publish(shares.get(..flavours.count()).unwrap());
                let batched = desk.slot(&mut account, &mut audit, &weights, *requests);
                let mut served = vec![0; flavours.count()];
                let mut turns = Turns::new(flavours.count());
                let turns = (0..*requests).map(|_| turns.next(&weights));
                turn_by_turn(turns, &flavours, target, &mut same_account, |f, error| {
                    same_audit.request(error);
                    count(&mut served, f);
                });
                prop_assert_eq!(batched, desk.sum(&served));
                prop_assert_eq!(&account, &same_account);
                prop_assert_eq!(audit.verdict(), same_audit.verdict());
            }
        }

        #[test]
        fn unguarded_is_as_one_by_one(
            flavours in flavours(),
            target in 0..=1_000_000_u32,
            shares in prop::collection::vec(0.0..1.0_f64, 5),
            requests in 0..2_000_u64,
        ) {
            let target = ErrorRate::from_millionths(target);
            let weights = Weights::publish(shares.get(..flavours.count()).unwrap());
            let (mut audit, mut same) = (Audit::new(target), Audit::new(target));
            let batched = Desk::new(&flavours, target).unguarded(&mut audit, &weights, requests);
            let mut served = vec![0; flavours.count()];
            let mut turns = Turns::new(flavours.count());
            for _ in 0..requests {
                let flavour = turns.next(&weights);
                same.request(error_of(&flavours, flavour));
                count(&mut served, flavour);
            }
            prop_assert_eq!(batched, Desk::new(&flavours, target).sum(&served));
            prop_assert_eq!(audit.verdict(), same.verdict());
        }
    }
}
