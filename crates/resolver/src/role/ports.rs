//! The ports that were allotted to services: opened, closed, and tried again while they cannot be had.

use std::{collections::BTreeSet, sync::Arc};

use weir_wire::listen::Wire;

use crate::{admin::Readiness, table::PortChanges};

pub(super) struct Ports {
    wire: Arc<Wire>,
    readiness: Arc<Readiness>,
    missing: BTreeSet<u16>,
}

impl Ports {
    pub(super) fn new(wire: Arc<Wire>, readiness: Arc<Readiness>) -> Self {
        Self {
            wire,
            readiness,
            missing: BTreeSet::new(),
        }
    }

    pub(super) fn apply(&mut self, changes: &PortChanges) {
        // A port that passes from one service to another in one go stays open.
        for port in changes
            .close
            .iter()
            .filter(|port| !changes.open.contains(port))
        {
            self.wire.close(*port);
            self.missing.remove(port);
            self.readiness.forget_port(*port);
        }
        for port in &changes.open {
            self.open(*port);
        }
    }

    /// Tries those once more that could not be opened.
    pub(super) fn open_missing(&mut self) {
        for port in self.missing.clone() {
            self.open(port);
        }
    }

    fn open(&mut self, port: u16) {
        match self.wire.open(port) {
            Ok(_) => {
                self.missing.remove(&port);
                self.readiness.set_bound(port, true);
            }
            Err(error) => {
                // Once, not every second.
                if self.missing.insert(port) {
                    tracing::error!(port, %error, "an allotted port cannot be opened; not ready until it can");
                }
                self.readiness.set_bound(port, false);
            }
        }
    }
}
