//! What is decided about all watches and all nodes, from what is known: the one place where the parts of `weir_place` come
//! together. Values in, values out; what it remembers only makes a new process wait once more.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use kube::ResourceExt;
use weir_api::{
    finding::{Consequence, Finding},
    place::{
        Action, RebalanceMode, TrafficWatch,
        names::{BANDWIDTH_PERCENT_ANNOTATION, FINALIZER, label_of_unfit_key, unfit_label_key},
    },
};
use weir_place::{
    annotation,
    condition::{self, Said},
    deployment::{self, Ownership},
    exposition::Scrape,
    history::{Answer, History},
    interfaces::Interfaces,
    judge::{Judge, Outcome, Seen, State, Why},
    measure::{Measurement, measure, not_counted},
    moment::Moment,
    node::NodeFacts,
    plan::{Claim, Options, WatchName, Wish},
    ready::{self, Waiting},
    settings::Settings,
    status,
};
use weir_role::cluster::ObjectId;

use super::{
    deployments::Keeping,
    left_over::LeftOver,
    moves::Moving,
    schedule::{SharedSchedule, Wanted},
    world::World,
};

/// Measurements that are kept while one look lasts, for watches that measure alike: a large cluster's are some megabytes.
const ALIKE: usize = 4;

/// What was measured, by node.
type Measurements = BTreeMap<String, Measurement>;

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
    /// What some watch counts; mostly all of them count the same.
    counted: Vec<Interfaces>,
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

/// What is to be.
#[derive(Debug, Default)]
pub struct Decision {
    /// Watches to look after.
    pub views: Vec<View>,
    /// Watches that are being deleted and wait for us.
    pub leaving: Vec<Leaving>,
    /// What they claim on nodes.
    pub claims: Vec<Claim>,
    /// What the annotation of each node should say.
    pub annotations: BTreeMap<String, String>,
    /// Load by node and interface, as a share of one.
    pub utilization: BTreeMap<(String, String), f64>,
}

/// One watch as it is.
#[derive(Debug)]
pub struct View {
    /// Which.
    pub id: ObjectId,
    /// As it was read.
    pub object: Arc<TrafficWatch>,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
    /// What was decided; none if it was refused, or has no finalizer yet.
    pub judged: Option<Judged>,
}

/// What was decided for one watch.
#[derive(Debug)]
pub struct Judged {
    /// What it asks for.
    pub settings: Arc<Settings>,
    /// Whether it may begin.
    pub ready: bool,
    /// What its status says of nodes.
    pub nodes: status::Nodes,
    /// Whether all nodes give figures.
    pub measured: Said,
    /// Whether enough of them are fit.
    pub enough_fit: Said,
    /// Whether it has begun.
    pub begun: Said,
    /// About every node, for those whose pods are to be moved.
    pub outcome: Option<Outcome>,
    /// Nodes that became fit or unfit.
    pub turned: Vec<Turned>,
}

/// A node that became fit or unfit.
#[derive(Clone, Debug, PartialEq)]
pub struct Turned {
    /// Its name.
    pub node: String,
    /// What it is now.
    pub state: State,
    /// Why.
    pub why: Why,
    /// Its load in percent.
    pub load: Option<f64>,
}

/// A watch that is being deleted.
#[derive(Debug)]
pub struct Leaving {
    /// Which.
    pub id: ObjectId,
    /// As it was read.
    pub object: Arc<TrafficWatch>,
    /// Keys that must be off all nodes before it may go.
    pub keys: BTreeSet<String>,
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
                (thought.findings, thought.settings) = read(object, options);
            }
            self.thoughts.insert(id.clone(), thought);
        }
        self.counted.clear();
        self.longest = Duration::ZERO;
        for settings in self.thoughts.values().filter_map(|it| it.settings.as_ref()) {
            self.longest = self.longest.max(settings.window);
            if !self.counted.contains(&settings.interfaces) {
                self.counted.push(settings.interfaces.clone());
            }
        }
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
        self.schedule.follow(wanted, now);
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

