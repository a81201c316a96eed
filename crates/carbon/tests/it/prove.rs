//! Whole random simulations, many of them: grids, demands, flavours, targets, forecasts, several deciders that crash. The budget
//! is checked at every request by a referee of its own. `cargo xtask prove budget --cases 100000` is the long run;
//! the usual one is short. A case is made from its number alone, so that one that fails can be played again.

mod chance;
mod fleet;
mod game;

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use chance::Chance;

/// How many cases; `cargo xtask prove` sets it.
const CASES: &str = "WEIR_PROVE_CASES";
/// The first case's number.
const FIRST: &str = "WEIR_PROVE_FIRST";
const USUAL: u64 = 40;

#[test]
fn no_random_simulation_breaks_the_budget() {
    let number = |name| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let cases: u64 = number(CASES).unwrap_or(USUAL);
    let first: u64 = number(FIRST).unwrap_or(0);
    let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let (requests, slots, crashes) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let began = Instant::now();
    let step = (cases / 100).max(100);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let case = next.fetch_add(1, Ordering::Relaxed);
                    if case >= cases {
                        break;
                    }
                    let played = catch_unwind(AssertUnwindSafe(|| {
                        let mut chance = Chance::new(first + case);
                        let game = game::Game::random(&mut chance);
                        game::simulated(&game, &mut chance);
                        fleet::play(&game, &mut chance)
                    }));
                    let Ok(count) = played else {
                        is_over.store(true, Ordering::Relaxed);
                        panic!(
                            "case {0} failed; again: {FIRST}={0} {CASES}=1",
                            first + case
                        );
                    };
                    requests.fetch_add(count.requests, Ordering::Relaxed);
                    slots.fetch_add(count.slots, Ordering::Relaxed);
                    crashes.fetch_add(count.crashes, Ordering::Relaxed);
                    if (case + 1) % step == 0 {
                        let seconds = began.elapsed().as_secs();
                        eprintln!("{} of {cases} simulations, {seconds} s", case + 1);
                    }
                }
            });
        }
    });
    eprintln!(
        "{cases} simulations, {} slots and {} requests of fleets with {} crashes: the budget held at each, {:.0} s",
        slots.into_inner(),
        requests.into_inner(),
        crashes.into_inner(),
        began.elapsed().as_secs_f64()
    );
}
