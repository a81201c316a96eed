//! What is counted for one `ElastiService`. It goes with it.

use std::{collections::BTreeMap, sync::Arc};

use weir_api::hold::{Mode, Phase};

/// Which watch, and what of it.
pub(super) type WatchKey = (&'static str, &'static str);

/// The counts of one object.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectCounts {
    pub(super) reconciles: u64,
    pub(super) finalizers: BTreeMap<&'static str, u64>,
    pub(super) updates: BTreeMap<&'static str, u64>,
    pub(super) mode: Option<Mode>,
    pub(super) phase: Option<Phase>,
    pub(super) open: i64,
    /// By action and what is watched.
    pub(super) watches: BTreeMap<WatchKey, u64>,
    /// By what is watched and who saw it.
    pub(super) seen: BTreeMap<WatchKey, u64>,
    /// The Service that it holds; what is counted of that goes with this object.
    pub(super) service: Option<Arc<str>>,
}

/// The label of a mode.
pub(super) const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Proxy => "proxy",
        Mode::Serve => "serve",
    }
}

/// All phases, in the order in which they are shown.
pub(super) const PHASES: [Phase; 4] = [
    Phase::Serving,
    Phase::Draining,
    Phase::Asleep,
    Phase::Waking,
];

/// The label of a phase.
pub(super) const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Serving => "Serving",
        Phase::Draining => "Draining",
        Phase::Asleep => "Asleep",
        Phase::Waking => "Waking",
    }
}