/// Measures every node that a watch judges.
fn measure_all(
    nodes: &[&NodeFacts],
    history: &History,
    settings: &Settings,
    now: Moment,
) -> Measurements {
    let judged = nodes.iter().filter(|it| it.is_judged(&settings.judged));
    let measured = judged.map(|node| {
        let history = history.of(&node.name, &node.uid);
        (node.name.clone(), measure(node, history, settings, now))
    });
    measured.collect()
}

/// Whether two watches measure the same on the same nodes, as most do, whatever they make of it.
fn measure_alike(one: &Settings, other: &Settings) -> bool {
    one.judged == other.judged
        && one.direction == other.direction
        && one.interfaces == other.interfaces
        && one.window == other.window
        && one.max_sample_age == other.max_sample_age
        && one.capacities == other.capacities
}

/// What a watch asks for, or what is wrong with it.
fn read(object: &TrafficWatch, options: Options) -> (Vec<Finding>, Option<Arc<Settings>>) {
    let mut findings = object.validate();
    if object.spec.action == Action::Taint && !options.allow_taints {
        findings.push(Finding {
            field: "spec.action".to_owned(),
            reason: "TaintsNotAllowed",
            message: "taints are not allowed by this operator: start it with --allow-taints, or use label".to_owned(),
            consequence: Consequence::Refused,
        });
    }
    let is_refused = |finding: &Finding| finding.consequence == Consequence::Refused;
    if findings.iter().any(is_refused) {
        return (findings, None);
    }
    match Settings::of(object) {
        Ok(settings) => (findings, Some(Arc::new(settings))),
        Err(error) => {
            findings.push(Finding {
                field: "spec".to_owned(),
                reason: "Invalid",
                message: error.to_string(),
                consequence: Consequence::Refused,
            });
            (findings, None)
        }
    }
}

fn judge(
    thought: &mut Thought,
    object: &TrafficWatch,
    settings: &Arc<Settings>,
    nodes: &[&NodeFacts],
    measurements: &Measurements,
    (history, schedule): (&History, &SharedSchedule),
    now: Moment,
) -> Judged {
    let measured = || {
        nodes.iter().filter_map(|&node| {
            let measurement = measurements.get(&node.name)?;
            Some((node, measurement))
        })
    };
    let waiting = measured().map(|(node, measurement)| Waiting {
        node,
        figure: &measurement.figure,
        asked: schedule.asked(&node.name),
    });
    let there = object.status.clone().unwrap_or_default();
    // It never goes back, so nobody need be asked again.
    let waited_for = if there.ready {
        None
    } else {
        ready::waited_for(waiting, settings, now)
    };
    let ready = there.ready || waited_for.as_ref().is_some_and(Vec::is_empty);
    let seen = measured().map(|(node, measurement)| Seen {
        node,
        figure: measurement.figure.clone(),
    });
    let outcome = thought.judge.step(seen, settings, ready, now);
    let turned = turned(&thought.outcome, &outcome);
    thought.outcome = outcome;
    let outcome = &thought.outcome;
    Judged {
        settings: Arc::clone(settings),
        ready,
        nodes: status::nodes(outcome, measurements, &there.nodes, |name| {
            let uid = nodes.binary_search_by(|node| node.name.as_str().cmp(name));
            let uid = uid.ok().and_then(|at| nodes.get(at)).map(|node| &node.uid);
            let history = uid.and_then(|uid| history.of(name, uid));
            history.map_or_else(Vec::new, |history| not_counted(history, settings))
        }),
        measured: condition::measured(outcome, measurements),
        enough_fit: condition::enough_fit(outcome, settings),
        begun: condition::ready(ready, waited_for.as_deref()),
        outcome: (settings.rebalance.mode != RebalanceMode::Never).then(|| outcome.clone()),
        turned,
    }
}

