//! Which services' use is to be known, and what the resolvers' answers say of it.
//!
//! A synchronous state machine without a clock of its own. All resolvers are asked at once, and a round's answers take the
//! place of those of the round before: what is older stands in the answers themselves, since resolvers tell when the last
//! request ended. Only of one that is gone nobody tells: the last use that was heard of is kept, and what it may have had
//! after that nobody knows.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    time::{Duration, Instant},
};

use weir_hold::facts::Triggers;
use weir_role::cluster::ObjectId;

use crate::{
    elasti_service::triggers::Verdict,
    resolvers::{Silence, Usage},
};

/// What every resolver said, or why it said nothing.
pub type Answers = BTreeMap<IpAddr, Result<HashMap<ObjectId, Usage>, Silence>>;

/// Answers of so many rounds ago say nothing any more.
const RUN_OUT: u32 = 3;
/// One that has not answered so often in a row is told of. One miss may be a restart.
const MISSES: u32 = 2;

/// What is to be known for an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its Service.
    pub service: ObjectId,
    /// For how long it must not have been used.
    pub cooldown: Duration,
}

/// The state of all `resolver` triggers.
#[derive(Debug)]
pub struct Table {
    interval: Duration,
    /// When the next round begins; none while nobody is to be asked.
    next_round: Option<Instant>,
    objects: HashMap<ObjectId, Entry>,
    heard: Option<Heard>,
    /// How often each has not answered, in a row.
    misses: HashMap<IpAddr, u32>,
    /// When one went that may have been used until then.
    lost: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    wanted: Wanted,
    /// When it was last used, as far as any resolver has ever said.
    used: Option<Instant>,
    /// What was told last, so that only changes are.
    told: Verdict,
}

/// The answers of a round.
#[derive(Debug)]
struct Heard {
    asked: Instant,
    answers: Answers,
}

