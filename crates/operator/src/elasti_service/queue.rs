//! Who is to be looked at, now or later. Each object is in it once, however often it was touched, and is never looked at
//! twice at a time.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use tokio::sync::Notify;
use weir_role::cluster::ObjectId;

/// The queue itself, without a clock.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: VecDeque<ObjectId>,
    is_waiting: HashSet<ObjectId>,
    /// Looked at now; true if it was touched meanwhile.
    running: HashMap<ObjectId, bool>,
    later: BTreeSet<(Timestamp, ObjectId)>,
    moment_of: HashMap<ObjectId, Timestamp>,
    /// All there are.
    everything: bool,
    /// Services whose holders were touched.
    services: HashSet<ObjectId>,
}

/// A queue that several fill and one empties.
#[derive(Debug, Default)]
pub struct SharedQueue {
    queue: Mutex<Queue>,
    filled: Notify,
}

impl Queue {
    /// It was touched.
    pub fn mark(&mut self, id: ObjectId) {
        if let Some(again) = self.running.get_mut(&id) {
            *again = true;
        } else if self.is_waiting.insert(id.clone()) {
            self.waiting.push_back(id);
        }
    }

    /// The next to look at.
    pub fn take(&mut self, now: Timestamp) -> Option<ObjectId> {
        while let Some((moment, id)) = self.later.pop_first() {
            if moment > now {
                self.later.insert((moment, id));
                break;
            }
            self.moment_of.remove(&id);
            self.mark(id);
        }
        let id = self.waiting.pop_front()?;
        self.is_waiting.remove(&id);
        // Whatever it was to be looked at for later is seen now.
        if let Some(moment) = self.moment_of.remove(&id) {
            self.later.remove(&(moment, id.clone()));
        }
        self.running.insert(id.clone(), false);
        Some(id)
    }

    /// It was looked at, and is to be looked at again then, if nothing happens before.
    pub fn done(&mut self, id: &ObjectId, again: Option<Timestamp>) {
        let touched = self.running.remove(id).unwrap_or(false);
        if touched {
            self.mark(id.clone());
        } else if let Some(moment) = again {
            self.moment_of.insert(id.clone(), moment);
            self.later.insert((moment, id.clone()));
        }
    }

    /// When time alone brings something up.
    pub fn next_moment(&self) -> Option<Timestamp> {
        self.later.first().map(|(moment, _)| *moment)
    }
}

impl SharedQueue {
    /// These were touched.
    pub fn mark(&self, ids: impl IntoIterator<Item = ObjectId>) {
        let mut queue = self.lock();
        ids.into_iter().for_each(|id| queue.mark(id));
        drop(queue);
        self.filled.notify_one();
    }

    /// All were touched; whoever empties the queue knows who that is.
    pub fn mark_everything(&self) {
        self.lock().everything = true;
        self.filled.notify_one();
    }

    /// Whoever holds one of these Services was touched.
    pub fn mark_services(&self, services: Vec<ObjectId>) {
        self.lock().services.extend(services);
        self.filled.notify_one();
    }

    /// The Services whose holders were touched since this was last asked.
    pub fn take_services(&self) -> HashSet<ObjectId> {
        std::mem::take(&mut self.lock().services)
    }

    /// Whether all were touched since this was last asked.
    pub fn take_everything(&self) -> bool {
        std::mem::take(&mut self.lock().everything)
    }

    /// Waits until something was touched.
    pub async fn filled(&self) {
        self.filled.notified().await;
    }

    /// The queue, for a moment.
    pub fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(number: u8) -> ObjectId {
        ObjectId::new("shop", &number.to_string())
    }

    fn at(seconds: u8) -> Timestamp {
        Timestamp::from_second(i64::from(seconds)).unwrap()
    }

    #[test]
    fn touched_while_it_is_looked_at_it_comes_again() {
        let mut queue = Queue::default();
        queue.mark(id(1));
        queue.mark(id(1));
        assert_eq!(queue.take(at(0)), Some(id(1)));
        assert_eq!(queue.take(at(0)), None);
        queue.mark(id(1));
        assert_eq!(queue.take(at(0)), None, "never twice at a time");
        queue.done(&id(1), Some(at(9)));
        assert_eq!(queue.take(at(0)), Some(id(1)));
        queue.done(&id(1), Some(at(9)));
        assert_eq!(queue.next_moment(), Some(at(9)));
        assert_eq!(queue.take(at(8)), None);
        assert_eq!(queue.take(at(9)), Some(id(1)));
        queue.done(&id(1), None);
        assert_eq!(queue.next_moment(), None);
    }

    proptest! {
        /// Who was touched after its last look began is always taken sooner or later.
        #[test]
        fn nobody_is_forgotten(steps in prop::collection::vec((0_u8..4, 0_u8..4), 1..200)) {
            let mut queue = Queue::default();
            let mut owed: HashSet<u8> = HashSet::new();
            let mut running: Vec<u8> = Vec::new();
            for (now, (step, who)) in steps.into_iter().enumerate() {
                let now = at(u8::try_from(now).unwrap());
                match step {
                    0 | 1 => {
                        queue.mark(id(who));
                        owed.insert(who);
                    }
                    2 => if let Some(taken) = queue.take(now) {
                        let taken: u8 = taken.name.parse().unwrap();
                        prop_assert!(!running.contains(&taken));
                        running.push(taken);
                        owed.remove(&taken);
                    },
                    _ => if let Some(done) = running.pop() {
                        queue.done(&id(done), (who == 0).then_some(now));
                        if who == 0 {
                            owed.insert(done);
                        }
                    },
                }
            }
            for done in running {
                queue.done(&id(done), None);
            }
            while let Some(taken) = queue.take(at(255)) {
                owed.remove(&taken.name.parse().unwrap());
            }
            prop_assert!(owed.is_empty(), "{owed:?}");
        }
    }
}
