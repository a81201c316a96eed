//! When this resolver wakes a service by itself, because no operator answers: a synchronous state machine without a clock of
//! its own.
//!
//! The time of a service begins with the first signal that goes out for it and ends with any answer of an operator, or when it
//! is no longer wanted. When it is up the service is due; and again after as long, while nothing of the two has happened: what
//! was done may have come to nothing. What is due longest goes first.

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use crate::view::ServiceId;

/// The services for which signals go out without an answer.
#[derive(Debug)]
pub struct Alone {
    after: Duration,
    services: HashMap<ServiceId, State>,
    /// What is not under way, by the time when it is due.
    queue: BTreeSet<(Instant, ServiceId)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Due(Instant),
    UnderWay {
        /// Whether it is still to be woken when this ends.
        wanted: bool,
    },
}

impl Alone {
    /// Services are due after so long without an answer.
    pub fn new(after: Duration) -> Self {
        Self {
            after,
            services: HashMap::new(),
            queue: BTreeSet::new(),
        }
    }

    /// A signal goes out for this service.
    pub fn signalled(&mut self, id: &ServiceId, now: Instant) {
        match self.services.get_mut(id) {
            None => self.enqueue(id, now),
            Some(State::UnderWay { wanted }) => *wanted = true,
            Some(State::Due(_)) => {}
        }
    }

    /// An operator has answered for this service, or it is no longer wanted.
    pub fn leave(&mut self, id: &ServiceId) {
        match self.services.get_mut(id) {
            // It stays known until it ends: a second one beside it would be one too many.
            Some(State::UnderWay { wanted }) => *wanted = false,
            Some(State::Due(at)) => {
                let key = (*at, id.clone());
                self.queue.remove(&key);
                self.services.remove(id);
            }
            None => {}
        }
    }

    /// The services to be woken now, at most so many. They are under way from here on, until [`Self::ended`].
    pub fn due(&mut self, now: Instant, room: usize) -> Vec<ServiceId> {
        let mut due = Vec::new();
        while due.len() < room
            && let Some((at, _)) = self.queue.first()
            && *at <= now
            && let Some((_, id)) = self.queue.pop_first()
        {
            let state = State::UnderWay { wanted: true };
            self.services.insert(id.clone(), state);
            due.push(id);
        }
        due
    }

    /// When the next one is due, if nothing happens before.
    pub fn next_due(&self) -> Option<Instant> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// What was under way has come to its end, well or not.
    pub fn ended(&mut self, id: &ServiceId, now: Instant) {
        let Some(State::UnderWay { wanted }) = self.services.get(id).copied() else {
            return;
        };
        self.services.remove(id);
        if wanted {
            self.enqueue(id, now);
        }
    }

    fn enqueue(&mut self, id: &ServiceId, now: Instant) {
        let at = now + self.after;
        self.queue.insert((at, id.clone()));
        self.services.insert(id.clone(), State::Due(at));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const AFTER: Duration = Duration::from_secs(5);
    const MOMENT: Duration = Duration::from_millis(1);

    fn id(number: u8) -> ServiceId {
        ServiceId::new("shop", &number.to_string())
    }

    #[test]
    fn one_is_due_so_long_after_its_first_signal_and_then_again() {
        let mut alone = Alone::new(AFTER);
        let began = Instant::now();
        alone.signalled(&id(0), began);
        // Those that follow do not put it off.
        alone.signalled(&id(0), began + AFTER / 2);
        assert_eq!(alone.next_due(), Some(began + AFTER));
        assert_eq!(
            alone.due((began + AFTER).checked_sub(MOMENT).unwrap(), 9),
            []
        );
        let now = began + AFTER;
        assert_eq!(alone.due(now, 9), [id(0)]);
        assert_eq!(alone.due(now + AFTER, 9), [], "it is under way");
        alone.ended(&id(0), now + MOMENT);
        assert_eq!(alone.next_due(), Some(now + MOMENT + AFTER));
    }

    #[test]
    fn an_answer_ends_it_and_the_next_signal_begins_anew() {
        let mut alone = Alone::new(AFTER);
        let began = Instant::now();
        alone.signalled(&id(0), began);
        alone.leave(&id(0));
        assert_eq!(alone.next_due(), None);
        let later = began + AFTER;
        alone.signalled(&id(0), later);
        assert_eq!(alone.due(later, 9), []);
        assert_eq!(alone.due(later + AFTER, 9), [id(0)]);
        // While it is under way as well.
        alone.leave(&id(0));
        alone.ended(&id(0), later + AFTER);
        assert_eq!(alone.next_due(), None);
        assert!(alone.services.is_empty());
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Signalled(u8),
        Leave(u8),
        Due(usize),
        Ended(u8),
        Wait(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0..4_u8).prop_map(Step::Signalled),
            1 => (0..4_u8).prop_map(Step::Leave),
            3 => (0..4_usize).prop_map(Step::Due),
            2 => (0..4_u8).prop_map(Step::Ended),
            3 => (0..4000_u64).prop_map(Step::Wait),
        ];
        proptest::collection::vec(step, 0..80)
    }

    proptest! {
        /// Nobody is woken before its time, none twice at a time, none that an operator has answered for; and nothing is
        /// remembered of what is over.
        #[test]
        fn the_promises_hold(steps in steps()) {
            let mut alone = Alone::new(AFTER);
            let mut now = Instant::now();
            // Since when nobody has answered, and what is under way with whether it is still wanted.
            let mut since = BTreeMap::<u8, Instant>::new();
            let mut under_way = BTreeMap::<u8, bool>::new();
            for step in steps {
                match step {
                    Step::Signalled(number) => {
                        alone.signalled(&id(number), now);
                        match under_way.get_mut(&number) {
                            Some(wanted) => *wanted = true,
                            None => { since.entry(number).or_insert(now); }
                        }
                    }
                    Step::Leave(number) => {
                        alone.leave(&id(number));
                        since.remove(&number);
                        if let Some(wanted) = under_way.get_mut(&number) {
                            *wanted = false;
                        }
                    }
                    Step::Due(room) => {
                        let due = alone.due(now, room);
                        prop_assert!(due.len() <= room);
                        for id in &due {
                            let number: u8 = id.name.parse().unwrap();
                            let began = since.remove(&number);
                            prop_assert!(began.is_some_and(|began| began + AFTER <= now), "early");
                            prop_assert!(under_way.insert(number, true).is_none(), "twice");
                        }
                        let late = since.values().any(|began| *began + AFTER <= now);
                        prop_assert!(due.len() == room || !late, "late");
                    }
                    Step::Ended(number) => {
                        alone.ended(&id(number), now);
                        if under_way.remove(&number) == Some(true) {
                            since.insert(number, now);
                        }
                    }
                    Step::Wait(millis) => now += Duration::from_millis(millis),
                }
                prop_assert_eq!(alone.services.len(), since.len() + under_way.len());
                prop_assert_eq!(alone.queue.len(), since.len());
                let next = since.values().min().map(|began| *began + AFTER);
                prop_assert_eq!(alone.next_due(), next);
            }
        }
    }
}
