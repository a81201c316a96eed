//! The bound holds at every request, whatever deciders, leases, crashes, late answers, changed targets
//! and vanished flavours do; and what is written down comes back as it was.

use proptest::prelude::*;
use weir_carbon::budget::{Account, Lease, Lender, Ticket, Windows};
use weir_carbon::flavour::{Flavour, Flavours};
use weir_carbon::unit::{ErrorRate, Precision};

const LENGTH: i64 = 3_600;

/// What may happen, to which decider.
#[derive(Clone, Debug)]
enum Event {
    Choose {
        wanted: usize,
    },
    Answer {
        which: usize,
    },
    Lose {
        which: usize,
    },
    Surrender {
        amount: i64,
        arrives: u8,
    },
    Borrow {
        amount: i64,
        lasts: i64,
        arrives: bool,
    },
    HandBack {
        arrives: u8,
    },
    Crash,
    RestartCleanly,
    RestartEngine,
    Wait {
        seconds: i64,
    },
    Retarget {
        millionths: u32,
    },
    Vanish {
        worst: usize,
    },
}

/// A request that is not answered yet.
struct UnderWay {
    ticket: Ticket,
    target: i64,
    /// The decider that sent it is gone: its answer counts, and nobody earns for it.
    is_orphan: bool,
}

struct Decider {
    account: Account,
    number: u64,
    under_way: Vec<UnderWay>,
}

/// All deciders, the engine, and a referee that counts by itself.
struct World {
    windows: Windows,
    now: i64,
    flavours: Flavours,
    usable: usize,
    target: ErrorRate,
    deciders: Vec<Decider>,
    lender: Lender,
    window: i64,
    /// Sum of (target − error) over the window's answered requests.
    slack: i128,
}

impl World {
    fn new(flavours: Flavours, target: u32, deciders: usize) -> Self {
        let windows = Windows::new(LENGTH).expect("a length");
        let decider = || Decider {
            account: Account::new(windows, 0),
            number: 0,
            under_way: Vec::new(),
        };
        Self {
            windows,
            now: 0,
            usable: flavours.count(),
            flavours,
            target: ErrorRate::from_millionths(target),
            deciders: (0..deciders).map(|_| decider()).collect(),
            lender: Lender::new(windows, 0),
            window: 0,
            slack: 0,
        }
    }

    fn error_of(&self, flavour: usize) -> i64 {
        self.flavours.all()[flavour].error().millionths()
    }

    fn step(&mut self, who: usize, event: &Event) {
        let (now, target, usable) = (self.now, self.target, self.usable);
        let windows = self.windows;
        let decider = &mut self.deciders[who];
        match *event {
            Event::Choose { wanted } => {
                decider.account.advance(now);
                let wanted = wanted % self.flavours.count();
                let can = |i: usize| i < usable;
                let ticket = decider.account.choose(wanted, &self.flavours, can, target);
                let ticket = ticket.expect("the best flavour is always there");
                decider.under_way.push(UnderWay {
                    ticket,
                    target: target.millionths(),
                    is_orphan: false,
                });
            }
            Event::Answer { which } => {
                if decider.under_way.is_empty() {
                    return;
                }
                let which = which % decider.under_way.len();
                let one = decider.under_way.swap_remove(which);
                if !one.is_orphan {
                    decider.account.answered(one.ticket);
                }
                let error = self.error_of(one.ticket.flavour);
                self.slack += i128::from(one.target - error);
            }
            Event::Lose { which } => {
                if !decider.under_way.is_empty() {
                    let which = which % decider.under_way.len();
                    decider.under_way.swap_remove(which);
                }
            }
            Event::Surrender { amount, arrives } => {
                let given = decider.account.surrender(amount);
                decider.number += 1;
                // Zero times: lost on the way. Twice: repeated.
                for _ in 0..arrives {
                    let window = decider.account.since();
                    let name = format!("decider-{who}");
                    self.lender
                        .surrendered(&name, decider.number, window, given);
                }
            }
            Event::Borrow {
                amount,
                lasts,
                arrives,
            } => {
                if let Some(lease) = self.lender.lend(amount, now + lasts)
                    && arrives
                {
                    decider.account.receive(lease, now);
                }
            }
            Event::HandBack { arrives } => {
                let back: Option<Lease> = decider.account.hand_back();
                for _ in 0..arrives {
                    if let Some(lease) = &back {
                        self.lender.settled(lease);
                    }
                }
            }
            Event::Crash => {
                decider.account = Account::new(windows, now);
                for one in &mut decider.under_way {
                    one.is_orphan = true;
                }
            }
            Event::RestartCleanly => {
                let text = decider.account.encode();
                assert!(text.len() < 200, "{text}");
                let back = Account::decode(&text).expect("what was written");
                assert_eq!(back, decider.account);
                decider.account = back;
            }
            Event::RestartEngine => {
                let text = self.lender.encode();
                let back = Lender::decode(&text).expect("what was written");
                assert_eq!(back, self.lender);
                self.lender = back;
            }
            Event::Wait { seconds } => self.wait(seconds),
            Event::Retarget { millionths } => self.target = ErrorRate::from_millionths(millionths),
            Event::Vanish { worst } => self.usable = 1 + worst % self.flavours.count(),
        }
    }

