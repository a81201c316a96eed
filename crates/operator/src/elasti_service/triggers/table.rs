//! What every object's triggers ask, what was heard, and what is to be asked next.
//!
//! A synchronous state machine without a clock of its own. A question lives here as long as an
//! object asks it, and is sent once for all that do: each round all questions, and at once those of
//! an object that is new or has changed. [`super::queue`] says in which order, [`super::judge`] what
//! the answers mean.

#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use weir_role::cluster::ObjectId;

use super::{
    Verdict,
    judge::{Judgement, Reply, judge},
    question::{Ask, Question},
    queue::Queue,
};
use weir_hold::facts::Triggers;

/// The state of all triggers.
#[derive(Debug)]
pub struct Table {
    interval: Duration,
    /// What was asked longer ago than this is not believed any more.
    believed: Duration,
    /// When the next round begins; none while nothing is to be asked.
    next_round: Option<Instant>,
    objects: HashMap<ObjectId, Entry>,
    slots: HashMap<Arc<Question>, Slot>,
    queue: Queue,
}

/// A question that is under way.
#[derive(Clone, Debug)]
pub struct Asking {
    /// The question.
    pub question: Arc<Question>,
    /// When it was sent.
    pub asked: Instant,
}

#[derive(Debug)]
struct Entry {
    asks: Vec<Ask>,
    judgement: Option<Judgement>,
    /// What was told last, so that only changes are.
    told: Verdict,
}

/// A question that some objects ask.
#[derive(Debug, Default)]
struct Slot {
    askers: HashSet<ObjectId>,
    state: State,
    /// To be asked once more after this time: what it is to vouch for is asked later than it is.
    again: bool,
    /// Whether it vouches for others, and so comes after them in a round.
    vouches: bool,
    reply: Option<Reply>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Resting,
    Waiting,
    UnderWay,
}

impl Table {
    /// Nobody asks, and nothing is to be asked.
    pub fn new(interval: Duration, timeout: Duration) -> Self {
        Self {
            interval,
            believed: interval * 2 + timeout,
            next_round: None,
            objects: HashMap::new(),
            slots: HashMap::new(),
            queue: Queue::default(),
        }
    }

    /// What is to be asked for this object from now on. Whether that is news.
    pub fn set(&mut self, object: ObjectId, asks: Vec<Ask>, now: Instant) -> bool {
        if self
            .objects
            .get(&object)
            .is_some_and(|entry| entry.asks == asks)
        {
            return false;
        }
        let asks: Vec<Ask> = asks.into_iter().map(|ask| self.known(ask)).collect();
        // The new questions first, so that those of both are not forgotten in between.
        let old = self.objects.remove(&object);
        for (question, vouches) in asks.iter().flat_map(questions) {
            let slot = self.slots.entry(Arc::clone(question)).or_default();
            slot.askers.insert(object.clone());
            slot.vouches |= vouches;
        }
        if let Some(old) = old {
            self.release(&object, &old.asks, &asks);
        }
        // What others asked in this round is an answer for this one as well.
        let fresh = |reply: &&Reply| now.duration_since(reply.asked) < self.interval;
        let judgement = judge(&asks, |question| {
            self.slots.get(question)?.reply.as_ref().filter(fresh)
        });
        if judgement.is_none() && self.next_round.is_some() {
            for (question, _) in asks.iter().flat_map(questions) {
                self.want(question);
            }
        }
        let mut entry = Entry {
            asks,
            judgement,
            told: Verdict::unheard(),
        };
        entry.told = entry.verdict(now, self.believed);
        self.objects.insert(object, entry);
        true
    }

    /// Nothing is asked for this object any more.
    pub fn forget(&mut self, object: &ObjectId) {
        if let Some(entry) = self.objects.remove(object) {
            self.release(object, &entry.asks, &[]);
        }
    }

    /// [`Self::verdict`] for whoever is told of this object: what is read counts as told.
    ///
    /// What has run out may be read before a round tells it. What is then heard again is news, also if it is what was told
    /// before.
    pub fn read(&mut self, object: &ObjectId, now: Instant) -> Verdict {
        let believed = self.believed;
        let Some(entry) = self.objects.get_mut(object) else {
            return Verdict::unheard();
        };
        entry.tell(now, believed);
        entry.told.clone()
    }

    /// What was heard last.
    pub fn verdict(&self, object: &ObjectId, now: Instant) -> Verdict {
        match self.objects.get(object) {
            Some(entry) => entry.verdict(now, self.believed),
            None => Verdict::unheard(),
        }
    }

    /// Whether to ask. Turned on, it begins with a round. Whether that is news.
    pub fn set_active(&mut self, on: bool, now: Instant) -> bool {
        if on == self.next_round.is_some() {
            return false;
        }
        self.next_round = on.then_some(now);
        if !on {
            self.queue.clear();
            for slot in self.slots.values_mut() {
                slot.again = false;
                if slot.state == State::Waiting {
                    slot.state = State::Resting;
                }
            }
        }
        true
    }

    /// When [`Self::begin_round`] has something to do.
    pub fn next_round(&self) -> Option<Instant> {
        self.next_round
    }

