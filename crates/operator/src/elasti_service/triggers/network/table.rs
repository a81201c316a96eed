//! Whose traffic is to be known, what kubelets said of it, and which of them is to be asked next.
//!
//! A synchronous state machine without a clock of its own. A node is in it as long as a pod of somebody is on it, and is asked
//! once each round for all of them: at the round's beginning, or when the first pod appears. [`super::quiet`] knows what the
//! counters of one pod say; here is what the pods of an object say together.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use weir_hold::facts::Triggers;
use weir_role::cluster::ObjectId;

use super::{
    quiet::{Heard, Quiet, Rule},
    summary::Summary,
    wanted::{Place, Traffic, Wanted},
};
use crate::elasti_service::triggers::Verdict;

/// The most kubelets that are asked at a time: each may answer some megabytes.
pub const PARALLEL: usize = 16;
/// A kubelet looks at the counters of a pod every 10 to 30 seconds. So counters of one round may be those of the round before,
/// one round may fail, and a node may be slow; whatever is further apart than that is a gap.
const KUBELETS_STEP: Duration = Duration::from_mins(1);

/// The state of all `network` triggers.
#[derive(Debug)]
pub struct Table {
    interval: Duration,
    /// When the next round begins; none while nobody is to be asked.
    next_round: Option<Instant>,
    objects: HashMap<ObjectId, Entry>,
    nodes: HashMap<Arc<str>, Node>,
    line: VecDeque<Arc<str>>,
    under_way: usize,
}

/// A kubelet that is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    /// Its node.
    pub node: Arc<str>,
    /// Where it was found last; nobody knows of one that is new, or could not be reached there.
    pub address: Option<SocketAddr>,
    /// When it was asked.
    pub asked: Instant,
}

/// What a kubelet says, and where it was found.
#[derive(Clone, Debug)]
pub struct Told {
    /// Where.
    pub address: SocketAddr,
    /// What.
    pub summary: Summary,
}

#[derive(Debug)]
struct Entry {
    wanted: Wanted,
    pods: BTreeMap<Arc<str>, Pod>,
    /// When one of them was last found not to be quiet. It may have gone since, and then nobody else knows.
    busy: Option<Instant>,
    /// What was told last, so that only changes are.
    told: Verdict,
}

/// What is known of a pod.
#[derive(Debug)]
struct Pod {
    place: Place,
    wanted_since: Instant,
    quiet: Option<Known>,
}

#[derive(Debug)]
struct Known {
    quiet: Quiet,
    /// When its counters were last heard to have been read anew.
    heard: Instant,
}

#[derive(Debug, Default)]
struct Node {
    /// Who has pods on it.
    users: BTreeSet<ObjectId>,
    state: State,
    asked: Option<Instant>,
    address: Option<SocketAddr>,
    /// Why it could not be asked the last time.
    trouble: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Resting,
    Waiting,
    UnderWay,
}

/// What one pod says. What is further down wins.
#[derive(Debug)]
enum Opinion {
    /// Quiet for the whole cooldown.
    Idle,
    /// Not for that long, or its kubelet does not know it yet: nothing is wrong.
    Resting,
    /// Its kubelet was not asked yet.
    Waiting,
    Failed(String),
    Busy(String),
}

