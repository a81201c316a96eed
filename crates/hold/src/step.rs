//! What comes next: one step at a time, with its reason.

use std::{collections::BTreeSet, net::IpAddr};

use jiff::Timestamp;
use weir_api::hold::Phase;

use super::{conditions::Condition, facts::Version};

/// The next step, why, and when to look again if nothing happens before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What to do now.
    pub step: Step,
    /// Why, for the Event and the log.
    pub because: &'static str,
    /// The next moment at which time alone changes the answer.
    pub look_again: Option<Timestamp>,
    /// What a user should know.
    pub conditions: Vec<Condition>,
}

/// One write, or none. Each may be the last that this process does, and each may arrive late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing to do until something happens, or [`Plan::look_again`].
    Rest,
    /// Write `status.phase` and its start, on the version of the ElastiService that was read.
    /// With `Waking`, `lastScaledUpTime` is written as well.
    StorePhase(Phase),
    /// Give up this drain because the cut-over was not seen: phase Serving, with `CutOverNotSeen`.
    GiveUpCutOver,
    /// Move `lastScaledUpTime` to now: a trigger is busy.
    RecordActivity,
    /// Make or change our slice, if it still is as it was read. A new need for it leaves a mark, so
    /// that a removal which was planned before it fails.
    ApplySlice {
        /// The version to change; none makes it, and fails where there is one.
        version: Option<Version>,
        /// The resolvers to lead to.
        resolvers: BTreeSet<IpAddr>,
        /// The start of the phase it is for; none leaves the mark as it is.
        mark: Option<Timestamp>,
    },
    /// Open a silent connection through the Service, and tell [`super::Memory::cut_over_seen`] when a
    /// resolver reports it. No write.
    ProbeCutOver,
    /// Pause the ScaledObject at zero, if it still has this version.
    PauseAutoscaler {
        /// The version it had when this was decided.
        version: Version,
    },
    /// Remove our pause, or the peers'.
    UnpauseAutoscaler,
    /// Write 0 to `/scale`, if the target still has this version.
    ScaleToZero {
        /// The version it had when this was decided.
        version: Version,
    },
    /// Write `/scale`; never lowers it.
    ScaleUp {
        /// The replicas to have at least.
        replicas: i32,
    },
    /// Mark the target with the drain that ends, which changes its version: a scale to zero that a
    /// deposed leader sent for this drain fails, however late it arrives.
    FenceTarget {
        /// The drain that ends.
        drain: Timestamp,
    },
    /// The same for a pause that is on its way.
    FenceAutoscaler {
        /// The drain that ends.
        drain: Timestamp,
    },
    /// Remove our slice, if it still has this version.
    RemoveSlice {
        /// The version that was read together with the replicas.
        version: Version,
    },
    /// Nothing of ours is left: let the object go. The private Service goes with it.
    RemoveFinalizer,
}

impl Step {
    /// Whether it changes anything in the cluster.
    pub fn is_write(&self) -> bool {
        !matches!(self, Self::Rest | Self::ProbeCutOver)
    }

    pub(super) fn because(self, because: &'static str) -> Plan {
        Plan {
            step: self,
            because,
            look_again: None,
            conditions: Vec::new(),
        }
    }
}

impl Plan {
    /// Rest until something happens.
    pub(super) fn rest(because: &'static str) -> Self {
        Step::Rest.because(because)
    }

    /// With a moment to look again.
    pub(super) fn until(mut self, moment: impl Into<Option<Timestamp>>) -> Self {
        self.look_again = moment.into();
        self
    }
}
