//! What is: the cluster as it was just read, as plain values. What was seen earlier is in `memory`.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::Duration,
};

use jiff::Timestamp;
use weir_api::hold::Phase;

/// A `resourceVersion`: only ever compared, and sent back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub String);

/// One ElastiService and all that matters to it, read together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// `status.phase` and `status.phaseStartTime`; none for an object that is new.
    pub stored: Option<StoredPhase>,
    /// What the object asks for.
    pub wanted: Wanted,
    /// Whether the object is being deleted, and how.
    pub deletion: Option<Deletion>,
    /// Whether the public Service exists.
    pub service_exists: bool,
    /// The target, unless it does not exist.
    pub target: Option<Target>,
    /// The addresses that are `serving && !terminating` in slices that are not ours, each with the
    /// version of the slice that lists it: while that is the same, the endpoint was not gone.
    pub endpoints: BTreeMap<IpAddr, Version>,
    /// Our slice, where it exists. Slices of two families count as one: they are written together.
    pub slice: Option<Slice>,
    /// The resolvers that are ready, and whether each knows this service.
    pub resolvers: BTreeMap<IpAddr, Knows>,
    /// The ScaledObject, where `spec.autoscaler` names one that exists.
    pub autoscaler: Option<Autoscaler>,
    /// The other ElastiServices on the same target.
    pub group: Group,
    /// Requests are held or a wake was asked for.
    pub wake_wanted: bool,
}

/// A phase with the time at which it was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredPhase {
    /// The phase.
    pub phase: Phase,
    /// Since when. Also the mark by which what belongs to this drain is told from an older one.
    pub since: Timestamp,
}

/// The spec, and what its triggers and its window say now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// `minTargetReplicas`.
    pub min_replicas: i32,
    /// `cooldownPeriod`.
    pub cooldown: Duration,
    /// `enabledPeriod` at this moment.
    pub window: Window,
    /// All triggers together.
    pub triggers: Triggers,
    /// When the object was made.
    pub created: Timestamp,
    /// `status.lastScaledUpTime`.
    pub last_scaled_up: Option<Timestamp>,
    /// Since when the condition `CutOverNotSeen` has stood.
    pub cut_over_failed: Option<Timestamp>,
    /// The Service keeps a client on the endpoint it had, or on the client's own node, so a probe proves nothing.
    pub cannot_be_probed: bool,
}

/// Where now lies in `enabledPeriod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Sleeping is allowed. The next change, if there is one.
    Open(Option<Timestamp>),
    /// The target stays at or above its minimum. The next change, if there is one.
    Closed(Option<Timestamp>),
    /// The expression cannot be read: never scale down, but wake nobody for it.
    Unreadable,
}

/// What the triggers say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triggers {
    /// There are none: we hold, and never scale down.
    Absent,
    /// All are idle.
    Idle,
    /// At least one is not.
    Busy,
    /// At least one could not be asked, or does not know for long enough, and none is busy.
    Unknown,
}

/// How an ElastiService goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Wake the target and serve what is held first.
    WakeFirst,
    /// Leave the target as it is: the user's annotation, or the namespace is going as well.
    Leave,
    /// It stays, but an edit names another Service. This one is left as by `WakeFirst`.
    Edited,
}

/// The workload, by its `/scale`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `spec.replicas`.
    pub replicas: i32,
    /// Its version as read with the replicas.
    pub version: Version,
    /// `metadata.generation`: another one whenever something else is asked of it, but not with its status.
    pub generation: i64,
    /// Ready pods, as the workload's own status counts them.
    pub ready_pods: i32,
    /// The drain after which it was fenced last; see [`super::Step::FenceTarget`].
    pub fenced_for: Option<Timestamp>,
}

/// Our slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The resolvers in it.
    pub resolvers: BTreeSet<IpAddr>,
    /// Its version, for a removal that must not hit a newer one.
    pub version: Version,
    /// The start of the phase for which it was last marked, if it was.
    pub mark: Option<Timestamp>,
}

/// Whether a resolver can take requests for this service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knows {
    /// It has bound the ports and knows the target.
    Yes,
    /// It has not heard of it yet.
    NotYet,
}

/// A KEDA ScaledObject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Autoscaler {
    /// Its version.
    pub version: Version,
    /// `metadata.generation`: another one with its spec, but not with its status or a pause.
    pub generation: i64,
    /// Who paused it.
    pub pause: Pause,
    /// The drain after which it was fenced last; see [`super::Step::FenceAutoscaler`].
    pub fenced_for: Option<Timestamp>,
}

/// Who paused the autoscaler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Nobody.
    No,
    /// We did: it carries our mark.
    Ours,
    /// The older operator's pair of annotations, without a mark.
    Peers,
    /// Somebody else, for a reason of their own.
    Users,
}

/// The other ElastiServices on the same target; for a group of one, all is agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// All others want to sleep.
    pub others_agree: bool,
    /// All others have been cut over and overlapped.
    pub others_cut_over: bool,
    /// Another one wants the target awake.
    pub others_wake: bool,
}

impl Group {
    /// Nobody else is on the target.
    pub const ALONE: Self = Self {
        others_agree: true,
        others_cut_over: true,
        others_wake: false,
    };
}

impl Facts {
    /// The resolvers to which the Service may lead.
    pub fn usable_resolvers(&self) -> BTreeSet<IpAddr> {
        let usable = |(address, knows): (&IpAddr, &Knows)| match knows {
            Knows::Yes => Some(*address),
            Knows::NotYet => None,
        };
        self.resolvers.iter().filter_map(usable).collect()
    }

    /// Whether `spec.replicas` was read, and is above zero.
    pub fn is_scaled_up(&self) -> bool {
        self.target
            .as_ref()
            .is_some_and(|target| target.replicas > 0)
    }

    /// Who paused the autoscaler; nobody where there is none.
    pub fn pause(&self) -> Pause {
        self.autoscaler
            .as_ref()
            .map_or(Pause::No, |autoscaler| autoscaler.pause)
    }
}
