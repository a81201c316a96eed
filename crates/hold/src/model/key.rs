//! A state without its history: ages up to the longest span that matters, and versions only by
//! whether they are still the present ones. States with one key behave alike.

use std::{hash::Hash, net::IpAddr};

use jiff::Timestamp;

use super::{
    super::{Step, facts::Version, memory::Watched},
    world::{Pod, World},
};

/// The longest span of the model, from which on all ages are alike.
const OLD: i64 = 2;
const NEVER: u8 = u8::MAX;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(Vec<u8>);

impl World {
    pub(super) fn key(&self) -> Key {
        let mut key = Vec::with_capacity(64);
        self.object_key(&mut key);
        self.around_key(&mut key);
        self.memory_key(&mut key);
        self.late_key(&mut key);
        Key(key)
    }

    fn object_key(&self, key: &mut Vec<u8>) {
        let since = self.phase.map(|(_, since)| since);
        // A mark is only ever compared with the present phase's.
        let mark = |mark: Option<i64>| u8::from(mark.is_some() && mark == since);
        key.push(self.phase.map_or(NEVER, |(phase, _)| phase as u8));
        key.extend([
            self.age(since),
            self.age(self.last_scaled_up),
            self.age(self.cut_over_failed),
            self.deletion.map_or(NEVER, |how| how as u8),
            u8::from(self.gone),
            self.triggers as u8,
            u8::from(self.wake_wanted),
            self.disturbances,
            u8::from(self.excused),
            u8::try_from(self.replicas).unwrap(),
        ]);
        key.push(mark(self.target_fenced_for));
        if let Some(keda) = self.keda {
            key.push(u8::from(keda.paused));
            key.push(mark(keda.fenced_for));
        }
        key.push(self.slice.map_or(NEVER, |slice| slice.resolvers));
        key.push(mark(self.slice.and_then(|slice| slice.mark)));
    }

    fn around_key(&self, key: &mut Vec<u8>) {
        key.extend(self.pods.iter().map(|pod| match pod {
            Pod::Gone => 0,
            Pod::Starting => 1,
            Pod::Ready => 2,
            Pod::Ending(left) => 2 + left,
        }));
        for resolver in &self.resolvers {
            key.push(u8::from(resolver.ready) << 1 | u8::from(resolver.knows));
        }
        for node in &self.nodes {
            let route = node.route.pods << 2 | node.route.resolvers;
            key.extend([route, node.lags[0], node.lags[1], u8::from(node.has_led)]);
        }
    }

    fn memory_key(&self, key: &mut Vec<u8>) {
        let seen = |at: &Timestamp| self.age(Some(at.as_second()));
        for (address, (version, at)) in &self.memory.endpoints {
            let same = same(Some(version), self.listed.1);
            key.extend([last_byte(*address), u8::from(same), seen(at)]);
        }
        key.push(NEVER);
        // With session affinity the overlap is twice as long.
        let oldest = OLD * (1 + i64::from(self.start.cannot_be_probed));
        for (address, at) in &self.memory.in_slice {
            let age = (self.now - at.as_second()).min(oldest);
            key.extend([last_byte(*address), u8::try_from(age).unwrap()]);
        }
        key.push(NEVER);
        key.extend([
            self.memory.starting.as_ref().map_or(NEVER, seen),
            self.memory.no_resolver.as_ref().map_or(NEVER, seen),
            self.memory.no_slice.as_ref().map_or(NEVER, seen),
        ]);
        let slice = self.slice.map(|slice| slice.version.to_string());
        let remembered = self.memory.slice.as_ref().map(|version| &version.0);
        key.push(u8::from(remembered == slice.as_ref()));
        if let Some(drain) = &self.memory.drain {
            // Versions are read anew before they are sent; what was asked is compared.
            let fence = |watched: &Watched| watched.asked.fenced_for.map(Timestamp::as_second);
            let same_target = drain.target.as_ref().is_some_and(|target| {
                target.asked.generation == self.target_generation
                    && fence(target) == self.target_fenced_for
            });
            let same_autoscaler = drain.autoscaler.as_ref().is_some_and(|autoscaler| {
                self.keda
                    .is_some_and(|keda| fence(autoscaler) == keda.fenced_for)
            });
            key.extend([
                u8::from(Some(drain.phase_since.as_second()) == self.phase.map(|(_, since)| since)),
                seen(&drain.watched_since),
                u8::from(same_target),
                u8::from(same_autoscaler),
                u8::from(drain.autoscaler.is_some()),
            ]);
            if let Some((resolvers, at)) = &drain.seen {
                key.extend(resolvers.iter().map(|resolver| last_byte(*resolver)));
                key.push(seen(at));
            }
        }
    }

    fn late_key(&self, key: &mut Vec<u8>) {
        let Some(late) = &self.late else { return };
        let since = self.phase.map(|(_, since)| since);
        let mark = |mark: Timestamp| u8::from(Some(mark.as_second()) == since);
        key.push(u8::from(late.decided_on == self.object_version));
        match &late.step {
            Step::Rest | Step::ProbeCutOver => {}
            Step::StorePhase(phase) => key.extend([1, *phase as u8]),
            Step::GiveUpCutOver => key.push(2),
            Step::RecordActivity => key.push(3),
            Step::ApplySlice {
                version,
                resolvers,
                mark: left,
            } => {
                let lands = match (version, self.slice) {
                    (Some(version), Some(slice)) => same(Some(version), slice.version),
                    (None, None) => true,
                    _ => false,
                };
                key.extend([4, u8::from(lands), u8::from(version.is_some())]);
                key.extend(resolvers.iter().map(|address| last_byte(*address)));
                key.push(left.map_or(NEVER, mark));
            }
            Step::PauseAutoscaler { version } => {
                let same = self
                    .keda
                    .is_some_and(|keda| same(Some(version), keda.version));
                key.extend([5, u8::from(same)]);
            }
            Step::UnpauseAutoscaler => key.push(6),
            Step::ScaleToZero { version } => {
                key.extend([7, u8::from(same(Some(version), self.target_version))]);
            }
            Step::ScaleUp { .. } => key.push(8),
            Step::FenceTarget { drain } => key.extend([9, mark(*drain)]),
            Step::FenceAutoscaler { drain } => key.extend([10, mark(*drain)]),
            Step::RemoveSlice { version } => {
                let same = self
                    .slice
                    .is_some_and(|slice| same(Some(version), slice.version));
                key.extend([11, u8::from(same)]);
            }
            Step::RemoveFinalizer => key.push(12),
        }
    }

    fn age(&self, moment: Option<i64>) -> u8 {
        moment.map_or(NEVER, |at| u8::try_from((self.now - at).min(OLD)).unwrap())
    }
}

fn same(version: Option<&Version>, present: u32) -> bool {
    version.is_some_and(|version| version.0 == present.to_string())
}

fn last_byte(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(address) => address.octets()[3],
        IpAddr::V6(address) => address.octets()[15],
    }
}