    fn wait(&mut self, seconds: i64) {
        self.now += seconds;
        let window = self.windows.start(self.now);
        for decider in &mut self.deciders {
            decider.account.advance(self.now);
            if window > self.window {
                // Requests belong to the window in which they were sent: those are no longer counted.
                decider.under_way.clear();
            }
        }
        self.lender.advance(self.now);
        if window > self.window {
            self.window = window;
            self.slack = 0;
        }
    }
}

fn event() -> impl Strategy<Value = Event> {
    let credit = 0..5_000_000_i64;
    prop_oneof![
        8 => (0..8_usize).prop_map(|wanted| Event::Choose { wanted }),
        8 => any::<usize>().prop_map(|which| Event::Answer { which }),
        1 => any::<usize>().prop_map(|which| Event::Lose { which }),
        2 => (credit.clone(), 0..3_u8)
            .prop_map(|(amount, arrives)| Event::Surrender { amount, arrives }),
        2 => (credit, 1..600_i64, any::<bool>())
            .prop_map(|(amount, lasts, arrives)| Event::Borrow { amount, lasts, arrives }),
        1 => (0..3_u8).prop_map(|arrives| Event::HandBack { arrives }),
        1 => Just(Event::Crash),
        1 => Just(Event::RestartCleanly),
        1 => Just(Event::RestartEngine),
        1 => (-100..900_i64).prop_map(|seconds| Event::Wait { seconds }),
        1 => (0..400_000_u32).prop_map(|millionths| Event::Retarget { millionths }),
        1 => any::<usize>().prop_map(|worst| Event::Vanish { worst }),
    ]
}

/// A best flavour without error, and some others.
fn flavours() -> impl Strategy<Value = Flavours> {
    prop::collection::btree_set(0..1_000_000_u32, 1..6).prop_map(|errors| {
        let mut all = vec![Flavour::new(Precision::FULL, 1.0)];
        for precision in errors {
            all.push(Flavour::new(Precision::from_millionths(precision), 0.5));
        }
        Flavours::new(all).expect("different precisions")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_bound_holds_at_every_request(
        flavours in flavours(),
        target in 0..400_000_u32,
        events in prop::collection::vec((0..3_usize, event()), 1..400),
    ) {
        let mut world = World::new(flavours, target, 3);
        for (who, event) in &events {
            world.step(*who, event);
            prop_assert!(world.slack >= 0, "{} after {event:?}", world.slack);
        }
    }

    #[test]
    fn damaged_text_is_refused_and_never_panics(text in "[al]1( -?[0-9a-z=:]{0,22}){0,9}") {
        let _ = Account::decode(&text);
        let _ = Lender::decode(&text);
    }
}
