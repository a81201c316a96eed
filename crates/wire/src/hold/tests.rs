//! Properties of the hold, against a model that remembers every request by itself.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits {
    total: Room {
        requests: 12,
        bytes: 1000,
    },
    each: Room {
        requests: 8,
        bytes: 600,
    },
};

/// What may happen. Requests are named by the order in which they came.
#[derive(Clone, Debug)]
enum Step {
    Endpoints(u64, usize),
    Enter(u64, usize),
    Next(u64),
    Grow(usize, usize),
    Shrink(usize, usize),
    Answered(usize),
    Lingers(usize, usize),
    Sent(usize),
    Failed(usize),
    Leave(usize),
    Close(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let line = 0_u64..4;
    prop_oneof![
        2 => (line.clone(), 0_usize..3).prop_map(|(line, n)| Step::Endpoints(line, n)),
        8 => (line.clone(), 0_usize..200).prop_map(|(line, bytes)| Step::Enter(line, bytes)),
        8 => line.clone().prop_map(Step::Next),
        2 => (0_usize..60, 0_usize..300).prop_map(|(it, bytes)| Step::Grow(it, bytes)),
        1 => (0_usize..60, 0_usize..300).prop_map(|(it, bytes)| Step::Shrink(it, bytes)),
        3 => (0_usize..60).prop_map(Step::Answered),
        3 => (0_usize..60, 0_usize..300).prop_map(|(it, bytes)| Step::Lingers(it, bytes)),
        2 => (0_usize..60).prop_map(Step::Sent),
        3 => (0_usize..60).prop_map(Step::Failed),
        3 => (0_usize..60).prop_map(Step::Leave),
        1 => line.prop_map(Step::Close),
    ]
}

/// Two lines each belong to one owner.
fn owner_of(line: u64) -> Owner {
    Owner(line / 2)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Released,
    Gone,
}

#[derive(Default)]
struct Model {
    requests: Vec<(Ticket, u64, usize, State)>,
    endpoints: BTreeMap<u64, usize>,
    /// What remains of requests that linger, and whose it is.
    remains: BTreeMap<usize, (Owner, usize)>,
}

impl Model {
    fn held(&self, is_meant: impl Fn(u64) -> bool) -> Room {
        let held = self.requests.iter();
        let held = held.filter(|(_, line, _, state)| *state != State::Gone && is_meant(*line));
        let held = held.fold(Room::default(), |sum, (_, _, bytes, _)| Room {
            requests: sum.requests + 1,
            bytes: sum.bytes + bytes,
        });
        let remains = self.remains.iter();
        let remains = remains.filter(|(index, _)| is_meant(self.requests[**index].1));
        Room {
            bytes: held.bytes + remains.map(|(_, (_, bytes))| bytes).sum::<usize>(),
            ..held
        }
    }

