//! Which signal is due when: a synchronous state machine without a clock of its own.
//!
//! For each service that is wanted there is at most one signal under way. One that failed is repeated after 0.1 s, then
//! after twice as long each time, up to the retry time; one that was answered is repeated after the retry time while
//! the service is still wanted: the operator may have died after it answered. What is due longest goes first.

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use crate::view::ServiceId;

/// The pause after the first failure.
pub const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// How a signal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The operator has heard it.
    Answered,
    /// It has not, as far as we know.
    Failed,
}

/// The services that are wanted, and those whose signal is still under way.
#[derive(Debug)]
pub struct Signals {
    retry: Duration,
    services: HashMap<ServiceId, State>,
    /// What is not under way, by the time when it is due. The number tells those of one moment apart by who came first.
    queue: BTreeSet<(Instant, u64, ServiceId)>,
    arrivals: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Due {
        at: Instant,
        arrival: u64,
        pause: Duration,
    },
    UnderWay {
        /// Whether it is still wanted when this ends.
        wanted: bool,
        pause: Duration,
    },
}

impl Signals {
    /// Nothing is wanted.
    pub fn new(retry: Duration) -> Self {
        Self {
            retry,
            services: HashMap::new(),
            queue: BTreeSet::new(),
            arrivals: 0,
        }
    }

    /// A service is wanted; its first signal is due now. Nothing changes where it is wanted already.
    pub fn want(&mut self, id: &ServiceId, now: Instant) {
        match self.services.get_mut(id) {
            None => self.enqueue(id, now, self.first_pause()),
            Some(State::UnderWay { wanted, .. }) => *wanted = true,
            Some(State::Due { .. }) => {}
        }
    }

    /// A service is no longer wanted.
    pub fn settled(&mut self, id: &ServiceId) {
        match self.services.get_mut(id) {
            // It stays known until it ends: were it forgotten, the next `want` would send a second one beside it.
            Some(State::UnderWay { wanted, .. }) => *wanted = false,
            Some(State::Due { at, arrival, .. }) => {
                let key = (*at, *arrival, id.clone());
                self.queue.remove(&key);
                self.services.remove(id);
            }
            None => {}
        }
    }

    /// The services whose signals are to be sent now, at most so many, longest due first. They are under way from
    /// here on, until [`Self::ended`].
    pub fn due(&mut self, now: Instant, room: usize) -> Vec<ServiceId> {
        let mut due = Vec::new();
        while due.len() < room
            && let Some((at, _, _)) = self.queue.first()
            && *at <= now
            && let Some((_, _, id)) = self.queue.pop_first()
        {
            if let Some(state) = self.services.get_mut(&id)
                && let State::Due { pause, .. } = *state
            {
                *state = State::UnderWay {
                    wanted: true,
                    pause,
                };
            }
            due.push(id);
        }
        due
    }

    /// When the next signal is due, if nothing happens before.
    pub fn next_due(&self) -> Option<Instant> {
        self.queue.first().map(|(at, _, _)| *at)
    }

    /// A signal came to its end. Returns how long until the next one, if the service is still wanted.
    pub fn ended(&mut self, id: &ServiceId, outcome: Outcome, now: Instant) -> Option<Duration> {
        let Some(State::UnderWay { wanted, pause }) = self.services.get(id).copied() else {
            return None;
        };
        self.services.remove(id);
        if !wanted {
            return None;
        }
        let (wait, next) = match outcome {
            Outcome::Answered => (self.retry, self.first_pause()),
            Outcome::Failed => (pause, (pause * 2).min(self.retry)),
        };
        self.enqueue(id, now + wait, next);
        Some(wait)
    }

    /// How many services are known here.
    pub fn len(&self) -> usize {
        self.services.len()
    }

