//! In which order changes are told: who gives a port of the resolver up stands before who takes it.
//!
//! `index` and `targets` both tell changes. Two services that exchange their ports cannot be put in order; whoever
//! opens ports has to close what a batch gives up before it opens what the batch takes.

use crate::view::{Change, ServiceView};

/// Lower comes first.
pub(crate) fn place(old: Option<&ServiceView>, change: &Change) -> u8 {
    match change {
        Change::Gone(_) => 0,
        Change::Set(new) if old.is_some_and(|old| gives_up_a_port(old, new)) => 1,
        Change::Set(_) => 2,
    }
}

fn gives_up_a_port(old: &ServiceView, new: &ServiceView) -> bool {
    let has = |port: u16| {
        new.ports
            .iter()
            .any(|other| other.resolver_port == Some(port))
    };
    old.ports
        .iter()
        .filter_map(|port| port.resolver_port)
        .any(|port| !has(port))
}