    fn of(&self, line: u64, wanted: State) -> BTreeSet<usize> {
        let all = self.requests.iter().enumerate();
        all.filter(|(_, (_, of, _, state))| *of == line && *state == wanted)
            .map(|(index, _)| index)
            .collect()
    }
}

#[allow(clippy::too_many_lines, reason = "one arm for each step")]
fn run(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut hold: Hold<usize> = Hold::new(LIMITS);
    let mut model = Model::default();
    let now = Instant::now();
    for line in 0..4 {
        hold.open_line(LineId(line), owner_of(line));
    }
    for step in steps {
        match step {
            Step::Endpoints(line, endpoints) => {
                hold.set_endpoints(LineId(line), endpoints);
                model.endpoints.insert(line, endpoints);
            }
            Step::Enter(line, bytes) => {
                let free = LIMITS.total.requests - model.held(|_| true).requests;
                let of_owner = model.held(|of| owner_of(of) == owner_of(line));
                let index = model.requests.len();
                match hold.enter(LineId(line), bytes, index) {
                    Ok(ticket) => model.requests.push((ticket, line, bytes, State::Waiting)),
                    // A newcomer is never kept out by others while there is room at all.
                    Err(Overflow::TotalRequests) => {
                        prop_assert!(of_owner.requests > 0 || free == 0);
                    }
                    Err(Overflow::OwnerRequests) => {
                        prop_assert_eq!(of_owner.requests, LIMITS.each.requests);
                    }
                    Err(_) => {}
                }
            }
            Step::Next(line) => {
                let waiting = model.of(line, State::Waiting);
                if let Some(index) = hold.next(LineId(line), now) {
                    // The oldest goes, and only to a backend that is there.
                    prop_assert_eq!(Some(&index), waiting.first());
                    prop_assert!(model.endpoints.get(&line).is_some_and(|n| *n > 0));
                    model.requests[index].3 = State::Released;
                } else if model.endpoints.get(&line).is_some_and(|n| *n > 0) && !waiting.is_empty()
                {
                    // Nobody waits for nothing: somebody is with the backend, and its end will let the next go.
                    prop_assert!(!model.of(line, State::Released).is_empty());
                }
            }
            Step::Grow(index, bytes) => {
                if let Some(request) = model.requests.get_mut(index)
                    && hold.grow(request.0, bytes)
                {
                    prop_assert_ne!(request.3, State::Gone);
                    request.2 += bytes;
                }
            }
            Step::Shrink(index, bytes) => {
                if let Some(request) = model.requests.get_mut(index) {
                    hold.shrink(request.0, bytes);
                    request.2 = request.2.saturating_sub(bytes);
                }
            }
            Step::Answered(index) => {
                if let Some(request) = model.requests.get_mut(index) {
                    hold.answered(request.0, now);
                    request.3 = State::Gone;
                }
            }
            Step::Lingers(index, remains) => {
                if let Some(request) = model.requests.get_mut(index) {
                    let counted = hold.lingers(request.0, remains);
                    // What still waits, or has left, cannot linger.
                    prop_assert_eq!(counted.is_some(), request.3 == State::Released);
                    if let Some(counted) = counted {
                        prop_assert_eq!(counted, (owner_of(request.1), remains.min(request.2)));
                        request.3 = State::Gone;
                        model.remains.insert(index, counted);
                    }
                }
            }
            Step::Sent(index) => {
                if let Some((owner, remains)) = model.remains.remove(&index) {
                    hold.give_back(owner, remains);
                }
            }
            Step::Failed(index) => {
                if let Some(request) = model.requests.get_mut(index) {
                    let waits = hold.wait_again(request.0, index);
                    prop_assert_eq!(waits, request.3 == State::Released);
                    if waits {
                        request.3 = State::Waiting;
                    }
                }
            }
            Step::Leave(index) => {
                if let Some(request) = model.requests.get_mut(index) {
                    hold.leave(request.0);
                    request.3 = State::Gone;
                }
            }
            Step::Close(line) => {
                let told: BTreeSet<usize> = hold.close_line(LineId(line)).into_iter().collect();
                prop_assert_eq!(told, model.of(line, State::Waiting));
                for request in model.requests.iter_mut().filter(|it| it.1 == line) {
                    request.3 = State::Gone;
                }
                hold.open_line(LineId(line), owner_of(line));
                model.endpoints.insert(line, 0);
            }
        }
        let all = model.held(|_| true);
        prop_assert_eq!(hold.held(), all);
        prop_assert!(all.requests <= LIMITS.total.requests && all.bytes <= LIMITS.total.bytes);
        for line in 0..4 {
            let owner = owner_of(line);
            let own = model.held(|of| owner_of(of) == owner);
            prop_assert_eq!(hold.held_by(owner), own);
            prop_assert!(own.requests <= LIMITS.each.requests && own.bytes <= LIMITS.each.bytes);
            let seen = hold.line(LineId(line));
            prop_assert_eq!(seen.waiting, model.of(line, State::Waiting).len());
            prop_assert_eq!(seen.released, model.of(line, State::Released).len());
        }
    }
    // Nobody is lost: with a backend that answers, all that wait are released in the end, each once.
    for line in 0..4 {
        hold.set_endpoints(LineId(line), 1);
        for released in model.of(line, State::Released) {
            hold.answered(model.requests[released].0, now);
        }
        let mut waiting = model.of(line, State::Waiting);
        while let Some(index) = hold.next(LineId(line), now) {
            prop_assert!(waiting.remove(&index));
            hold.answered(model.requests[index].0, now);
        }
        prop_assert!(waiting.is_empty());
    }
    for (owner, remains) in model.remains.into_values() {
        hold.give_back(owner, remains);
    }
    prop_assert_eq!(hold.held(), Room::default());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn never_more_than_the_limits_never_lost_never_twice_in_order(
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        run(steps)?;
    }
}

#[test]
fn a_flood_leaves_room_for_a_newcomer_and_another_flood() {
    let room = |requests| Room {
        requests,
        bytes: 1 << 20,
    };
    let limits = Limits {
        total: room(300),
        each: room(300),
    };
    let mut hold = Hold::new(limits);
    for line in 0..3 {
        hold.open_line(LineId(line), Owner(line));
    }
    let fill = |hold: &mut Hold<()>, line| {
        std::iter::repeat_with(|| hold.enter(LineId(line), 1, ()))
            .take_while(Result::is_ok)
            .count()
    };
    assert_eq!(fill(&mut hold, 0), 150, "half of the room");
    assert_eq!(fill(&mut hold, 1), 75, "half of what is left");
    assert!(hold.enter(LineId(2), 1, ()).is_ok());
}

#[test]
fn the_window_opens_with_answers_and_closes_with_refusals() {
    let room = Room {
        requests: 100_000,
        bytes: 1 << 30,
    };
    let limits = Limits {
        total: room,
        each: room,
    };
    let mut hold = Hold::new(limits);
    let line = LineId(0);
    hold.open_line(line, Owner(0));
    let tickets: Vec<Ticket> = (0..5000)
        .map(|it| hold.enter(line, 1, it).unwrap())
        .collect();
    let now = Instant::now();
    assert_eq!(
        hold.next(line, now),
        None,
        "nobody goes to a backend that is not there"
    );
    hold.set_endpoints(line, 1);
    let released = |hold: &mut Hold<usize>| -> Vec<usize> {
        std::iter::from_fn(|| hold.next(line, now)).collect()
    };
    let first = released(&mut hold);
    assert_eq!(first.len(), 2);
    let mut with_it = first;
    while with_it.len() < 100 {
        for it in with_it {
            hold.answered(tickets[it], now);
        }
        with_it = released(&mut hold);
    }
    let oldest = with_it[0];
    for it in with_it {
        assert!(hold.wait_again(tickets[it], it));
    }
    assert_eq!(hold.line(line).window, 1);
    assert_eq!(
        released(&mut hold),
        [oldest],
        "the oldest is still the first"
    );
}
