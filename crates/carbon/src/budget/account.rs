//! A decider's account. It earns the target for each request that is answered and pays a flavour's
//! error when it chooses it; what it cannot pay, it does not choose.
//!
//! Why the bound holds: let Q be the sum of (target − error) over answered requests; the promise is
//! Q ≥ 0. Choosing a flavour whose error exceeds the target needs `balance + target − error ≥ 0`, and the
//! balance has already paid for all that is still under way. So whatever is answered later, in any
//! order or never, Q stays at or above zero. Leases ([`super::lender`]) only add what another account gave up.

use serde::{Deserialize, Serialize};

use super::lender::Lease;
use super::window::Windows;
use crate::flavour::Flavours;
use crate::unit::ErrorRate;

/// What one decider may still spend in the present window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    pub(super) windows: Windows,
    pub(super) since: i64,
    pub(super) balance: i64,
    pub(super) lease: Option<Lease>,
}

/// A request that was sent to a flavour and is not answered yet. To be given back when it is; one that
/// is dropped was never answered, and has earned nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "give it back with `answered`, or the request earns nothing"]
pub struct Ticket {
    /// The flavour, by its place in the set.
    pub flavour: usize,
    /// Nothing available was within the account: the budget is in debt through no choice of ours.
    pub in_debt: bool,
    target: i64,
    window: i64,
}

impl Account {
    /// Empty, as each window begins.
    pub fn new(windows: Windows, now: i64) -> Self {
        Self {
            windows,
            since: windows.start(now),
            balance: 0,
            lease: None,
        }
    }

    /// What may be spent now, the lease included.
    pub fn available(&self) -> i64 {
        self.balance
            .saturating_add(self.lease.as_ref().map_or(0, |lease| lease.amount))
    }

    /// The account's own part.
    pub const fn balance(&self) -> i64 {
        self.balance
    }

    /// When the present window began.
    pub const fn since(&self) -> i64 {
        self.since
    }

    /// Lets time pass: unspent credit lapses with its window, a lease at its end. Time that runs backwards
    /// changes nothing.
    pub fn advance(&mut self, now: i64) {
        let start = self.windows.start(now);
        if start > self.since {
            self.since = start;
            self.balance = 0;
            self.lease = None;
        }
        if self.lease.as_ref().is_some_and(|lease| lease.until <= now) {
            self.lease = None;
        }
    }

    /// Chooses `wanted` if the account covers it, else the best that is available, and charges it.
    /// None when nothing is available.
    pub fn choose(
        &mut self,
        wanted: usize,
        flavours: &Flavours,
        available: impl Fn(usize) -> bool,
        target: ErrorRate,
    ) -> Option<Ticket> {
        let target = target.millionths();
        let error = |i: usize| flavours.all().get(i).map(|f| f.error().millionths());
        let best = (0..flavours.count()).find(|i| available(*i))?;
        let (mut flavour, mut cost) = (best, error(best)?);
        if let Some(asked) = error(wanted)
            && available(wanted)
            && self.covers(asked, target)
        {
            (flavour, cost) = (wanted, asked);
        }
        let in_debt = !self.covers(cost, target) && cost > target;
        self.pay(cost, target);
        Some(Ticket {
            flavour,
            in_debt,
            target,
            window: self.since,
        })
    }

    /// The request was answered: it earns the target that was in force when it was sent. An answer that
    /// comes after its window's end changes nothing any more.
    pub fn answered(&mut self, ticket: Ticket) {
        if ticket.window == self.since {
            self.balance = self.balance.saturating_add(ticket.target);
        }
    }

    /// Whole rounds of requests, each covered and answered at once: for the simulator, which has checked
    /// that each request of them could be chosen.
    pub(crate) fn settle_rounds(&mut self, net: i64, rounds: u64) {
        let rounds = i64::try_from(rounds).unwrap_or(i64::MAX);
        self.balance = self.balance.saturating_add(net.saturating_mul(rounds));
    }

    /// Gives up credit for others, at most what the account itself has; returns how much.
    pub fn surrender(&mut self, at_most: i64) -> i64 {
        let given = at_most.clamp(0, self.balance.max(0));
        self.balance -= given;
        given
    }

