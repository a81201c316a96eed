//! The ports that were allotted to services: opened, closed, and tried again while they cannot be had.

use std::{collections::BTreeSet, io, sync::Arc};

use weir_wire::listen::Wire;

use crate::{admin::Readiness, table::PortChanges};

pub(super) struct Ports {
    wire: Arc<Wire>,
    readiness: Arc<Readiness>,
    /// The resolver's own port, which is open already and is no service's.
    shared: u16,
    missing: BTreeSet<u16>,
}

impl Ports {
    pub(super) fn new(wire: Arc<Wire>, readiness: Arc<Readiness>, shared: u16) -> Self {
        Self {
            wire,
            readiness,
            shared,
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
            if *port != self.shared {
                self.wire.close(*port);
            }
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
        let opened = if port == self.shared {
            Err(io::ErrorKind::AddrInUse.into())
        } else {
            self.wire.open(port)
        };
        match opened {
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
