//! The order of going to sleep and waking: what is, what this process has seen, and the time now →
//! one next step.
//!
//! No I/O and no clock. The shell reads [`Facts`], lets [`Memory`] see them, asks [`next`], carries
//! out the one [`Step`], and begins again. All that must outlive a process is in the cluster; what
//! is in [`Memory`] only makes a new leader wait once more. `model` plays this against a small world
//! with slow nodes, crashes and hands that meddle.
//!
//! To zero: a resolver knows the service, phase Draining, slice, seen through the Service, overlap,
//! autoscaler paused, scaled to 0, phase Asleep. From zero: phase Waking, autoscaler unpaused,
//! scaled up, an endpoint is ready, overlap, slice removed, phase Serving.
//!
//! Two things beside that order are pure as well, and asked by resolvers for each request: which Service it names ([`host`]),
//! and whether it is answered without waking anybody ([`probe`]).

mod asleep;
mod conditions;
mod deletion;
mod draining;
pub mod facts;
pub mod host;
pub mod memory;
#[cfg(test)]
mod model;
pub mod probe;
mod serving;
pub mod settings;
mod slice;
pub mod step;
#[cfg(test)]
mod tests;
mod waking;
mod wish;

use jiff::Timestamp;
use weir_api::hold::Phase;

pub use self::{
    conditions::Condition,
    facts::Facts,
    memory::Memory,
    serving::NO_ENDPOINT,
    settings::Settings,
    step::{Plan, Step},
    wish::NO_RESOLVER,
};

/// The one next step.
///
/// `memory` must have seen these very facts: [`Memory::see`].
pub fn next(facts: &Facts, memory: &Memory, settings: &Settings, now: Timestamp) -> Plan {
    let view = View {
        facts,
        memory,
        settings,
        now,
    };
    let mut plan = match facts.deletion {
        Some(how) => deletion::plan(&view, how),
        None => by_phase(&view),
    };
    plan.conditions = conditions::of(&view, &plan);
    plan
}

/// Whether this ElastiService would let its target sleep, apart from the others on it.
pub fn wants_sleep(facts: &Facts, memory: &Memory, settings: &Settings, now: Timestamp) -> bool {
    let view = View {
        facts,
        memory,
        settings,
        now,
    };
    wish::sleep(&view).is_ok()
}

/// Whether this ElastiService wants its target awake, apart from the others on it.
pub fn wants_wake(facts: &Facts, memory: &Memory, settings: &Settings, now: Timestamp) -> bool {
    let view = View {
        facts,
        memory,
        settings,
        now,
    };
    wish::wake(&view).is_some()
}

/// Whether requests for this ElastiService lead to resolvers by every node, so that its pods may go.
pub fn is_cut_over(facts: &Facts, memory: &Memory, settings: &Settings, now: Timestamp) -> bool {
    let view = View {
        facts,
        memory,
        settings,
        now,
    };
    match facts.stored.map(|stored| stored.phase) {
        Some(Phase::Asleep) => true,
        Some(Phase::Draining) => draining::is_cut_over(&view),
        None | Some(Phase::Serving | Phase::Waking) => false,
    }
}

fn by_phase(view: &View<'_>) -> Plan {
    match view.facts.stored.map(|stored| stored.phase) {
        None | Some(Phase::Serving) => serving::plan(view),
        Some(Phase::Draining) => draining::plan(view),
        Some(Phase::Asleep) => asleep::plan(view),
        Some(Phase::Waking) => waking::plan(view),
    }
}

/// All that a decision looks at.
struct View<'a> {
    facts: &'a Facts,
    memory: &'a Memory,
    settings: &'a Settings,
    now: Timestamp,
}
