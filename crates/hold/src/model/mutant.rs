//! Planners that are wrong on purpose, each by one thing. A model that does not find them out proves
//! nothing.

use std::time::Duration;

use jiff::Timestamp;
use weir_api::hold::Phase;

use super::{
    super::{
        Settings, Step,
        facts::{Deletion, Version},
    },
    look::{addresses, resolver_address, time},
    world::World,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    /// The planner as it is.
    None,
    NoOverlap,
    SliceGoesWhenReady,
    ScaledBeforeTheSlice,
    ScaledBeforeUnpaused,
    SliceGoesAtZero,
    CutOverNotProbed,
    AnyResolverWillDo,
    PhaseNotStoredFirst,
    PausedBeforeTheOverlap,
    NoFence,
    NoVersion,
    NoMark,
    LetGoAtOnce,
}

impl Mutant {
    pub(super) fn settings(self, settings: Settings) -> Settings {
        match self {
            Self::NoOverlap => Settings {
                sync_period: Duration::ZERO,
                ..settings
            },
            _ => settings,
        }
    }

    /// The step that this planner takes instead.
    pub(super) fn twist(self, world: &mut World, step: Step) -> Step {
        let phase = world.phase.map(|(phase, _)| phase);
        let target = Version(world.target_version.to_string());
        let slice = world.slice.map(|slice| Version(slice.version.to_string()));
        let ready = world.route_for(1).pods != 0;
        match (self, step) {
            (Self::SliceGoesWhenReady, Step::Rest) if phase == Some(Phase::Waking) && ready => {
                slice.map_or(Step::Rest, |version| Step::RemoveSlice { version })
            }
            (Self::ScaledBeforeTheSlice, Step::ApplySlice { .. })
                if phase == Some(Phase::Draining) && world.replicas > 0 =>
            {
                Step::ScaleToZero { version: target }
            }
            (Self::ScaledBeforeUnpaused, Step::UnpauseAutoscaler) if world.replicas == 0 => {
                Step::ScaleUp { replicas: 1 }
            }
            (Self::SliceGoesAtZero, Step::Rest) if phase == Some(Phase::Asleep) => {
                slice.map_or(Step::Rest, |version| Step::RemoveSlice { version })
            }
            (Self::CutOverNotProbed, Step::ProbeCutOver) => {
                let resolver = world.memory.in_slice.keys().next().copied();
                if let Some(resolver) = resolver {
                    world.memory.cut_over_seen([resolver], time(world.now));
                }
                Step::Rest
            }
            (Self::PhaseNotStoredFirst, Step::StorePhase(Phase::Draining)) => {
                Step::ScaleToZero { version: target }
            }
            (Self::PausedBeforeTheOverlap, Step::ProbeCutOver) => match world.keda {
                Some(keda) if !keda.paused => Step::PauseAutoscaler {
                    version: Version(keda.version.to_string()),
                },
                _ => Step::ProbeCutOver,
            },
            (Self::NoFence, Step::FenceTarget { .. } | Step::FenceAutoscaler { .. }) => {
                Step::StorePhase(if ready { Phase::Serving } else { Phase::Waking })
            }
            (
                Self::NoMark,
                Step::ApplySlice {
                    mark, resolvers, ..
                },
            ) if world
                .slice
                .is_some_and(|slice| addresses(slice.resolvers, resolver_address) == resolvers) =>
            {
                // As if the slice that is there were good enough.
                if let Some(slice) = &mut world.slice {
                    slice.mark = mark.map(Timestamp::as_second);
                }
                Step::Rest
            }
            (Self::LetGoAtOnce, Step::Rest)
                if world.deletion == Some(Deletion::WakeFirst) && world.slice.is_none() =>
            {
                Step::RemoveFinalizer
            }
            (_, step) => step,
        }
    }
}
