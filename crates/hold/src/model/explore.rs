//! Walks through the world: every order of events up to a number of disturbances, or one long way.
//! From every state on the way it must also come to rest, if nothing more happens.

use std::collections::{HashMap, HashSet, VecDeque};

use weir_api::hold::Phase;

use super::{
    super::{Facts, Plan, Step},
    act::Act,
    judge::Fault,
    key::Key,
    look::time,
    mutant::Mutant,
    start::Start,
    world::{PARTS, Pod, World},
};

/// Rounds after which a world that is left alone must be at rest.
const PATIENCE: usize = 60;
/// Writes in one moment after which the operator goes round in circles.
const WRITES_AT_ONCE: usize = 12;

/// How much was seen.
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "printed")]
pub(super) struct Report {
    pub(super) states: usize,
    pub(super) transitions: usize,
    pub(super) settled: usize,
}

/// Every order of events.
pub(super) fn every_order(start: Start, mutant: Mutant) -> Result<Report, Fault> {
    let mut walk = Walk::new(start, mutant);
    let mut seen: HashMap<Key, usize> = HashMap::new();
    // How each state was reached first, to tell the way to a fault.
    let mut ways: Vec<(usize, Act)> = vec![(0, Act::Tick)];
    let first = World::new(start);
    seen.insert(first.key(), 0);
    let mut open = VecDeque::from([(0, first)]);
    let mut transitions = 0;
    while let Some((at, world)) = open.pop_front() {
        let way = |fault: Fault, last: Option<Act>| with_way(fault, &ways, at, last);
        walk.settles(&world).map_err(|fault| way(fault, None))?;
        let mut found = Vec::new();
        for act in world.acts(mutant) {
            let mut next = world.clone();
            next.act(act, mutant)
                .map_err(|fault| way(fault, Some(act)))?;
            transitions += 1;
            found.push((act, next));
        }
        for (act, next) in found {
            let number = ways.len();
            if let std::collections::hash_map::Entry::Vacant(entry) = seen.entry(next.key()) {
                entry.insert(number);
                ways.push((at, act));
                open.push_back((number, next));
            }
        }
    }
    Ok(Report {
        states: seen.len(),
        transitions,
        settled: walk.settling.len(),
    })
}

/// One way, by the numbers given.
pub(super) fn one_walk(start: Start, choices: &[u16]) -> Result<(), Fault> {
    let mut walk = Walk::new(start, Mutant::None);
    let mut world = World::new(start);
    let mut path = Vec::new();
    for choice in choices {
        let acts = world.acts(Mutant::None);
        if acts.is_empty() {
            return Ok(());
        }
        // Deletion ends a walk, so it comes seldom; the operator comes often.
        let calm: Vec<Act> = acts.iter().copied().filter(|act| is_calm(*act)).collect();
        let from = if choice % 4 == 0 { &acts } else { &calm };
        let act = from[usize::from(choice / 4) % from.len()];
        path.push(act);
        let result = world.act(act, Mutant::None).map(drop);
        let result = result.and_then(|()| walk.settles(&world));
        result.map_err(|fault| Fault {
            path: path.clone(),
            ..fault
        })?;
    }
    Ok(())
}

fn is_calm(act: Act) -> bool {
    !matches!(act, Act::Disturb(_))
}

fn with_way(fault: Fault, ways: &[(usize, Act)], mut at: usize, last: Option<Act>) -> Fault {
    let mut path: Vec<Act> = last.into_iter().collect();
    while at != 0 {
        let (before, act) = ways[at];
        path.push(act);
        at = before;
    }
    path.reverse();
    Fault { path, ..fault }
}

/// What is known to come to rest.
struct Walk {
    start: Start,
    mutant: Mutant,
    settling: HashSet<Key>,
}

impl Walk {
    fn new(start: Start, mutant: Mutant) -> Self {
        Self {
            start,
            mutant,
            settling: HashSet::new(),
        }
    }

