//! The same game with several deciders, as in production: weights from `optimal`, an account each, credit lent between them,
//! answers that come late or never, deciders that die or stop in order, an engine that restarts, flavours that vanish and
//! targets that change; and a referee that counts answered requests by itself.

use weir_carbon::budget::{Account, Lender, Ticket};
use weir_carbon::policy::{View, by_name};
use weir_carbon::unit::ErrorRate;
use weir_carbon::weights::{Turns, Weights};

use super::chance::Chance;
use super::game::{Game, target};

/// What was played.
#[derive(Default)]
pub(super) struct Count {
    pub(super) requests: u64,
    pub(super) slots: u64,
    pub(super) crashes: u64,
}

struct Decider {
    account: Account,
    turns: Turns,
    number: u64,
    under_way: Vec<UnderWay>,
}

struct UnderWay {
    ticket: Ticket,
    target: i64,
    window: i64,
    /// The decider that sent it is gone: its answer counts, and nobody earns for it.
    is_orphan: bool,
}

struct Fleet<'a> {
    game: &'a Game,
    now: i64,
    target: ErrorRate,
    usable: usize,
    deciders: Vec<Decider>,
    lender: Lender,
    /// Sum of (target − error) over the window's answered requests.
    slack: i128,
    count: Count,
}

pub(super) fn play(game: &Game, chance: &mut Chance) -> Count {
    let (trace, windows) = (&game.trace, game.windows);
    let decider = |_| Decider {
        account: Account::new(windows, trace.start()),
        turns: Turns::new(game.flavours.count()),
        number: 0,
        under_way: Vec::new(),
    };
    let mut fleet = Fleet {
        game,
        now: trace.start(),
        target: game.target,
        usable: game.flavours.count(),
        deciders: (0..=chance.index(4)).map(decider).collect(),
        lender: Lender::new(windows, trace.start()),
        slack: 0,
        count: Count::default(),
    };
    let mut policy = by_name("optimal", 0).expect("the policy");
    let mut seen = game.history.clone();
    let (mut forecast, mut window) = (Vec::new(), windows.start(trace.start()));
    for (t, intensity) in trace.values().iter().enumerate() {
        if windows.start(fleet.now) != window {
            window = windows.start(fleet.now);
            fleet.slack = 0;
        }
        game.forecaster().look(trace, t, &seen, &mut forecast);
        let balance = fleet.deciders.iter().map(|d| d.account.available()).sum();
        let decision = policy.decide(&View {
            now: fleet.now,
            slot_seconds: trace.slot_seconds(),
            window_end: windows.end(fleet.now),
            balance,
            target: fleet.target,
            flavours: &game.flavours,
            forecast: &forecast,
            seen: &seen,
            served: &game.demand[..t],
            last_error: None,
        });
        seen.push(*intensity);
        fleet.slot(&decision.weights, game.demand[t], chance);
        assert!(fleet.slack >= 0, "slot {t}: {}", fleet.slack);
        fleet.count.slots += 1;
        fleet.now += trace.slot_seconds();
    }
    fleet.count
}

impl Fleet<'_> {
    fn slot(&mut self, weights: &Weights, requests: u64, chance: &mut Chance) {
        self.lender.advance(self.now);
        for decider in &mut self.deciders {
            decider.account.advance(self.now);
        }
        if chance.once_in(30) {
            self.target = ErrorRate::from_millionths(target(chance));
        }
        self.usable = if chance.once_in(6) {
            1 + chance.index(self.game.flavours.count())
        } else {
            self.game.flavours.count()
        };
        let restless = chance.of(&[5, 40, 400]);
        for _ in 0..requests {
            let who = chance.index(self.deciders.len());
            self.request(who, weights);
            if !chance.once_in(8) {
                self.answer(who, chance);
            }
            if chance.once_in(restless) {
                self.trouble(chance);
            }
            self.count.requests += 1;
        }
        while chance.once_in(2) {
            let who = chance.index(self.deciders.len());
            self.answer(who, chance);
        }
    }

    fn request(&mut self, who: usize, weights: &Weights) {
        let (target, usable) = (self.target, self.usable);
        let decider = &mut self.deciders[who];
        let wanted = decider.turns.next(weights);
        let flavours = &self.game.flavours;
        let ticket = decider
            .account
            .choose(wanted, flavours, |i| i < usable, target);
        decider.under_way.push(UnderWay {
            ticket: ticket.expect("the best flavour is there"),
            target: target.millionths(),
            window: decider.account.since(),
            is_orphan: false,
        });
    }

    /// The account is told, and the referee counts, in the window in which the request was sent.
    fn answer(&mut self, who: usize, chance: &mut Chance) {
        let decider = &mut self.deciders[who];
        if decider.under_way.is_empty() {
            return;
        }
        let which = chance.index(decider.under_way.len());
        let one = decider.under_way.swap_remove(which);
        if !one.is_orphan {
            decider.account.answered(one.ticket);
        }
        if one.window == self.game.windows.start(self.now) {
            let error = self.game.flavours.all()[one.ticket.flavour].error();
            self.slack += i128::from(one.target - error.millionths());
            assert!(self.slack >= 0, "{}", self.slack);
        }
    }

    fn trouble(&mut self, chance: &mut Chance) {
        let now = self.now;
        let who = chance.index(self.deciders.len());
        let windows = self.game.windows;
        let decider = &mut self.deciders[who];
        match chance.below(9) {
            0 => {
                decider.account = Account::new(windows, now);
                for one in &mut decider.under_way {
                    one.is_orphan = true;
                }
                self.count.crashes += 1;
            }
            1 => {
                let written = decider.account.encode();
                decider.account = Account::decode(&written).expect("what was written");
            }
            2 => self.lender = Lender::decode(&self.lender.encode()).expect("what was written"),
            3 => decider.under_way.clear(),
            // Time that runs backwards changes nothing.
            4 => decider.account.advance(now - chance.within(0, 2_000_000)),
            5 | 6 => {
                let given = decider.account.surrender(chance.within(0, 3_000_000));
                decider.number += 1;
                // Zero times: lost on the way. Twice: repeated.
                for _ in 0..chance.below(3) {
                    let (name, since) = (format!("decider-{who}"), decider.account.since());
                    self.lender.surrendered(&name, decider.number, since, given);
                }
            }
            7 => {
                let until = now + chance.within(1, 20_000);
                let lease = self.lender.lend(chance.within(0, 3_000_000), until);
                if let Some(lease) = lease
                    && chance.once_in(2)
                {
                    decider.account.receive(lease, now);
                }
            }
            _ => {
                if let Some(lease) = decider.account.hand_back() {
                    for _ in 0..chance.below(3) {
                        self.lender.settled(&lease);
                    }
                }
            }
        }
    }
}
