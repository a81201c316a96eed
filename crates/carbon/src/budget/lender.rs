//! The engine's part of the budget: credit that deciders gave up, and leases of it to others.
//!
//! It can only give what it was given, so the sum over all deciders stays within the bound. Messages
//! may come late, twice or never: surrenders are numbered per decider, a lease can be settled once,
//! and one that is never reported back counts as spent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::window::Windows;

/// Credit lent to one decider for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Which lease; never used twice.
    pub id: u64,
    /// The window it belongs to, by its start.
    pub window: i64,
    /// What is left of it.
    pub amount: i64,
    /// When it ends.
    pub until: i64,
}

/// The pool of one schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lender {
    pub(super) windows: Windows,
    pub(super) since: i64,
    pub(super) pool: i64,
    pub(super) next_lease: u64,
    pub(super) seen: BTreeMap<String, u64>,
    pub(super) lent: BTreeMap<u64, i64>,
}

impl Lender {
    /// Nothing to lend yet.
    pub fn new(windows: Windows, now: i64) -> Self {
        Self {
            windows,
            since: windows.start(now),
            pool: 0,
            next_lease: 0,
            seen: BTreeMap::new(),
            lent: BTreeMap::new(),
        }
    }

    /// What can be lent.
    pub const fn pool(&self) -> i64 {
        self.pool
    }

    /// What is lent and not settled.
    pub fn leased(&self) -> i64 {
        self.lent.values().sum()
    }

    /// Lets time pass: with the window everything lapses, but no number is used again.
    pub fn advance(&mut self, now: i64) {
        let start = self.windows.start(now);
        if start > self.since {
            self.since = start;
            self.pool = 0;
            self.lent.clear();
        }
    }

    /// A decider gave this up. `number` rises with each of its surrenders; one that was seen, or is of
    /// another window, changes nothing. True if it counted.
    pub fn surrendered(&mut self, decider: &str, number: u64, window: i64, amount: i64) -> bool {
        let is_new = self.seen.get(decider).is_none_or(|last| number > *last);
        if !is_new || window != self.since || amount < 0 {
            return false;
        }
        self.seen.insert(decider.to_owned(), number);
        self.pool = self.pool.saturating_add(amount);
        true
    }

    /// Lends at most this much, if there is anything.
    pub fn lend(&mut self, at_most: i64, until: i64) -> Option<Lease> {
        let amount = at_most.min(self.pool);
        if amount <= 0 {
            return None;
        }
        let id = self.next_lease;
        self.next_lease += 1;
        self.pool -= amount;
        self.lent.insert(id, amount);
        Some(Lease {
            id,
            window: self.since,
            amount,
            until,
        })
    }

    /// A decider hands back what is left. Once per lease, and never more than was lent.
    pub fn settled(&mut self, lease: &Lease) {
        if lease.window != self.since {
            return;
        }
        if let Some(lent) = self.lent.remove(&lease.id) {
            self.pool = self.pool.saturating_add(lease.amount.clamp(0, lent));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_given_is_lent_and_nothing_twice() {
        let mut lender = Lender::new(Windows::new(3_600).unwrap(), 0);
        assert_eq!(lender.lend(10, 60), None);
        assert!(lender.surrendered("a", 1, 0, 100));
        assert!(!lender.surrendered("a", 1, 0, 100));
        assert!(!lender.surrendered("b", 1, 3_600, 100));
        let mut lease = lender.lend(70, 60).unwrap();
        assert_eq!((lender.pool(), lender.leased()), (30, 70));
        lease.amount = 50;
        lender.settled(&lease);
        lender.settled(&lease);
        assert_eq!((lender.pool(), lender.leased()), (80, 0));
        lender.advance(3_600);
        assert_eq!(lender.pool(), 0);
        assert!(!lender.surrendered("a", 2, 0, 5));
    }
}
