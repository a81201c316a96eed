//! What can happen next. Disturbances come from outside and are counted; all else is the world's own
//! course, in any order.

use super::{
    super::{
        Memory,
        facts::{Deletion, Triggers},
    },
    judge::Fault,
    mutant::Mutant,
    world::{PARTS, Part, Pod, World},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Tick,
    NodeFollows(usize, Part),
    Operator,
    PodStarts(usize),
    ResolverLearns(usize),
    KedaKeepsZero,
    LateWriteLands,
    Disturb(Disturbance),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disturbance {
    ScaleByHand(i32),
    PodCrashes(usize),
    SliceDeleted,
    ResolverDies(usize),
    ResolverReturns(usize),
    TriggersSay(Triggers),
    Wake,
    /// A resolver to which no operator answers takes our pause away, and then does no more.
    ResolverUnpauses,
    /// It does all that it may: it scales up as well.
    ResolverWakes,
    StatusesWritten,
    Delete(Deletion),
    OperatorDies,
    OperatorDiesWriting,
}

impl World {
    /// All that can happen now.
    pub(super) fn acts(&self, mutant: Mutant) -> Vec<Act> {
        let mut acts = Vec::new();
        if self.gone {
            return acts;
        }
        acts.push(Act::Operator);
        if self.may_tick() && !(self.start.punctual && self.operator_is_due(mutant)) {
            acts.push(Act::Tick);
        }
        for slot in 0..2 {
            let behind = PARTS.into_iter().filter(|part| self.is_behind(slot, *part));
            acts.extend(behind.map(|part| Act::NodeFollows(slot, part)));
            if self.pods[slot] == Pod::Starting {
                acts.push(Act::PodStarts(slot));
            }
            if self.resolvers[slot].ready && !self.resolvers[slot].knows {
                acts.push(Act::ResolverLearns(slot));
            }
        }
        if self.keda_keeps_zero() {
            acts.push(Act::KedaKeepsZero);
        }
        if self.late.is_some() {
            acts.push(Act::LateWriteLands);
        }
        if self.disturbances > 0 {
            self.disturbing(&mut acts);
        }
        acts
    }

    /// Looking again would change something.
    fn operator_is_due(&self, mutant: Mutant) -> bool {
        let mut after = self.clone();
        let wrote = after.operate(mutant);
        wrote != Ok(false) || after.memory != self.memory
    }

    pub(super) fn keda_keeps_zero(&self) -> bool {
        self.replicas > 0 && self.keda.is_some_and(|keda| keda.paused)
    }

    fn disturbing(&self, acts: &mut Vec<Act>) {
        let mut all = vec![Disturbance::OperatorDies, Disturbance::StatusesWritten];
        if self.late.is_none() {
            all.push(Disturbance::OperatorDiesWriting);
        }
        for slot in 0..2 {
            if self.pods[slot] == Pod::Ready {
                all.push(Disturbance::PodCrashes(slot));
            }
            all.push(if self.resolvers[slot].ready {
                Disturbance::ResolverDies(slot)
            } else {
                Disturbance::ResolverReturns(slot)
            });
        }
        let scales = [0, 1].into_iter().filter(|n| *n != self.replicas);
        all.extend(scales.map(Disturbance::ScaleByHand));
        if self.slice.is_some() {
            all.push(Disturbance::SliceDeleted);
        }
        let says = [Triggers::Idle, Triggers::Busy, Triggers::Unknown];
        let says = says.into_iter().filter(|says| *says != self.triggers);
        all.extend(says.map(Disturbance::TriggersSay));
        if !self.wake_wanted {
            all.push(Disturbance::Wake);
        }
        // It looks at the mode before, and at what there is when it writes.
        if self.is_proxied() {
            let is_paused = self.keda.is_some_and(|keda| keda.paused);
            if is_paused {
                all.push(Disturbance::ResolverUnpauses);
            }
            if is_paused || self.replicas == 0 {
                all.push(Disturbance::ResolverWakes);
            }
        }
        if self.deletion.is_none() {
            all.push(Disturbance::Delete(Deletion::WakeFirst));
            all.push(Disturbance::Delete(Deletion::Leave));
        }
        acts.extend(all.into_iter().map(Act::Disturb));
    }

    /// Lets it happen, and judges what came of it. Says whether the operator wrote.
    pub(super) fn act(&mut self, act: Act, mutant: Mutant) -> Result<bool, Fault> {
        let mut wrote = false;
        match act {
            Act::Tick => self.tick(),
            Act::NodeFollows(node, part) => self.follow(node, part),
            Act::Operator => wrote = self.operate(mutant)?,
            Act::PodStarts(slot) => self.pods[slot] = Pod::Ready,
            Act::ResolverLearns(slot) => self.resolvers[slot].knows = true,
            Act::KedaKeepsZero => self.scale(0),
            Act::LateWriteLands => self.land(mutant),
            Act::Disturb(disturbance) => {
                self.disturbances -= u8::from(self.disturbances < u8::MAX);
                self.disturb(disturbance, mutant);
            }
        }
        self.keep_pods();
        self.list_pods();
        self.judge()?;
        Ok(wrote)
    }

    fn disturb(&mut self, disturbance: Disturbance, mutant: Mutant) {
        match disturbance {
            Disturbance::ScaleByHand(replicas) => {
                self.scale(replicas);
                self.keep_pods();
                self.excuse_if_broken();
            }
            Disturbance::PodCrashes(slot) => {
                self.pods[slot] = Pod::Starting;
                self.excuse_if_broken();
            }
            Disturbance::SliceDeleted => {
                self.slice = None;
                self.excuse_if_broken();
            }
            Disturbance::ResolverDies(slot) => {
                self.resolvers[slot].ready = false;
                self.resolvers[slot].knows = false;
                self.excuse_if_broken();
            }
            Disturbance::ResolverReturns(slot) => self.resolvers[slot].ready = true,
            Disturbance::TriggersSay(triggers) => self.triggers = triggers,
            Disturbance::Wake => self.wake_wanted = true,
            Disturbance::ResolverUnpauses => self.unpause(),
            Disturbance::ResolverWakes => {
                self.unpause();
                self.scale(self.replicas.max(1));
            }
            Disturbance::StatusesWritten => self.write_statuses(),
            Disturbance::Delete(how) => {
                self.deletion = Some(how);
                self.object_version = self.version();
            }
            Disturbance::OperatorDies => self.memory = Memory::default(),
            Disturbance::OperatorDiesWriting => self.die_writing(mutant),
        }
    }
}
