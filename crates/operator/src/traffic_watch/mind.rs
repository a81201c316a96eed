//! What is decided about all watches and all nodes, from what is known: the one place where the parts of `weir_place` come
//! together. Values in, values out; what it remembers only makes a new process wait once more.
//!
//! - `request`: what a watch asks for;
//! - `measuring`: how full nodes are to it;
//! - `judging`: what follows for it;
//! - `claims`: whose keys on nodes are;
//! - `decision`: what comes out.

mod claims;
mod decision;
mod judging;
mod measuring;
mod request;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashSet},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use weir_api::{
    finding::Finding,
    place::{
        Action,
        names::{BANDWIDTH_PERCENT_ANNOTATION, unfit_label_key},
    },
};
use weir_place::{
    annotation,
    exposition::Scrape,
    history::{Answer, History},
    interfaces::Interfaces,
    judge::{Judge, Outcome},
    moment::Moment,
    node::NodeFacts,
    plan::{Claim, Options},
    settings::Settings,
};
use weir_role::cluster::ObjectId;

pub use self::{
    claims::has_finalizer,
    decision::{Decision, Judged, Leaving, Turned, View},
};
use self::{
    claims::{created, in_use, name_of, oldest_first, protect_unread},
    judging::{judge, wishes_of},
    measuring::{Measurements, measure_alike, measure_all, note_loads},
};
use super::{
    deployments::Keeping,
    left_over::LeftOver,
    moves::Moving,
    schedule::{Counted, SharedSchedule, Wanted},
    world::World,
};

/// Measurements that are kept while one look lasts, for watches that measure alike: a large cluster's are some megabytes.
const ALIKE: usize = 4;

/// What is remembered.
#[derive(Debug, Default)]
pub struct Mind {
    /// Who is asked when; whoever asks has it too.
    pub schedule: SharedSchedule,
    /// What is left of the original operator.
    pub left_over: LeftOver,
    /// When this process last wrote a node's annotation.
    pub annotated: BTreeMap<String, Moment>,
    history: History,
    thoughts: BTreeMap<ObjectId, Thought>,
    counted: Counted,
    longest: Duration,
}

/// What is remembered of one watch.
#[derive(Debug, Default)]
pub struct Thought {
    /// When its status was last written.
    pub written: Option<Moment>,
    /// What became of its Deployment.
    pub keeping: Keeping,
    /// When its pods were moved.
    pub moving: Moving,
    uid: Option<String>,
    generation: Option<i64>,
    findings: Vec<Finding>,
    settings: Option<Arc<Settings>>,
    judge: Judge,
    outcome: Outcome,
}

/// What a scrape came to.
#[derive(Debug)]
pub struct Scraped<'a> {
    /// The node.
    pub node: &'a str,
    /// Which of that name.
    pub uid: &'a str,
    /// When the answer came.
    pub at: Moment,
    /// The same by the wall clock, in seconds since 1970.
    pub time: i64,
    /// The answer.
    pub scrape: &'a Scrape,
}

impl Mind {
    /// Takes an answer in.
    pub fn hear(&mut self, scraped: &Scraped<'_>) {
        let answer = Answer {
            node: scraped.node,
            uid: scraped.uid,
            at: scraped.at,
            time: scraped.time,
            scrape: scraped.scrape,
        };
        let counted = &self.counted;
        self.history.observe(&answer, self.longest, |name| {
            (counted.iter()).any(|interfaces| interfaces.does_count(name))
        });
    }

    /// What is remembered of a watch.
    pub fn thought(&mut self, id: &ObjectId) -> Option<&mut Thought> {
        self.thoughts.get_mut(id)
    }

