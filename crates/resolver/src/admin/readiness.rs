//! Whether requests may be sent here, and if not, what is missing.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// Not ready until the caches are synced; then ready while every allotted port is bound and until draining.
#[derive(Debug, Default)]
pub struct Readiness {
    synced: AtomicBool,
    draining: AtomicBool,
    unbound: Mutex<BTreeSet<u16>>,
}

impl Readiness {
    /// All that is to be known at first is known.
    pub fn set_synced(&self) {
        self.synced.store(true, Ordering::Release);
    }

    /// Whether it is.
    pub fn is_synced(&self) -> bool {
        self.synced.load(Ordering::Acquire)
    }

    /// The process is about to end. There is no way back.
    pub fn set_draining(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Whether it is about to.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// A port that was allotted is bound, or is not.
    pub fn set_bound(&self, port: u16, bound: bool) {
        let mut unbound = self.unbound.lock().unwrap_or_else(PoisonError::into_inner);
        if bound {
            unbound.remove(&port);
        } else {
            unbound.insert(port);
        }
    }

    /// A port is no longer allotted, so it need not be bound.
    pub fn forget_port(&self, port: u16) {
        self.set_bound(port, true);
    }

    /// What is missing; empty: requests may come.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if self.is_draining() {
            missing.push("the process is about to end".to_owned());
        }
        if !self.is_synced() {
            missing.push("the services are not all known yet".to_owned());
        }
        let unbound = self.unbound.lock().unwrap_or_else(PoisonError::into_inner);
        let ports = unbound.iter();
        missing.extend(ports.map(|port| format!("port {port} is not bound")));
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_ready_when_nothing_is_missing() {
        let readiness = Readiness::default();
        assert_eq!(readiness.missing().len(), 1);
        readiness.set_synced();
        assert!(readiness.missing().is_empty());
        readiness.set_bound(10240, false);
        readiness.set_bound(10241, false);
        assert_eq!(readiness.missing().len(), 2);
        readiness.set_bound(10240, true);
        readiness.forget_port(10241);
        assert!(readiness.missing().is_empty());
        readiness.set_draining();
        assert!(readiness.missing()[0].contains("end"));
    }
}