impl Table {
    /// Nobody wants to know, and nobody is asked.
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            next_round: None,
            objects: HashMap::new(),
            nodes: HashMap::new(),
            line: VecDeque::new(),
            under_way: 0,
        }
    }

    /// What is to be known for this object from now on. Whether that is news.
    pub fn set(&mut self, object: ObjectId, wanted: Wanted, now: Instant) -> bool {
        let old = self.objects.remove(&object);
        if wanted == Wanted::Nothing {
            self.release(&object, old.as_ref());
            return old.is_some();
        }
        if let Some(old) = old {
            if old.wanted == wanted {
                self.objects.insert(object, old);
                return false;
            }
            self.release(&object, Some(&old));
            self.enter(object, wanted, Some(old), now);
        } else {
            self.enter(object, wanted, None, now);
        }
        true
    }

    /// Nothing is to be known for this object any more.
    pub fn forget(&mut self, object: &ObjectId) {
        let old = self.objects.remove(object);
        self.release(object, old.as_ref());
    }

    /// What is known.
    pub fn verdict(&self, object: &ObjectId, now: Instant) -> Verdict {
        let entry = self.objects.get(object);
        entry.map_or_else(
            || Verdict::new(Triggers::Absent, None),
            |entry| self.judge(entry, now),
        )
    }

    /// Whether to ask. Turned on, it begins with a round. Whether that is news.
    pub fn set_active(&mut self, on: bool, now: Instant) -> bool {
        if on == self.next_round.is_some() {
            return false;
        }
        self.next_round = on.then_some(now);
        if !on {
            self.line.clear();
            for node in self.nodes.values_mut() {
                if node.state == State::Waiting {
                    node.state = State::Resting;
                }
            }
        }
        true
    }

    /// When [`Self::begin_round`] has something to do.
    pub fn next_round(&self) -> Option<Instant> {
        self.next_round
    }

    /// Begins a round if it is time for one. The objects of which something else is to be said than before.
    pub fn begin_round(&mut self, now: Instant) -> Vec<ObjectId> {
        if self.next_round.is_none_or(|due| due > now) {
            return Vec::new();
        }
        self.next_round = Some(now + self.interval);
        self.nodes
            .retain(|_, node| !node.users.is_empty() || node.state == State::UnderWay);
        // One that is still under way has the next round.
        for (name, node) in &mut self.nodes {
            if node.state == State::Resting {
                node.state = State::Waiting;
                self.line.push_back(Arc::clone(name));
            }
        }
        let all: Vec<ObjectId> = self.objects.keys().cloned().collect();
        self.tell(all, now)
    }

    /// The next kubelet to ask, which is under way from now on.
    pub fn next(&mut self, now: Instant) -> Option<Asking> {
        while self.under_way < PARALLEL {
            let name = self.line.pop_front()?;
            let Some(node) = self.nodes.get_mut(&name) else {
                continue;
            };
            if node.state != State::Waiting {
                continue;
            }
            if node.users.is_empty() {
                node.state = State::Resting;
                continue;
            }
            node.state = State::UnderWay;
            node.asked = Some(now);
            self.under_way += 1;
            return Some(Asking {
                address: node.address,
                node: name,
                asked: now,
            });
        }
        None
    }

    /// A kubelet was asked; `said` is what it said or a sentence that says why it did not. The objects of which something else
    /// is to be said than before.
    pub fn answered(
        &mut self,
        asking: &Asking,
        said: Result<Told, String>,
        now: Instant,
    ) -> Vec<ObjectId> {
        self.under_way = self.under_way.saturating_sub(1);
        let Some(node) = self.nodes.get_mut(&asking.node) else {
            return Vec::new();
        };
        node.state = State::Resting;
        let users: Vec<ObjectId> = node.users.iter().cloned().collect();
        let told = match said {
            Ok(told) => told,
            Err(why) => {
                node.trouble = Some(why);
                // It may have been made anew, with another address.
                node.address = None;
                return self.tell(users, now);
            }
        };
        node.trouble = None;
        node.address = Some(told.address);
        let longest_step = self.longest_step();
        for object in &users {
            if let Some(entry) = self.objects.get_mut(object) {
                entry.take_in(asking, &told.summary, longest_step);
            }
        }
        self.tell(users, now)
    }

    /// Counters further apart than this say too little.
    fn longest_step(&self) -> Duration {
        self.interval * 2 + KUBELETS_STEP
    }

    fn enter(&mut self, object: ObjectId, wanted: Wanted, old: Option<Entry>, now: Instant) {
        let mut entry = Entry {
            pods: BTreeMap::new(),
            busy: None,
            told: Verdict::new(Triggers::Absent, None),
            wanted,
        };
        if let Wanted::Traffic(traffic) = &entry.wanted {
            let mut known = old
                .filter(|old| old.has_threshold(traffic.threshold))
                .map(|old| (old.pods, old.busy));
            entry.busy = known.as_ref().and_then(|(_, busy)| *busy);
            for (uid, place) in &traffic.pods {
                let pod = known.as_mut().and_then(|(pods, _)| pods.remove(uid));
                let pod = pod.filter(|pod| pod.place == *place);
                let pod = pod.unwrap_or_else(|| Pod {
                    place: place.clone(),
                    wanted_since: now,
                    quiet: None,
                });
                entry.pods.insert(Arc::clone(uid), pod);
            }
        }
        for node in entry.nodes() {
            let known = self.nodes.entry(Arc::clone(node)).or_default();
            known.users.insert(object.clone());
            // Who was asked in this round is asked again in the next.
            let is_new = known
                .asked
                .is_none_or(|asked| now.duration_since(asked) >= self.interval);
            if is_new && self.next_round.is_some() && known.state == State::Resting {
                known.state = State::Waiting;
                self.line.push_back(Arc::clone(node));
            }
        }
        entry.told = self.judge(&entry, now);
        self.objects.insert(object, entry);
    }

    /// Its nodes are not asked for this object any more. They are forgotten at the next round: until then it is known that they
    /// were asked in this one.
    fn release(&mut self, object: &ObjectId, old: Option<&Entry>) {
        for node in old.into_iter().flat_map(Entry::nodes) {
            if let Some(node) = self.nodes.get_mut(node) {
                node.users.remove(object);
            }
        }
    }

    /// Those of these of which something else is to be said than before, which counts as told from now on.
    fn tell(&mut self, objects: Vec<ObjectId>, now: Instant) -> Vec<ObjectId> {
        let mut changed = Vec::new();
        for object in objects {
            let Some(entry) = self.objects.get(&object) else {
                continue;
            };
            let verdict = self.judge(entry, now);
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
        let Wanted::Traffic(traffic) = &entry.wanted else {
            return Verdict::new(Triggers::Unknown, None);
        };
        let stranger = traffic.stranger.map(|address| {
            Opinion::Failed(format!(
                "the Service leads to {address}, of which no EndpointSlice says which pod it is and on which node, so nobody can be asked about its traffic"
            ))
        });
        // Pods are in the order of their UIDs: of several with the same to say it is always the same one that says it.
        let of_pods = entry
            .pods
            .values()
            .map(|pod| self.opinion(traffic, pod, now));
        let mut worst: Option<Opinion> = None;
        for opinion in of_pods.chain(stranger) {
            let is_worse = worst
                .as_ref()
                .is_none_or(|worst| rank(worst) < rank(&opinion));
            if is_worse {
                worst = Some(opinion);
            }
        }
        let rests = entry
            .busy
            .is_some_and(|busy| now.duration_since(busy) < traffic.cooldown);
        match worst {
            Some(Opinion::Busy(why)) => Verdict::new(Triggers::Busy, Some(why)),
            Some(Opinion::Failed(why)) => Verdict::new(Triggers::Unknown, Some(why)),
            Some(Opinion::Waiting) => Verdict::unheard(),
            Some(Opinion::Idle) if !rests => Verdict::new(Triggers::Idle, None),
            // A target at zero has no pods: nobody is busy, so it is not woken, and nobody is known to be idle.
            Some(Opinion::Idle | Opinion::Resting) | None => Verdict::new(Triggers::Unknown, None),
        }
    }

    fn opinion(&self, traffic: &Traffic, pod: &Pod, now: Instant) -> Opinion {
        let Place {
            name,
            node,
            address,
        } = &pod.place;
        let found = self.nodes.get(node);
        if found
            .and_then(|found| found.address)
            .map(|found| found.ip())
            == Some(*address)
        {
            return Opinion::Failed(format!(
                "the pod {name} is on the network of its node {node}, whose traffic is not the pod's alone; use another type of trigger"
            ));
        }
        if let Some(why) = found.and_then(|found| found.trouble.as_ref()) {
            return Opinion::Failed(format!("the kubelet of the node {node}: {why}"));
        }
        if found.is_none_or(|found| found.address.is_none()) {
            return Opinion::Waiting;
        }
        let Some(known) = &pod.quiet else {
            let waits = now.duration_since(pod.wanted_since);
            return if waits <= self.longest_step() {
                Opinion::Resting
            } else {
                Opinion::Failed(format!(
                    "the kubelet of the node {node} does not tell the traffic of the pod {name}; does its container runtime count it?"
                ))
            };
        };
        if now.duration_since(known.heard) > self.longest_step() {
            return Opinion::Failed(format!(
                "the kubelet of the node {node} has nothing new to tell of the traffic of the pod {name}"
            ));
        }
        if known.quiet.is_busy() {
            return Opinion::Busy(format!(
                "the traffic of the pod {name} is not below {} bytes per second",
                traffic.threshold
            ));
        }
        // A pod that is newer than the cooldown is not idle yet, although the wake that made it holds the target up for as long
        // anyway: it may as well have taken the place of one that was busy.
        if known.quiet.lasted() < traffic.cooldown {
            return Opinion::Resting;
        }
        Opinion::Idle
    }
}

