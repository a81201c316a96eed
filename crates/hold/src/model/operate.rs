//! The operator in the world: it looks, decides, and writes one thing; the write meets the guards that
//! the API server gives it.

use jiff::Timestamp;
use weir_api::hold::Phase;

use super::{
    super::{Memory, Plan, Step, next},
    judge::Fault,
    look::{resolver_address, settings, time},
    mutant::Mutant,
    world::{Late, StoredSlice, World},
};

impl World {
    /// Looks and decides.
    pub(super) fn decide(&mut self, mutant: Mutant) -> Step {
        let step = self.plan(mutant).step;
        mutant.twist(self, step)
    }

    pub(super) fn plan(&mut self, mutant: Mutant) -> Plan {
        let facts = self.facts(mutant == Mutant::AnyResolverWillDo);
        let now = time(self.now);
        self.memory.see(&facts, now);
        let settings = mutant.settings(settings());
        next(&facts, &self.memory, &settings, now)
    }

    /// One whole round of a living leader. Says whether it wrote.
    pub(super) fn operate(&mut self, mutant: Mutant) -> Result<bool, Fault> {
        let step = self.decide(mutant);
        self.check_order(&step)?;
        let wrote = step.is_write();
        if matches!(step, Step::ApplySlice { .. }) {
            self.memory.slice_is_written();
        }
        let late = Late {
            step,
            decided_on: self.object_version,
        };
        self.write(&late, mutant);
        if self.gives_up_on_the_pods(&late.step) {
            self.excuse_if_broken();
        }
        Ok(wrote)
    }

    fn gives_up_on_the_pods(&self, step: &Step) -> bool {
        let now = time(self.now);
        let starting = now.duration_since(self.memory.starting.unwrap_or(now));
        matches!(step, Step::RemoveSlice { .. })
            && self.deletion.is_some()
            && starting.unsigned_abs() >= settings().hold_timeout
    }

    /// The leader dies with its write on the way; the next one remembers nothing.
    pub(super) fn die_writing(&mut self, mutant: Mutant) {
        let step = self.decide(mutant);
        if step.is_write() {
            self.late = Some(Late {
                step,
                decided_on: self.object_version,
            });
        }
        self.memory = Memory::default();
    }

    /// The late write arrives.
    pub(super) fn land(&mut self, mutant: Mutant) {
        if let Some(late) = self.late.take() {
            // Its replicas were read long ago; see the list in `judge`.
            let mark = self.slice.and_then(|slice| slice.mark);
            let marked = match self.phase {
                Some((Phase::Draining, since)) => mark == Some(since),
                phase => phase.is_some_and(|(phase, _)| phase == Phase::Asleep),
            };
            self.write(&late, mutant);
            if matches!(late.step, Step::RemoveSlice { .. }) && !marked {
                self.excuse_if_broken();
            }
        }
    }

    fn write(&mut self, late: &Late, mutant: Mutant) {
        let unguarded = mutant == Mutant::NoVersion;
        let same_object = late.decided_on == self.object_version;
        match &late.step {
            Step::ProbeCutOver => self.probe(),
            Step::StorePhase(phase) if same_object => self.store(*phase),
            Step::GiveUpCutOver if same_object => {
                self.store(Phase::Serving);
                self.cut_over_failed = Some(self.now);
            }
            Step::RecordActivity if same_object => self.last_scaled_up = Some(self.now),
            Step::RemoveFinalizer if same_object => self.gone = true,
            Step::Rest
            | Step::StorePhase(_)
            | Step::GiveUpCutOver
            | Step::RecordActivity
            | Step::RemoveFinalizer => {}
            Step::ApplySlice {
                version,
                resolvers,
                mark,
            } => {
                let present = self.slice.map(|slice| slice.version.to_string());
                if !unguarded && present.as_ref() != version.as_ref().map(|version| &version.0) {
                    return;
                }
                let bit =
                    |slot: usize| u8::from(resolvers.contains(&resolver_address(slot))) << slot;
                let before = self.slice.and_then(|slice| slice.mark);
                let version = self.version();
                self.slice = Some(StoredSlice {
                    resolvers: bit(0) | bit(1),
                    version,
                    mark: mark.map(Timestamp::as_second).or(before),
                });
            }
            Step::RemoveSlice { version } => {
                if self
                    .slice
                    .is_some_and(|slice| slice.version.to_string() == version.0)
                {
                    self.slice = None;
                }
            }
            Step::ScaleToZero { version } => {
                if unguarded || self.target_version.to_string() == version.0 {
                    self.scale(0);
                }
            }
            Step::ScaleUp { replicas } => self.scale((*replicas).max(self.replicas)),
            Step::FenceTarget { drain } => {
                self.target_fenced_for = Some(drain.as_second());
                self.target_version = self.version();
            }
            Step::PauseAutoscaler { .. }
            | Step::UnpauseAutoscaler
            | Step::FenceAutoscaler { .. } => self.write_keda(&late.step, unguarded),
        }
    }

    fn write_keda(&mut self, step: &Step, unguarded: bool) {
        let new = self.version();
        let Some(keda) = &mut self.keda else { return };
        match step {
            Step::PauseAutoscaler { version }
                if !unguarded && keda.version.to_string() != version.0 => {}
            Step::FenceAutoscaler { drain } => {
                keda.fenced_for = Some(drain.as_second());
                keda.version = new;
            }
            _ => {
                keda.paused = matches!(step, Step::PauseAutoscaler { .. });
                keda.version = new;
            }
        }
    }

    fn store(&mut self, phase: Phase) {
        self.phase = Some((phase, self.now));
        self.object_version = self.version();
        match phase {
            Phase::Waking => self.last_scaled_up = Some(self.now),
            Phase::Draining => self.cut_over_failed = None,
            Phase::Serving | Phase::Asleep => {}
        }
    }

    /// A connection through the node on which the operator runs.
    fn probe(&mut self) {
        let taken = self.nodes[0].route.resolvers & self.usable();
        if let Some(slot) = (0..2).find(|slot| taken & (1 << slot) != 0) {
            let now = time(self.now);
            self.memory.cut_over_seen([resolver_address(slot)], now);
        }
    }
}
