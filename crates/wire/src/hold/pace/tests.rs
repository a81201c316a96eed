//! The pace against backends that are played: they take so many at a time, put the rest in a line, and fall over if there
//! are too many. Time is counted, not waited for.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use proptest::prelude::*;

use super::*;

/// What a backend is like.
#[derive(Clone, Copy, Debug)]
struct Backend {
    at_a_time: usize,
    falls_over_at: usize,
    work: Duration,
}

/// What came of a release.
#[derive(Clone, Copy, Debug)]
struct Released {
    took: Duration,
    most_present: usize,
}

/// A request with the backend: when it was sent, by which pace, in which round.
type Sent = (Duration, usize, Round);

/// So many requests by each of several resolvers, all to one backend; each takes what `work` says of its number.
fn release(
    backend: Backend,
    resolvers: usize,
    each: usize,
    work: impl Fn(usize) -> Duration,
) -> Released {
    let mut paces: Vec<Pace> = (0..resolvers).map(|_| Pace::default()).collect();
    let mut waiting = vec![each; resolvers];
    let mut with_it = vec![0_usize; resolvers];
    let mut line: VecDeque<Sent> = VecDeque::new();
    // By when they are done, and by number, so that the order is one.
    let mut working: BinaryHeap<Reverse<(Duration, usize)>> = BinaryHeap::new();
    let mut sent: Vec<Sent> = Vec::new();
    let (mut now, mut most_present) = (Duration::ZERO, 0);
    for pace in &mut paces {
        pace.set_endpoints(1);
    }
    loop {
        for (which, pace) in paces.iter().enumerate() {
            while waiting[which] > 0 && with_it[which] < pace.window() {
                waiting[which] -= 1;
                with_it[which] += 1;
                line.push_back((now, which, pace.round()));
            }
        }
        while working.len() < backend.at_a_time
            && let Some(next) = line.pop_front()
        {
            working.push(Reverse((now + work(sent.len()), sent.len())));
            sent.push(next);
        }
        most_present = most_present.max(working.len() + line.len());
        let Some(Reverse((done, number))) = working.pop() else {
            break;
        };
        now = done;
        let (since, which, round) = sent[number];
        with_it[which] -= 1;
        paces[which].answered(round, now.saturating_sub(since));
    }
    Released {
        took: now,
        most_present,
    }
}

fn ideal(backend: Backend, requests: usize) -> Duration {
    let rounds = requests.div_ceil(backend.at_a_time);
    backend.work * u32::try_from(rounds).unwrap()
}

const WEAK: Backend = Backend {
    at_a_time: 10,
    falls_over_at: 20,
    work: Duration::from_millis(100),
};

#[test]
fn one_that_takes_ten_and_falls_over_at_twenty_gets_all_of_a_thousand_almost_as_soon_as_it_can() {
    let released = release(WEAK, 1, 1000, |_| WEAK.work);
    assert!(released.most_present < WEAK.falls_over_at, "{released:?}");
    assert!(released.took < ideal(WEAK, 1000) * 13 / 10, "{released:?}");
}

#[test]
fn four_resolvers_at_once_do_not_overrun_it() {
    let released = release(WEAK, 4, 250, |_| WEAK.work);
    assert!(released.most_present < WEAK.falls_over_at, "{released:?}");
    assert!(released.took < ideal(WEAK, 1000) * 13 / 10, "{released:?}");
}

#[test]
fn one_that_takes_all_is_soon_sent_many() {
    let strong = Backend {
        at_a_time: 10_000,
        falls_over_at: usize::MAX,
        work: Duration::from_millis(10),
    };
    let released = release(strong, 1, 10_000, |_| strong.work);
    assert!(released.took < strong.work * 50, "{released:?}");
}

#[test]
fn requests_that_differ_are_no_sign_of_a_line() {
    // Each tenth takes a hundred times as long.
    let strong = Backend {
        at_a_time: 10_000,
        falls_over_at: usize::MAX,
        work: Duration::from_millis(10),
    };
    let work = |number: usize| strong.work * if number.is_multiple_of(10) { 100 } else { 1 };
    let released = release(strong, 1, 1000, work);
    assert!(released.took < Duration::from_secs(8), "{released:?}");
    // The first ones are quick and all others are not: what was learnt of them is given up.
    let work = |number: usize| strong.work * if number < 8 { 1 } else { 20 };
    let released = release(strong, 1, 1000, work);
    assert!(released.took < Duration::from_secs(10), "{released:?}");
}

#[test]
fn who_never_answers_lets_others_go() {
    let mut pace = Pace::default();
    pace.set_endpoints(1);
    let mut seconds = 0;
    let mut sent = pace.window();
    while sent < 1000 {
        // All that are there linger, and as many may go in their place.
        assert_eq!(pace.patience(), UNKNOWN_PATIENCE);
        for _ in 0..pace.window() {
            pace.lingers();
        }
        sent += pace.window();
        seconds += 1;
    }
    assert!(seconds < 12, "{seconds}");
    // Once it is known what an answer takes, only what takes much longer lingers.
    let round = pace.round();
    for _ in 0..pace.window().clamp(SHORTEST_ROUND, LONGEST_ROUND) {
        pace.answered(round, Duration::from_millis(200));
    }
    assert_eq!(pace.patience(), Duration::from_millis(800));
    let window = pace.window();
    pace.lingers();
    assert_eq!(pace.window(), window);
}

#[test]
fn refused_connections_halve_it_and_one_always_may_go() {
    let mut pace = Pace::default();
    pace.set_endpoints(3);
    assert_eq!(pace.window(), 6);
    for _ in 0..10 {
        pace.failed();
    }
    assert_eq!(pace.window(), 1);
    pace.set_endpoints(0);
    assert_eq!(pace.window(), 0);
    pace.set_endpoints(1);
    assert_eq!(pace.window(), FIRST_PER_ENDPOINT);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever it takes at a time, it never has twice of that, and is kept busy.
    #[test]
    fn nobody_is_overrun_and_nobody_idles(
        at_a_time in 3_usize..80,
        millis in 50_u64..2000,
        requests in 500_usize..2000,
    ) {
        let backend = Backend {
            at_a_time,
            falls_over_at: at_a_time * 2,
            work: Duration::from_millis(millis),
        };
        let released = release(backend, 1, requests, |_| backend.work);
        prop_assert!(released.most_present < backend.falls_over_at, "{released:?}");
        // To find out how many it takes costs some rounds, however few requests there are.
        let most = ideal(backend, requests) * 13 / 10 + backend.work * 16;
        prop_assert!(released.took < most, "{released:?}, {:?}", ideal(backend, requests));
    }

    /// The window is never nothing while somebody is there, and never more than it may be.
    #[test]
    fn it_stays_in_its_bounds(
        steps in proptest::collection::vec((0_u8..5, 0_u64..1000, 0_usize..4), 1..300),
    ) {
        let mut pace = Pace::default();
        for (what, millis, endpoints) in steps {
            match what {
                0 => pace.set_endpoints(endpoints),
                1 => pace.failed(),
                2 => pace.lingers(),
                _ => pace.answered(pace.round(), Duration::from_millis(millis)),
            }
            let window = pace.window();
            prop_assert!(window >= pace.endpoints.min(1));
            prop_assert!(window <= pace.endpoints * LARGEST_PER_ENDPOINT);
            prop_assert!(pace.took.len() <= LONGEST_ROUND);
        }
    }
}
