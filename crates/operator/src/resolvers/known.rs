//! What is known of the resolvers: who is there and what each has answered go in; who is ready, what it knows, and for
//! which services that has changed come out.
//!
//! No I/O and no clock: `places` says who is there, `ask` puts the questions, and the loop around it counts the time.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
    net::{IpAddr, SocketAddr},
};

use weir_api::hold::PortAllotment;
use weir_role::cluster::ObjectId;

use super::{News, Resolver};
use weir_hold::facts::Knows;

/// All resolvers that are there.
#[derive(Debug)]
pub(super) struct Known {
    /// So many questions in a row without an answer, and a resolver is left out.
    misses: u32,
    is_listed: bool,
    is_synced: bool,
    resolvers: BTreeMap<IpAddr, State>,
}

/// What a resolver answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// The number of its list.
    pub(super) generation: u64,
    /// It knows all that is to be known at first, and is not about to end.
    pub(super) is_ready: bool,
    /// Its list; none: as it was when it had this number.
    pub(super) services: Option<Services>,
    /// The services with a ready pod to which it cannot connect, whatever the list.
    pub(super) unreachable: Unreachable,
}

/// The services that a resolver knows, each with the ports that it has bound for it.
pub(super) type Services = HashMap<ObjectId, Vec<PortAllotment>>;

/// Where such a pod listens, by service.
pub(super) type Unreachable = HashMap<ObjectId, SocketAddr>;

/// What came of an answer, or of none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) news: Option<News>,
    /// For the log.
    pub(super) turn: Option<Turn>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It has missed so many that it is left out from now on.
    Lost,
    /// It answers again.
    Back,
}

#[derive(Debug)]
struct State {
    resolver: Resolver,
    /// Whether a question has been answered or missed.
    was_asked: bool,
    /// Questions without an answer since the last one with.
    missed: u32,
    is_ready: bool,
    /// Its list, with its number. Kept while it does not answer: when it does again, the list may be the same.
    list: Option<(u64, Services)>,
    unreachable: Unreachable,
}

impl Known {
    pub(super) fn new(misses: u32) -> Self {
        Self {
            misses: misses.max(1),
            is_listed: false,
            is_synced: false,
            resolvers: BTreeMap::new(),
        }
    }

    /// These are there, and no others.
    pub(super) fn present(&mut self, mut there: BTreeMap<IpAddr, Resolver>) -> Option<News> {
        self.is_listed = true;
        let mut has_changed = false;
        let misses = self.misses;
        self.resolvers.retain(|address, state| {
            let resolver = there.remove(address);
            if state.is_usable(misses) && resolver.as_ref() != Some(&state.resolver) {
                has_changed = true;
            }
            let stays = resolver.is_some();
            if let Some(resolver) = resolver {
                state.resolver = resolver;
            }
            stays
        });
        let new = there
            .into_iter()
            .map(|(address, resolver)| (address, State::new(resolver)));
        self.resolvers.extend(new);
        let is_synced_now = self.note_sync();
        (has_changed || is_synced_now).then_some(News::All)
    }

    /// A resolver has answered, or none came in time.
    pub(super) fn heard(&mut self, address: IpAddr, answer: Option<Answer>) -> Outcome {
        let misses = self.misses;
        // It may have gone meanwhile.
        let Some(state) = self.resolvers.get_mut(&address) else {
            return Outcome::default();
        };
        let was_usable = state.is_usable(misses);
        let was_lost = state.missed >= misses;
        let changed = state.take(answer);
        let is_usable = state.is_usable(misses);
        let turn = match (was_lost, state.missed >= misses) {
            (false, true) => Some(Turn::Lost),
            (true, false) => Some(Turn::Back),
            _ => None,
        };
        let news = if self.note_sync() || was_usable != is_usable {
            Some(News::All)
        } else if is_usable && !changed.is_empty() {
            Some(News::Services(changed))
        } else {
            None
        };
        Outcome { news, turn }
    }

    /// Nobody listens there. That says more than silence: no need to ask again before it is left out.
    pub(super) fn refused(&mut self, address: IpAddr) -> Outcome {
        if let Some(state) = self.resolvers.get_mut(&address) {
            state.missed = state.missed.max(self.misses - 1);
        }
        self.heard(address, None)
    }