impl Entry {
    fn nodes(&self) -> impl Iterator<Item = &Arc<str>> {
        self.pods.values().map(|pod| &pod.place.node)
    }

    fn has_threshold(&self, threshold: f64) -> bool {
        match &self.wanted {
            Wanted::Traffic(traffic) => traffic.threshold.total_cmp(&threshold).is_eq(),
            Wanted::Nothing | Wanted::Unusable(_) => false,
        }
    }

    fn take_in(&mut self, asking: &Asking, summary: &Summary, longest_step: Duration) {
        let Wanted::Traffic(traffic) = &self.wanted else {
            return;
        };
        let rule = Rule {
            threshold: traffic.threshold,
            longest_step,
        };
        let on_it = self
            .pods
            .iter_mut()
            .filter(|(_, pod)| pod.place.node == asking.node);
        for (uid, pod) in on_it {
            let Some(found) = summary.get(&**uid) else {
                continue;
            };
            let heard = asking.asked;
            let is_busy = if let Some(known) = &mut pod.quiet {
                match known.quiet.hear(found.counters, rule) {
                    Heard::Nothing => continue,
                    news => {
                        known.heard = heard;
                        news == Heard::Busy
                    }
                }
            } else {
                let quiet = Quiet::begin(found.counters, found.started, rule);
                pod.quiet = Some(Known { quiet, heard });
                quiet.is_busy()
            };
            if is_busy {
                self.busy = Some(heard);
            }
        }
    }
}

fn rank(opinion: &Opinion) -> u8 {
    match opinion {
        Opinion::Idle => 0,
        Opinion::Resting => 1,
        Opinion::Waiting => 2,
        Opinion::Failed(_) => 3,
        Opinion::Busy(_) => 4,
    }
}