    /// Decides about everything. Call it only when all kinds have been listed.
    pub fn decide(&mut self, world: &World, options: Options, now: Moment) -> Decision {
        self.keep_to(world, options);
        let nodes: Vec<&NodeFacts> = world.nodes().map(|node| &node.facts).collect();
        let names: HashSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        self.history.retain(|name| names.contains(name));
        self.annotated
            .retain(|name, _| names.contains(name.as_str()));
        self.follow(world, &nodes, now);

        let mut decision = Decision::default();
        let mut loads: BTreeMap<String, f64> = BTreeMap::new();
        let mut alike: Vec<(Arc<Settings>, Rc<Measurements>)> = Vec::new();
        for (id, object) in oldest_first(world) {
            let in_use = in_use(world, id, object);
            let key = unfit_label_key(object.label_prefix());
            if object.metadata.deletion_timestamp.is_some() {
                if has_finalizer(object) {
                    decision.leaving.push(Leaving {
                        id: id.clone(),
                        object: Arc::clone(object),
                        keys: in_use.into_iter().chain([key]).collect(),
                    });
                }
                continue;
            }
            let Some(thought) = self.thoughts.get_mut(id) else {
                continue;
            };
            let mut wishes = BTreeMap::new();
            let mut judged = None;
            if let Some(settings) = thought.settings.clone().filter(|_| has_finalizer(object)) {
                let known = alike
                    .iter()
                    .find(|(other, _)| measure_alike(other, &settings));
                let measurements = if let Some((_, known)) = known {
                    Rc::clone(known)
                } else {
                    let found = measure_all(&nodes, &self.history, &settings, now);
                    for (name, measurement) in &found {
                        note_loads(name, measurement, &mut decision.utilization, &mut loads);
                    }
                    let found = Rc::new(found);
                    alike.truncate(ALIKE - 1);
                    alike.insert(0, (Arc::clone(&settings), Rc::clone(&found)));
                    found
                };
                let found = judge(
                    thought,
                    object,
                    &settings,
                    &nodes,
                    &measurements,
                    (&self.history, &self.schedule),
                    now,
                );
                wishes = wishes_of(&thought.outcome, &nodes);
                judged = Some(found);
            }
            decision.claims.push(Claim {
                watch: name_of(id),
                created: created(object),
                key,
                in_use,
                wishes,
                taint: object.spec.action == Action::Taint,
            });
            decision.views.push(View {
                id: id.clone(),
                object: Arc::clone(object),
                findings: thought.findings.clone(),
                judged,
            });
        }
        protect_unread(world, &nodes, &mut decision.claims);
        if options.annotate {
            decision.annotations = self.annotations(&nodes, &loads, now);
        }
        decision
    }

    /// Reads what watches ask for, once for each of their generations.
    fn keep_to(&mut self, world: &World, options: Options) {
        let mut before = std::mem::take(&mut self.thoughts);
        for (id, object) in world.watches() {
            let known = before.remove(id);
            let known = known.filter(|thought| thought.uid == object.metadata.uid);
            let mut thought = known.unwrap_or_default();
            if thought.uid.is_none() || thought.generation != object.metadata.generation {
                thought.uid.clone_from(&object.metadata.uid);
                thought.generation = object.metadata.generation;
                (thought.findings, thought.settings) = request::read(object, options);
            }
            self.thoughts.insert(id.clone(), thought);
        }
        let mut counted: Vec<Interfaces> = Vec::new();
        self.longest = Duration::ZERO;
        for settings in self.thoughts.values().filter_map(|it| it.settings.as_ref()) {
            self.longest = self.longest.max(settings.window);
            if !counted.contains(&settings.interfaces) {
                counted.push(settings.interfaces.clone());
            }
        }
        self.counted = counted.into();
    }

    /// Whoever some watch judges is asked, as often as the most eager of them wants.
    fn follow(&mut self, world: &World, nodes: &[&NodeFacts], now: Moment) {
        let mut wanted: BTreeMap<String, Wanted> = BTreeMap::new();
        for (id, object) in world.watches() {
            let is_leaving = object.metadata.deletion_timestamp.is_some();
            let thought = self.thoughts.get(id).filter(|_| !is_leaving);
            let Some(settings) = thought.and_then(|thought| thought.settings.as_ref()) else {
                continue;
            };
            for node in nodes.iter().filter(|it| it.is_judged(&settings.judged)) {
                wanted
                    .entry(node.name.clone())
                    .and_modify(|it| it.interval = it.interval.min(settings.interval))
                    .or_insert_with(|| Wanted {
                        uid: node.uid.clone(),
                        interval: settings.interval,
                        address: world.exporter_of(&node.name),
                    });
            }
        }
        let counted = Arc::clone(&self.counted);
        self.schedule.follow(wanted, counted, now);
    }

    fn annotations(
        &self,
        nodes: &[&NodeFacts],
        loads: &BTreeMap<String, f64>,
        now: Moment,
    ) -> BTreeMap<String, String> {
        let value = |node: &&NodeFacts| {
            let there = node.annotations.get(BANDWIDTH_PERCENT_ANNOTATION);
            let written = self.annotated.get(&node.name).copied();
            let load = loads.get(&node.name).copied();
            let value = annotation::value(load, there.map(String::as_str), written, now);
            value.map(|value| (node.name.clone(), value))
        };
        nodes.iter().filter_map(value).collect()
    }
}