    /// Begins a round if it is time for one. The objects whose verdict has run out since the last.
    pub fn begin_round(&mut self, now: Instant) -> Vec<ObjectId> {
        if self.next_round.is_none_or(|due| due > now) {
            return Vec::new();
        }
        self.next_round = Some(now + self.interval);
        let (vouching, values): (Vec<_>, Vec<_>) = self
            .slots
            .iter()
            .map(|(question, slot)| (Arc::clone(question), slot.vouches))
            .partition(|(_, vouches)| *vouches);
        for (question, _) in values.iter().chain(&vouching) {
            self.want(question);
        }
        let believed = self.believed;
        let run_out = self.objects.iter_mut().filter_map(|(object, entry)| {
            let changed = entry.tell(now, believed);
            changed.then(|| object.clone())
        });
        run_out.collect()
    }

    /// The next question to send, which is under way from now on.
    pub fn next(&mut self, now: Instant) -> Option<Asking> {
        let question = self.queue.pop()?;
        if let Some(slot) = self.slots.get_mut(&question) {
            slot.state = State::UnderWay;
        }
        Some(Asking {
            question,
            asked: now,
        })
    }

    /// A question was answered, or was not. The objects whose verdict has changed with that.
    pub fn answered(
        &mut self,
        asking: &Asking,
        said: Result<f64, String>,
        now: Instant,
    ) -> Vec<ObjectId> {
        self.queue.finished(&asking.question);
        let Some(slot) = self.slots.get_mut(&asking.question) else {
            // Nobody wants to know any more.
            return Vec::new();
        };
        slot.reply = Some(Reply {
            asked: asking.asked,
            said,
        });
        if slot.state == State::UnderWay {
            slot.state = State::Resting;
            if std::mem::take(&mut slot.again) {
                slot.state = State::Waiting;
                self.queue.push(Arc::clone(&asking.question));
            }
        }
        let slots = &self.slots;
        let askers = slots.get(&asking.question).into_iter();
        let mut changed = Vec::new();
        for object in askers.flat_map(|slot| &slot.askers) {
            let Some(entry) = self.objects.get_mut(object) else {
                continue;
            };
            let judgement = judge(&entry.asks, |question| slots.get(question)?.reply.as_ref());
            if judgement.is_some() {
                entry.judgement = judgement;
            }
            if entry.tell(now, self.believed) {
                changed.push(object.clone());
            }
        }
        changed
    }

    /// The same with questions that others ask already: held once, however many ask them.
    fn known(&self, ask: Ask) -> Ask {
        let known = |question: Arc<Question>| {
            let slot = self.slots.get_key_value(&*question);
            slot.map(|(known, _)| Arc::clone(known)).unwrap_or(question)
        };
        match ask {
            Ask::Prometheus {
                value,
                threshold,
                uptime,
            } => Ask::Prometheus {
                value: known(value),
                threshold,
                uptime: known(uptime),
            },
            refused @ Ask::Refused(_) => refused,
        }
    }

    /// Puts a question in line, unless it is there.
    fn want(&mut self, question: &Arc<Question>) {
        let Some(slot) = self.slots.get_mut(question) else {
            return;
        };
        if slot.state == State::Resting {
            slot.state = State::Waiting;
            self.queue.push(Arc::clone(question));
        } else {
            slot.again |= slot.vouches;
        }
    }

    /// The object asks the old questions no more, except those that it still asks.
    fn release(&mut self, object: &ObjectId, old: &[Ask], new: &[Ask]) {
        let kept: HashSet<&Question> = new
            .iter()
            .flat_map(questions)
            .map(|(question, _)| &**question)
            .collect();
        for (question, _) in old.iter().flat_map(questions) {
            if kept.contains(&**question) {
                continue;
            }
            let Some(slot) = self.slots.get_mut(question) else {
                continue;
            };
            slot.askers.remove(object);
            if slot.askers.is_empty() {
                if slot.state == State::Waiting {
                    self.queue.remove(question);
                }
                self.slots.remove(question);
            }
        }
    }
}

impl Entry {
    fn verdict(&self, now: Instant, believed: Duration) -> Verdict {
        let Some(judgement) = &self.judgement else {
            return Verdict::unheard();
        };
        let age = judgement.as_of.map(|asked| now.duration_since(asked));
        if age.is_some_and(|age| age > believed) {
            let why = "the last answer is too old to be believed".to_owned();
            return Verdict::new(Triggers::Unknown, Some(why));
        }
        Verdict::new(judgement.triggers, judgement.why.clone())
    }

    /// Whether there is something to tell, which counts as told from now on.
    fn tell(&mut self, now: Instant, believed: Duration) -> bool {
        let verdict = self.verdict(now, believed);
        let changed = verdict != self.told;
        self.told = verdict;
        changed
    }
}

/// The questions behind a trigger, each with whether it vouches for the other.
fn questions(ask: &Ask) -> impl Iterator<Item = (&Arc<Question>, bool)> {
    let both = match ask {
        Ask::Prometheus { value, uptime, .. } => Some([(value, false), (uptime, true)]),
        Ask::Refused(_) => None,
    };
    both.into_iter().flatten()
}
