//! Who is asked when, and who is ready: a synchronous state machine without I/O and without a clock.
//!
//! It is told which pods start ([`Machine::apply`]), for which services requests are held ([`Machine::hold`]), and how
//! probes ended ([`Machine::answered`]). It says which probes are due ([`Machine::due`]) and which pods of a service are
//! ready ([`Machine::take_news`]). A pod is asked while a service of its own is held; one that is ready is asked on, as
//! seldom as the kubelet would, until the kubelet says that it is. From then on it is listed as ready and no concern of ours.
//!
//! Never is a pod ready here of which a container does not run, or has a probe that has not succeeded in its present run,
//! neither by our asking nor by the kubelet's; nor one that has not been asked at all. A pod that goes is forgotten, and so
//! is all that was said by a container that starts again.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{budget::Budget, progress::Progress};
use crate::{
    pod::{PodView, Probe},
    view::{Change, ServiceId, ServiceView},
};

/// Tells a pod from another of the same name.
pub type Uid = Arc<str>;

/// How much may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Probes that may be under way.
    pub at_a_time: usize,
    /// Probes in a second, in the long run.
    pub per_second: u32,
    /// Probes at once, after a rest.
    pub at_once: u32,
    /// An answer that takes longer is none, whatever the pod allows.
    pub longest: Duration,
}

/// A probe that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// To be given back with the outcome.
    pub ticket: Ticket,
    /// Where.
    pub address: SocketAddr,
    /// What.
    pub probe: Arc<Probe>,
    /// For how long.
    pub timeout: Duration,
}

/// A probe that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(u64);

/// How a probe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// As it should.
    Succeeded,
    /// It was refused, or answered otherwise, or not in time.
    Failed,
    /// Nothing came back at all.
    Unreachable,
}

/// All pods that start.
#[derive(Debug)]
pub struct Machine {
    pace: Pace,
    budget: Budget,
    services: HashMap<ServiceId, Service>,
    pods: HashMap<Uid, Pod>,
    /// By time, then by who came first.
    queue: BTreeSet<(Instant, u64, Place)>,
    under_way: HashMap<Ticket, (Place, Instant)>,
    changed: BTreeSet<ServiceId>,
    next_number: u64,
}

/// A container by its place in its pod.
type Place = (Uid, usize);

#[derive(Debug, Default)]
struct Service {
    is_held: bool,
    pods: BTreeSet<Uid>,
    told: BTreeSet<Uid>,
}

#[derive(Debug)]
struct Pod {
    view: Arc<PodView>,
    services: BTreeSet<ServiceId>,
    containers: Vec<Container>,
    is_ready: bool,
}

#[derive(Debug)]
struct Container {
    progress: Progress,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Due(Instant, u64),
    UnderWay(Ticket),
}

impl Machine {
    /// One that knows of nothing.
    pub fn new(pace: Pace) -> Self {
        Self {
            pace,
            budget: Budget::new(pace.per_second, pace.at_once),
            services: HashMap::new(),
            pods: HashMap::new(),
            queue: BTreeSet::new(),
            under_way: HashMap::new(),
            changed: BTreeSet::new(),
            next_number: 0,
        }
    }

    /// A service has changed.
    pub fn apply(&mut self, change: &Change, now: Instant) {
        match change {
            Change::Set(view) => self.set(&view.id, &starting(view), now),
            Change::Gone(id) => {
                self.set(id, &BTreeMap::new(), now);
                self.released(id);
                self.services.remove(id);
                self.changed.remove(id);
            }
        }
    }

    /// Requests are held for this service.
    pub fn hold(&mut self, id: &ServiceId) {
        let service = self.services.entry(id.clone()).or_default();
        if !mem::replace(&mut service.is_held, true) {
            for uid in service.pods.clone() {
                self.schedule(&uid);
            }
        }
    }

    /// None is any more.
    pub fn released(&mut self, id: &ServiceId) {
        let Some(service) = self.services.get_mut(id) else {
            return;
        };
        service.is_held = false;
        for uid in service.pods.clone() {
            self.schedule(&uid);
        }
        self.tidy(id);
    }