    /// Whom to ask, each with the number of the list that it need not tell again.
    pub(super) fn questions(&self) -> impl Iterator<Item = (IpAddr, Option<u64>)> {
        self.resolvers.iter().map(|(address, state)| {
            let list = state.list.as_ref();
            (*address, list.map(|(generation, _)| *generation))
        })
    }

    /// Whether one has neither answered nor missed a question yet.
    pub(super) fn is_new(&self, address: IpAddr) -> bool {
        self.resolvers
            .get(&address)
            .is_some_and(|state| !state.was_asked)
    }

    /// The ready ones.
    pub(super) fn ready(&self) -> impl Iterator<Item = &Resolver> {
        self.usable().map(|state| &state.resolver)
    }

    /// The ready ones, and whether each has bound these ports for this service. That it has bound more is no harm: an
    /// allotment that was taken back goes away in its own time.
    pub(super) fn for_service(
        &self,
        service: &ObjectId,
        ports: &[PortAllotment],
    ) -> Vec<(Resolver, Knows)> {
        let knows = |state: &State| {
            let list = state.list.as_ref();
            let bound = list.and_then(|(_, services)| services.get(service));
            let has_all = bound.is_some_and(|bound| ports.iter().all(|port| bound.contains(port)));
            if has_all { Knows::Yes } else { Knows::NotYet }
        };
        self.usable()
            .map(|state| (state.resolver.clone(), knows(state)))
            .collect()
    }

    /// A ready pod of this service to which a ready resolver cannot connect. Of several the first, so that it is the same
    /// one as long as it is so.
    pub(super) fn unreachable(&self, service: &ObjectId) -> Option<SocketAddr> {
        let told = self.usable().map(|state| state.unreachable.get(service));
        told.flatten().min().copied()
    }

    /// The ones that have missed so many questions that they are left out.
    pub(super) fn lost(&self) -> BTreeSet<IpAddr> {
        let states = self.resolvers.iter();
        let is_lost = |(_, state): &(&IpAddr, &State)| state.missed >= self.misses;
        states
            .filter(is_lost)
            .map(|(address, _)| *address)
            .collect()
    }

    pub(super) fn is_synced(&self) -> bool {
        self.is_synced
    }

    fn usable(&self) -> impl Iterator<Item = &State> {
        let states = self.resolvers.values();
        states.filter(|state| state.is_usable(self.misses))
    }

    /// Says whether all has been looked at once, just now.
    fn note_sync(&mut self) -> bool {
        let all_asked = || self.resolvers.values().all(|state| state.was_asked);
        let is_now = !self.is_synced && self.is_listed && all_asked();
        self.is_synced |= is_now;
        is_now
    }
}

impl State {
    fn new(resolver: Resolver) -> Self {
        Self {
            resolver,
            was_asked: false,
            missed: 0,
            is_ready: false,
            list: None,
            unreachable: Unreachable::new(),
        }
    }

    fn is_usable(&self, misses: u32) -> bool {
        self.is_ready && self.list.is_some() && self.missed < misses
    }

    /// Takes an answer in, and says of which services it knows something else now, in order.
    fn take(&mut self, answer: Option<Answer>) -> Vec<ObjectId> {
        self.was_asked = true;
        let list = answer.and_then(|answer| {
            let known = self.list.as_ref().map(|(generation, _)| *generation);
            // A list that it says we have, and we do not, is no answer.
            let is_complete = answer.services.is_some() || known == Some(answer.generation);
            is_complete.then_some(answer)
        });
        let Some(answer) = list else {
            self.missed = self.missed.saturating_add(1);
            return Vec::new();
        };
        self.missed = 0;
        self.is_ready = answer.is_ready;
        let before = mem::replace(&mut self.unreachable, answer.unreachable);
        let mut changed = differing(&before, &self.unreachable);
        if let Some(services) = answer.services {
            let before = self.list.take();
            let before = before.map(|(_, services)| services).unwrap_or_default();
            changed.extend(differing(&before, &services));
            self.list = Some((answer.generation, services));
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }
}

/// What is only in one of both, or another in each.
fn differing<T: PartialEq>(
    before: &HashMap<ObjectId, T>,
    after: &HashMap<ObjectId, T>,
) -> Vec<ObjectId> {
    let gone = before.keys().filter(|id| !after.contains_key(id));
    let other = after
        .iter()
        .filter(|(id, value)| before.get(id) != Some(value));
    gone.chain(other.map(|(id, _)| id)).cloned().collect()
}

#[cfg(test)]
mod tests;