/// Nodes whose state changed; what a new node first becomes is no change.
fn turned(before: &Outcome, after: &Outcome) -> Vec<Turned> {
    let turned = after.verdicts.iter().filter_map(|(node, verdict)| {
        let before = before.verdicts.get(node)?;
        let is_change = before.state != verdict.state && before.why != Why::New;
        is_change.then(|| Turned {
            node: node.clone(),
            state: verdict.state,
            why: verdict.why,
            load: verdict.load,
        })
    });
    turned.collect()
}

/// Of several watches the oldest that counts an interface is told, so that a node is not told once for each.
fn note_loads(
    node: &str,
    measurement: &Measurement,
    utilization: &mut BTreeMap<(String, String), f64>,
    loads: &mut BTreeMap<String, f64>,
) {
    for interface in &measurement.interfaces {
        if let Some(percent) = interface.percent {
            let key = (node.to_owned(), interface.name.clone());
            utilization.entry(key).or_insert(percent / 100.0);
        }
    }
    if let Ok(figure) = &measurement.figure {
        loads.entry(node.to_owned()).or_insert(figure.percent);
    }
}

fn wishes_of(outcome: &Outcome, nodes: &[&NodeFacts]) -> BTreeMap<String, Wish> {
    let wish = |node: &&NodeFacts| {
        let verdict = outcome.verdicts.get(&node.name);
        let wish = verdict.map_or(Wish::Nothing, |verdict| Wish::Show(verdict.state));
        (node.name.clone(), wish)
    };
    nodes.iter().map(wish).collect()
}

/// Nobody knows which keys a watch claims that cannot be read; so none that is on a node is taken for an orphan.
fn protect_unread(world: &World, nodes: &[&NodeFacts], claims: &mut Vec<Claim>) {
    let Some(unread) = world.unreadable().next() else {
        return;
    };
    let labels = nodes.iter().flat_map(|node| node.labels.keys());
    let taints = (nodes.iter()).flat_map(|node| node.taints.iter().map(|taint| &taint.key));
    let keys: BTreeSet<&String> = labels
        .chain(taints)
        .filter(|key| label_of_unfit_key(key).is_some())
        .collect();
    let is_claimed =
        |key: &String| (claims.iter()).any(|claim| claim.key == *key || claim.in_use.contains(key));
    let unclaimed: Vec<String> = (keys.into_iter())
        .filter(|key| !is_claimed(key))
        .cloned()
        .collect();
    claims.extend(unclaimed.into_iter().map(|key| Claim {
        watch: name_of(unread),
        created: None,
        key,
        in_use: BTreeSet::new(),
        wishes: BTreeMap::new(),
        taint: false,
    }));
}

/// Keys that the watch's own Deployment looks at as it stands.
fn in_use(world: &World, id: &ObjectId, object: &TrafficWatch) -> BTreeSet<String> {
    let live = world.deployment(id).map(|sight| &sight.object);
    let ours = live.filter(|live| deployment::ownership(live, object) == Ownership::Ours);
    ours.map(|live| deployment::keys_in_use(live, object))
        .unwrap_or_default()
}

fn oldest_first(world: &World) -> Vec<(&ObjectId, &Arc<TrafficWatch>)> {
    let mut watches: Vec<_> = world.watches().collect();
    watches.sort_by_key(|(id, object)| (created(object).unwrap_or(i64::MAX), *id));
    watches
}

fn created(object: &TrafficWatch) -> Option<i64> {
    let time = object.metadata.creation_timestamp.as_ref()?;
    Some(time.0.as_second())
}

/// Whether our finalizer is on it; before that nothing of it may be on nodes.
pub fn has_finalizer(object: &TrafficWatch) -> bool {
    object.finalizers().iter().any(|it| it == FINALIZER)
}

/// As `weir_place` names a watch.
pub fn name_of(id: &ObjectId) -> WatchName {
    WatchName {
        namespace: id.namespace.to_string(),
        name: id.name.to_string(),
    }
}