    /// The services for which requests are held.
    pub fn held(&self) -> impl Iterator<Item = &ServiceId> {
        let held = self.services.iter().filter(|(_, it)| it.is_held);
        held.map(|(id, _)| id)
    }

    /// The probes that are to be sent now, longest due first. They are under way from here on, until
    /// [`Self::answered`].
    pub fn due(&mut self, now: Instant) -> Vec<Ask> {
        let mut due = Vec::new();
        while self.under_way.len() < self.pace.at_a_time
            && self.queue.first().is_some_and(|(at, _, _)| *at <= now)
            && self.budget.take(now)
            && let Some((_, _, place)) = self.queue.pop_first()
        {
            let ticket = Ticket(self.number());
            let Some(pod) = self.pods.get_mut(&place.0) else {
                continue;
            };
            let views = pod.view.containers.get(place.1);
            let (Some(container), Some(view)) = (pod.containers.get_mut(place.1), views) else {
                continue;
            };
            container.state = State::Idle;
            let question = container.progress.question(view);
            let (Some((probe, _)), Some(address)) = (question, pod.view.addresses.first()) else {
                continue;
            };
            container.state = State::UnderWay(ticket);
            self.under_way.insert(ticket, (place, now));
            due.push(Ask {
                ticket,
                address: SocketAddr::new(*address, probe.port),
                timeout: probe.timeout.min(self.pace.longest),
                probe,
            });
        }
        due
    }

    /// When the next probe is due, if nothing happens before.
    pub fn next_due(&self) -> Option<Instant> {
        if self.under_way.len() >= self.pace.at_a_time {
            return None;
        }
        let (at, _, _) = self.queue.first()?;
        Some(self.budget.next().map_or(*at, |next| next.max(*at)))
    }

    /// A probe has ended.
    pub fn answered(&mut self, ticket: Ticket, outcome: Outcome) {
        let Some(((uid, index), asked)) = self.under_way.remove(&ticket) else {
            return;
        };
        let Some(pod) = self.pods.get_mut(&uid) else {
            return;
        };
        let views = pod.view.containers.get(index);
        let (Some(container), Some(view)) = (pod.containers.get_mut(index), views) else {
            return;
        };
        // Another run began meanwhile: this was said by the last one.
        if container.state != State::UnderWay(ticket) {
            return;
        }
        container.state = State::Idle;
        container.progress.answered(view, outcome, asked);
        self.judge(&uid);
        self.schedule(&uid);
    }

    /// The services of which other pods are ready than was told last, with all that are.
    pub fn take_news(&mut self) -> Vec<(ServiceId, BTreeSet<Uid>)> {
        let mut news = Vec::new();
        for id in mem::take(&mut self.changed) {
            let Some(service) = self.services.get_mut(&id) else {
                continue;
            };
            let is_ready = |uid: &&Uid| self.pods.get(*uid).is_some_and(|pod| pod.is_ready);
            let ready: BTreeSet<Uid> = service.pods.iter().filter(is_ready).cloned().collect();
            if service.told != ready {
                service.told.clone_from(&ready);
                news.push((id.clone(), ready));
            }
            self.tidy(&id);
        }
        news
    }