    /// Takes a lease; what is left of one before is gone unless it was handed back. One of another
    /// window, or that has ended, is not taken.
    pub fn receive(&mut self, lease: Lease, now: i64) {
        if lease.window == self.since && lease.until > now {
            self.lease = Some(lease);
        }
    }

    /// Hands back what is left of the lease, to be reported to the engine.
    pub fn hand_back(&mut self) -> Option<Lease> {
        self.lease.take()
    }

    /// A flavour no worse than the target can always be chosen: it pays for itself.
    fn covers(&self, error: i64, target: i64) -> bool {
        error <= target || self.available().saturating_add(target) >= error
    }

    /// The lease is spent first, since it ends first; but it never pays the part that the answer
    /// will earn back.
    fn pay(&mut self, error: i64, target: i64) {
        let mut own = error;
        if let Some(lease) = &mut self.lease {
            let leased = lease.amount.min((error - target).max(0));
            lease.amount -= leased;
            own -= leased;
        }
        self.balance = self.balance.saturating_sub(own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flavour::Flavour;
    use crate::unit::Precision;

    fn flavours(percents: &[u32]) -> Flavours {
        let flavour = |p: &u32| Flavour::new(Precision::from_millionths(p * 10_000), f64::from(*p));
        Flavours::new(percents.iter().map(flavour).collect()).unwrap()
    }

    fn account() -> Account {
        Account::new(Windows::new(3_600).unwrap(), 0)
    }

    const TARGET: ErrorRate = ErrorRate::from_millionths(100_000);

    #[test]
    fn credit_is_earned_before_it_is_spent() {
        let set = flavours(&[100, 30]);
        let mut account = account();
        let mut served = Vec::new();
        for _ in 0..14 {
            let ticket = account.choose(1, &set, |_| true, TARGET).unwrap();
            served.push(ticket.flavour);
            account.answered(ticket);
        }
        // Six answers earn the 0.6 by which p30 exceeds the target.
        assert_eq!(served, [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn what_is_under_way_has_earned_nothing() {
        let set = flavours(&[100, 30]);
        let mut account = account();
        for _ in 0..20 {
            let ticket = account.choose(1, &set, |_| true, TARGET).unwrap();
            assert_eq!(ticket.flavour, 0);
        }
    }

    #[test]
    fn a_target_of_zero_means_the_best() {
        let set = flavours(&[100, 99]);
        let mut account = account();
        for _ in 0..9 {
            let ticket = account.choose(1, &set, |_| true, ErrorRate::from_millionths(0));
            assert_eq!(ticket.map(|t| t.flavour), Some(0));
        }
    }

    #[test]
    fn a_debt_that_nobody_chose_is_told_and_worked_off() {
        let set = flavours(&[100, 50, 30]);
        let mut account = account();
        let ticket = account.choose(2, &set, |i| i > 0, TARGET).unwrap();
        assert!(ticket.in_debt && ticket.flavour == 1);
        account.answered(ticket);
        assert_eq!(account.balance(), -400_000);
        for _ in 0..4 {
            let ticket = account.choose(2, &set, |_| true, TARGET).unwrap();
            assert_eq!((ticket.flavour, ticket.in_debt), (0, false));
            account.answered(ticket);
        }
        assert_eq!(account.balance(), 0);
        assert!(account.choose(2, &set, |_| false, TARGET).is_none());
    }

    #[test]
    fn credit_lapses_with_its_window_and_time_never_goes_back() {
        let set = flavours(&[100, 30]);
        let mut account = account();
        let early = account.choose(0, &set, |_| true, TARGET).unwrap();
        let kept = account.choose(0, &set, |_| true, TARGET).unwrap();
        account.answered(early);
        account.advance(-10);
        assert_eq!(account.balance(), 100_000);
        account.advance(3_600);
        assert_eq!(account.balance(), 0);
        account.answered(kept);
        account.advance(0);
        assert_eq!((account.balance(), account.since()), (0, 3_600));
    }
}