    /// Whether nothing is wanted or under way.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    fn enqueue(&mut self, id: &ServiceId, at: Instant, pause: Duration) {
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.queue.insert((at, arrival, id.clone()));
        self.services
            .insert(id.clone(), State::Due { at, arrival, pause });
    }

    fn first_pause(&self) -> Duration {
        FIRST_PAUSE.min(self.retry)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const RETRY: Duration = Duration::from_secs(1);

    fn id(number: u8) -> ServiceId {
        ServiceId::new("shop", &number.to_string())
    }

    #[test]
    fn pauses_double_up_to_the_retry_time() {
        let mut signals = Signals::new(RETRY);
        let mut now = Instant::now();
        signals.want(&id(0), now);
        for millis in [100, 200, 400, 800, 1000, 1000] {
            assert_eq!(signals.due(now, 10), [id(0)]);
            assert_eq!(signals.due(now, 10), []);
            assert_eq!(signals.next_due(), None);
            let wait = signals.ended(&id(0), Outcome::Failed, now).unwrap();
            assert_eq!(wait, Duration::from_millis(millis));
            assert_eq!(signals.due(now, 10), []);
            now += wait;
            assert_eq!(signals.next_due(), Some(now));
        }
        // An answer ends the doubling, but not the wish.
        assert_eq!(signals.due(now, 10), [id(0)]);
        assert_eq!(signals.ended(&id(0), Outcome::Answered, now), Some(RETRY));
        now += RETRY;
        assert_eq!(signals.due(now, 10), [id(0)]);
        let wait = signals.ended(&id(0), Outcome::Failed, now);
        assert_eq!(wait, Some(FIRST_PAUSE));
        signals.settled(&id(0));
        assert!(signals.is_empty() && signals.next_due().is_none());
    }

    #[test]
    fn what_is_settled_and_wanted_again_meanwhile_has_one_signal() {
        let mut signals = Signals::new(RETRY);
        let now = Instant::now();
        signals.want(&id(0), now);
        assert_eq!(signals.due(now, 1), [id(0)]);
        signals.settled(&id(0));
        signals.want(&id(0), now);
        assert_eq!(signals.due(now + RETRY, 1), []);
        assert!(signals.ended(&id(0), Outcome::Answered, now).is_some());
        assert_eq!(signals.due(now + RETRY, 1), [id(0)]);
        signals.settled(&id(0));
        assert_eq!(signals.ended(&id(0), Outcome::Failed, now), None);
        assert!(signals.is_empty());
    }

    #[test]
    fn who_waits_longest_goes_first() {
        let mut signals = Signals::new(RETRY);
        let now = Instant::now();
        for number in 0..10 {
            signals.want(&id(number), now);
        }
        let order: Vec<ServiceId> = (0..10).map(id).collect();
        assert_eq!(signals.due(now, 4), order[..4]);
        assert_eq!(signals.due(now, 100), order[4..]);
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Want(u8),
        Settled(u8),
        Send(usize),
        End(u8, Outcome),
        Wait(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let outcome = prop_oneof![Just(Outcome::Answered), Just(Outcome::Failed)];
        let step = prop_oneof![
            3 => (0..4_u8).prop_map(Step::Want),
            1 => (0..4_u8).prop_map(Step::Settled),
            3 => (0..4_usize).prop_map(Step::Send),
            3 => (0..4_u8, outcome).prop_map(|(number, outcome)| Step::End(number, outcome)),
            2 => (0..600_u64).prop_map(Step::Wait),
        ];
        proptest::collection::vec(step, 0..80)
    }

    proptest! {
        /// Never two signals for one service, none for what nobody wants, none later than the retry time, and
        /// nothing is remembered of what is over.
        #[test]
        fn the_promises_hold(steps in steps()) {
            let mut signals = Signals::new(RETRY);
            let mut now = Instant::now();
            // What should be so: since when a service is wanted without a signal, and what is under way.
            let mut idle = BTreeMap::<u8, Instant>::new();
            let mut under_way = BTreeMap::<u8, bool>::new();
            for step in steps {
                match step {
                    Step::Want(number) => {
                        signals.want(&id(number), now);
                        if let Some(wanted) = under_way.get_mut(&number) {
                            *wanted = true;
                        } else {
                            idle.entry(number).or_insert(now);
                        }
                    }
                    Step::Settled(number) => {
                        signals.settled(&id(number));
                        idle.remove(&number);
                        if let Some(wanted) = under_way.get_mut(&number) {
                            *wanted = false;
                        }
                    }
                    Step::Send(room) => {
                        let due = signals.due(now, room);
                        prop_assert!(due.len() <= room);
                        for id in &due {
                            let number: u8 = id.name.parse().unwrap();
                            prop_assert!(idle.remove(&number).is_some(), "nobody wants it");
                            prop_assert!(under_way.insert(number, true).is_none(), "twice");
                        }
                        if due.len() < room {
                            for since in idle.values() {
                                prop_assert!(now < *since + RETRY, "late");
                            }
                        }
                    }
                    Step::End(number, outcome) => {
                        let again = signals.ended(&id(number), outcome, now);
                        let wanted = under_way.remove(&number).unwrap_or(false);
                        prop_assert_eq!(again.is_some(), wanted);
                        if wanted {
                            idle.insert(number, now);
                        }
                    }
                    Step::Wait(millis) => now += Duration::from_millis(millis),
                }
                prop_assert_eq!(signals.len(), idle.len() + under_way.len());
                prop_assert_eq!(signals.next_due().is_some(), !idle.is_empty());
                if let Some(due) = signals.next_due() {
                    prop_assert!(due <= now + RETRY);
                }
            }
        }
    }
}