impl Table {
    /// Nobody wants to know, and nobody is asked.
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            next_round: None,
            objects: HashMap::new(),
            heard: None,
            misses: HashMap::new(),
            lost: None,
        }
    }

    /// Whether something is to be known for this object.
    pub fn follows(&self, object: &ObjectId) -> bool {
        self.objects.contains_key(object)
    }

    /// What is to be known for this object from now on. Whether it is the first that anything is to be known for.
    pub fn set(&mut self, object: ObjectId, wanted: Option<Wanted>) -> bool {
        let Some(wanted) = wanted else {
            self.objects.remove(&object);
            return false;
        };
        let is_first = self.objects.is_empty();
        let known = self.objects.get(&object);
        if known.is_some_and(|known| known.wanted == wanted) {
            return false;
        }
        let used = known.filter(|known| known.wanted.service == wanted.service);
        let entry = Entry {
            used: used.and_then(|known| known.used),
            wanted,
            // Who sets it reads it next.
            told: Verdict::unheard(),
        };
        self.objects.insert(object, entry);
        is_first
    }

    /// Nothing is to be known for this object any more.
    pub fn forget(&mut self, object: &ObjectId) {
        self.objects.remove(object);
    }

    /// What is known.
    pub fn verdict(&self, object: &ObjectId, now: Instant) -> Verdict {
        match self.objects.get(object) {
            None => Verdict::new(Triggers::Absent, None),
            Some(entry) => self.judge(entry, now),
        }
    }

    /// Whether to ask. Turned on, it begins with a round. Whether that is news.
    pub fn set_active(&mut self, on: bool, now: Instant) -> bool {
        if on == self.next_round.is_some() {
            return false;
        }
        self.next_round = on.then_some(now);
        self.heard = None;
        self.misses.clear();
        true
    }

    /// When [`Self::begin_round`] has something to do; none while nobody wants to know.
    pub fn next_round(&self) -> Option<Instant> {
        self.next_round.filter(|_| !self.objects.is_empty())
    }

    /// Whether it is time to ask, which from now on it was.
    pub fn begin_round(&mut self, now: Instant) -> bool {
        let is_due = self.next_round().is_some_and(|due| due <= now);
        if is_due {
            self.next_round = Some(now + self.interval);
        }
        is_due
    }

    /// The answers to what was asked then. The objects of which something else is to be said than before.
    pub fn heard(&mut self, asked: Instant, answers: Answers, now: Instant) -> Vec<ObjectId> {
        let is_late = self.heard.as_ref().is_some_and(|heard| heard.asked > asked);
        if self.next_round.is_none() || is_late {
            return Vec::new();
        }
        self.misses
            .retain(|address, _| answers.contains_key(address));
        for (address, said) in &answers {
            if said.is_ok() {
                self.misses.remove(address);
            } else {
                *self.misses.entry(*address).or_default() += 1;
            }
        }
        let before = self.heard.replace(Heard { asked, answers });
        let (Some(Heard { answers, .. }), objects) = (&self.heard, &mut self.objects) else {
            return Vec::new();
        };
        let mut known = before.iter().flat_map(|before| before.answers.keys());
        if known.any(|address| !answers.contains_key(address)) {
            self.lost = Some(asked);
        }
        for entry in objects.values_mut() {
            let service = &entry.wanted.service;
            let said = answers.values().flatten();
            let uses = said.filter_map(|said| said.get(service)?.used(asked));
            // What was open at one that is gone ended then, as far as anybody can tell.
            let gone = before.iter().flat_map(|before| &before.answers);
            let gone = gone.filter(|(address, _)| !answers.contains_key(address));
            let was_open = gone.filter_map(|(_, said)| said.as_ref().ok()?.get(service));
            let was_open = was_open.filter(|usage| usage.open > 0).map(|_| asked);
            entry.used = uses.chain(was_open).chain(entry.used).max();
        }
        let all: Vec<ObjectId> = self.objects.keys().cloned().collect();
        self.tell(all, now)
    }

    /// Those of these of which something else is to be said than before, which counts as told from now on.
    fn tell(&mut self, objects: Vec<ObjectId>, now: Instant) -> Vec<ObjectId> {
        let mut changed = Vec::new();
        for object in objects {
            let verdict = self.verdict(&object, now);
            if let Some(entry) = self.objects.get_mut(&object)
                && entry.told != verdict
            {
                entry.told = verdict;
                changed.push(object);
            }
        }
        changed
    }

    fn judge(&self, entry: &Entry, now: Instant) -> Verdict {
        let unknown = |why: Option<String>| Verdict::new(Triggers::Unknown, why);
        let Wanted { service, cooldown } = &entry.wanted;
        let Some(Heard { asked, answers }) = &self.heard else {
            return Verdict::unheard();
        };
        if now.duration_since(*asked) > self.interval * RUN_OUT {
            return Verdict::unheard();
        }
        let said = answers.values().flatten();
        let told = said.filter_map(|said| said.get(service)?.used(*asked));
        let used = told.chain(entry.used).max();
        if used.is_some_and(|used| asked.saturating_duration_since(used) <= self.interval) {
            let why = "requests or connections have come through the resolvers just now";
            return Verdict::new(Triggers::Busy, Some(why.to_owned()));
        }
        if answers.is_empty() {
            let why = "no resolver is ready, so nobody can say whether requests have come";
            return unknown(Some(why.to_owned()));
        }
        let silent = answers.iter();
        let silent = silent.filter_map(|(address, said)| Some((address, said.as_ref().err()?)));
        if let Some((address, silence)) = silent
            .clone()
            .max_by_key(|(address, _)| self.misses.get(*address))
        {
            let is_told = self.misses.get(address).is_some_and(|it| *it >= MISSES);
            let why = || {
                format!(
                    "the resolver {address} does not say whether requests have come: {}",
                    silence.why
                )
            };
            return unknown(is_told.then(why));
        }
        let counted = |said: &HashMap<ObjectId, Usage>| {
            let usage = said.get(service);
            usage.is_some_and(|usage| usage.counted >= *cooldown)
        };
        // Up to then one that is gone may have been used, whatever it said before.
        let last = used.max(self.lost);
        let rests = last.is_some_and(|last| now.saturating_duration_since(last) < *cooldown);
        let is_idle = !rests && answers.values().flatten().all(counted);
        if is_idle {
            return Verdict::new(Triggers::Idle, None);
        }
        // Not for long enough, or a resolver is new: nothing is wrong.
        unknown(None)
    }
}

impl Usage {
    /// When it was last used, if it was; told by somebody who was asked then.
    fn used(&self, asked: Instant) -> Option<Instant> {
        if self.open > 0 {
            return Some(asked);
        }
        // Before this process began to count time: as long ago as can be told.
        self.ended.and_then(|ago| asked.checked_sub(ago))
    }
}