    /// Whether nothing is known, held or under way.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
            && self.pods.is_empty()
            && self.queue.is_empty()
            && self.under_way.is_empty()
    }

    fn set(&mut self, id: &ServiceId, starting: &BTreeMap<Uid, Arc<PodView>>, now: Instant) {
        let known = self.services.get(id).map(|service| service.pods.clone());
        let known = known.unwrap_or_default();
        if known.is_empty() && starting.is_empty() {
            return;
        }
        for uid in known.iter().filter(|uid| !starting.contains_key(*uid)) {
            self.unlist(id, uid);
        }
        for (uid, view) in starting {
            self.list(id, uid, view, now);
        }
        self.changed.insert(id.clone());
    }

    /// A pod of this service starts, or has changed.
    fn list(&mut self, id: &ServiceId, uid: &Uid, view: &Arc<PodView>, now: Instant) {
        let service = self.services.entry(id.clone()).or_default();
        service.pods.insert(Arc::clone(uid));
        let pod = self.pods.entry(Arc::clone(uid)).or_insert_with(|| Pod {
            view: Arc::clone(view),
            services: BTreeSet::new(),
            containers: Vec::new(),
            is_ready: false,
        });
        pod.services.insert(id.clone());
        pod.view = Arc::clone(view);
        let new = |view| Container {
            progress: Progress::new(view, now),
            state: State::Idle,
        };
        let mut left = Vec::new();
        if pod.containers.len() == view.containers.len() {
            let all = pod.containers.iter_mut().zip(&view.containers);
            for (index, (container, view)) in all.enumerate() {
                if container.progress.hear(view, now) {
                    left.push((mem::replace(&mut container.state, State::Idle), index));
                }
            }
        } else {
            let states = pod.containers.iter().map(|container| container.state);
            left.extend(states.zip(0..));
            pod.containers = view.containers.iter().map(new).collect();
        }
        for (state, index) in left {
            self.unqueue(state, uid, index);
        }
        self.judge(uid);
        self.schedule(uid);
    }

    /// A pod is no longer listed as one of this service that starts: it is ready or gone.
    fn unlist(&mut self, id: &ServiceId, uid: &Uid) {
        if let Some(service) = self.services.get_mut(id) {
            service.pods.remove(uid);
        }
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        pod.services.remove(id);
        if !pod.services.is_empty() {
            self.schedule(uid);
            return;
        }
        if let Some(pod) = self.pods.remove(uid) {
            for (index, container) in pod.containers.iter().enumerate() {
                self.unqueue(container.state, uid, index);
            }
        }
    }

    /// Is it ready now? One that is no longer may leave requests behind that wait again.
    fn judge(&mut self, uid: &Uid) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        let mut containers = pod.containers.iter().zip(&pod.view.containers);
        // The kubelet's word alone may be old, of a node that is lost: somebody must have answered.
        let is_ready = containers.all(|(container, view)| container.progress.is_ready(view))
            && pod.containers.iter().any(|it| it.progress.has_passed());
        if mem::replace(&mut pod.is_ready, is_ready) == is_ready {
            return;
        }
        let services = pod.services.clone();
        for id in services {
            if !is_ready {
                self.hold(&id);
            }
            self.changed.insert(id);
        }
    }

    /// Puts the containers of a pod where they belong in the queue.
    fn schedule(&mut self, uid: &Uid) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        let is_held = |id: &ServiceId| self.services.get(id).is_some_and(|it| it.is_held);
        let is_wanted = pod.is_ready || pod.services.iter().any(is_held);
        for (index, container) in pod.containers.iter_mut().enumerate() {
            let question = pod
                .view
                .containers
                .get(index)
                .filter(|_| is_wanted)
                .and_then(|view| container.progress.question(view));
            let at = question.map(|(_, at)| at);
            match container.state {
                State::UnderWay(_) => continue,
                State::Due(due, _) if Some(due) == at => continue,
                State::Due(due, number) => {
                    self.queue.remove(&(due, number, (Arc::clone(uid), index)));
                    container.state = State::Idle;
                }
                State::Idle => {}
            }
            if let Some(at) = at {
                let number = self.next_number;
                self.next_number += 1;
                container.state = State::Due(at, number);
                self.queue.insert((at, number, (Arc::clone(uid), index)));
            }
        }
    }

    fn unqueue(&mut self, state: State, uid: &Uid, index: usize) {
        if let State::Due(at, number) = state {
            self.queue.remove(&(at, number, (Arc::clone(uid), index)));
        }
    }

    /// Forgets a service of which there is nothing to know.
    fn tidy(&mut self, id: &ServiceId) {
        let is_over = |it: &Service| !it.is_held && it.pods.is_empty() && it.told.is_empty();
        if self.services.get(id).is_some_and(is_over) {
            self.services.remove(id);
        }
    }

    fn number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }
}

/// The pods of a service that start, each once.
fn starting(view: &ServiceView) -> BTreeMap<Uid, Arc<PodView>> {
    let all = view.ports.iter().flat_map(|port| port.starting.iter());
    all.map(|it| (Arc::clone(&it.pod.uid), Arc::clone(&it.pod)))
        .collect()
}