    /// Left alone, the world comes to rest in Serving or Asleep, mended and without a further write.
    fn settles(&mut self, from: &World) -> Result<(), Fault> {
        // A node that never follows makes the operator try again after each cooldown, for ever.
        if self.start.stuck_node {
            return Ok(());
        }
        let mut world = from.clone();
        world.late = None;
        let mut passed = Vec::new();
        let mut rested = None;
        for _ in 0..PATIENCE {
            let key = world.key();
            if self.settling.contains(&key) {
                self.settling.extend(passed);
                return Ok(());
            }
            let wrote = self.round(&mut world, &mut rested)?;
            let at_rest = !wrote && world.key() == key;
            passed.push(key);
            if world.gone || at_rest {
                at_rest_as_it_should(&world)?;
                self.settling.extend(passed);
                return Ok(());
            }
        }
        Err(Fault::new(format!("never at rest: {world:?}")))
    }

    /// All that is due happens, then a second passes. Says whether the operator wrote.
    fn round(&self, world: &mut World, rested: &mut Option<Rested>) -> Result<bool, Fault> {
        let mut wrote = false;
        for slot in 0..2 {
            if world.resolvers[slot].ready {
                world.resolvers[slot].knows = true;
            }
        }
        if world.keda_keeps_zero() {
            world.act(Act::KedaKeepsZero, self.mutant)?;
        }
        if let Some(rested) = rested.take() {
            rested.was_told_when_to_look(world)?;
        }
        let mut writes = 0;
        while !world.gone && world.act(Act::Operator, self.mutant)? {
            wrote = true;
            writes += 1;
            if writes > WRITES_AT_ONCE {
                let step = world.decide(self.mutant);
                return Err(Fault::new(format!(
                    "goes round in circles: {step:?}, {world:?}"
                )));
            }
        }
        *rested = Some(Rested::now(world));
        for slot in 0..2 {
            for part in PARTS {
                world.act(Act::NodeFollows(slot, part), self.mutant)?;
            }
            if world.pods[slot] == Pod::Starting {
                world.act(Act::PodStarts(slot), self.mutant)?;
            }
        }
        world.act(Act::Tick, self.mutant)?;
        Ok(wrote)
    }
}

/// The operator at the end of a moment: what it saw, and when it would look again by itself.
struct Rested {
    facts: Facts,
    plan: Plan,
}

impl Rested {
    fn now(world: &World) -> Self {
        Self {
            facts: world.facts(false),
            plan: world.clone().plan(Mutant::None),
        }
    }

    /// Where nothing has happened that it could see, a new step must not come as a surprise.
    fn was_told_when_to_look(&self, world: &World) -> Result<(), Fault> {
        let step = world.clone().plan(Mutant::None).step;
        let rested = self.plan.step == Step::Rest && self.facts == world.facts(false);
        let told = self.plan.look_again.is_some_and(|at| at <= time(world.now));
        if rested && step != Step::Rest && !told {
            return Err(Fault::new(format!(
                "{step:?} is due, but nobody would look: {:?}, {world:?}",
                self.plan
            )));
        }
        Ok(())
    }
}

fn at_rest_as_it_should(world: &World) -> Result<(), Fault> {
    if world.gone {
        // A slice that a deposed leader makes now has an owner that is gone, and is collected.
        if world.keda.is_some_and(|keda| keda.paused) {
            return Err(Fault::new("gone, and the autoscaler is still paused"));
        }
        return Ok(());
    }
    let slice = world.slice.is_some();
    let right = match world.phase.map(|(phase, _)| phase) {
        Some(Phase::Serving) => world.replicas > 0 && !slice,
        Some(Phase::Asleep) => world.replicas == 0 && slice,
        _ => false,
    };
    if right && !world.excused {
        return Ok(());
    }
    let mut again = world.clone();
    let step: Step = again.decide(Mutant::None);
    Err(Fault::new(format!(
        "at rest, but not as it should ({step:?}): {world:?}"
    )))
}
