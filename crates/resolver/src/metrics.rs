//! What the resolver counts, and how Prometheus reads it.
//!
//! Each service has a [`ServiceMetrics`] that `table` keeps beside it; what concerns the whole process is in
//! [`Metrics`]. Labels are bounded: services there are, verbs, reason phrases and reasons of our own; never what a
//! client wrote.
//!
//! [`names`] has what is ours; the peers' names are in `weir_api`, the registry in `weir_role`.

pub mod names;
mod render;
mod service;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

pub use service::{ServiceMetrics, WakePhase};
use weir_role::metrics::{
    counts::{Counter, Gauge, Reasons},
    exposition, lock,
};

use crate::view::{ServiceId, ServiceView};

/// All counts of the process.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Requests that are held.
    pub held_requests: Gauge,
    /// Bytes of bodies that are kept for requests which are held or may be sent again.
    pub held_bytes: Gauge,
    /// Connections from clients.
    pub connections: Gauge,
    /// Connections that became tunnels.
    pub tunnels: Gauge,
    /// Requests that were not forwarded, by reason.
    pub refused: Reasons,
    /// Requests that were sent again, by reason.
    pub retries: Reasons,
    /// Probes of pods that start, by how they ended.
    pub early_probes: Reasons,
    /// Pods that were ready by their own probes, and then were not.
    pub early_withdrawn: Counter,
    hits: Counter,
    misses: Counter,
    errors: Counter,
    rpcs: Reasons,
    scales: Reasons,
    services: Mutex<HashMap<ServiceId, Arc<ServiceMetrics>>>,
}

/// How the target of a request on the shared port was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extraction {
    /// The service is held here.
    Hit,
    /// There is no such service, or it is not held here.
    Miss,
    /// The request names no service.
    Error,
}

impl Metrics {
    /// Counts at zero.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The counts of one service, from now on under its present target.
    pub fn service(&self, view: &ServiceView) -> Arc<ServiceMetrics> {
        let mut services = lock(&self.services);
        let metrics = services
            .entry(view.id.clone())
            .or_insert_with(|| Arc::new(ServiceMetrics::new(view)));
        metrics.rename_target(&view.target);
        Arc::clone(metrics)
    }

    /// The service is no longer held: it is no longer shown. Who still has its counts may go on counting.
    pub fn forget(&self, id: &ServiceId) {
        lock(&self.services).remove(id);
    }

    /// A request on the shared port was looked at.
    pub fn host_extracted(&self, how: Extraction) {
        match how {
            Extraction::Hit => self.hits.add(1),
            Extraction::Miss => self.misses.add(1),
            Extraction::Error => self.errors.add(1),
        }
    }

    /// A wake signal was answered, or not; the reason is empty when all went well.
    pub fn operator_called(&self, error: &'static str) {
        self.rpcs.add(error);
    }

    /// A service was to be woken without an operator: `woken`, `awake` already, or why not.
    pub fn scaled(&self, result: &'static str) {
        self.scales.add(result);
    }

    /// Everything, in Prometheus' text format 0.0.4.
    pub fn render(&self) -> String {
        render::render(self)
    }

    /// The content type of [`Self::render`].
    pub const CONTENT_TYPE: &str = exposition::CONTENT_TYPE;

    /// Sorted, so that two scrapes can be compared by eye.
    fn sorted(&self) -> Vec<Arc<ServiceMetrics>> {
        let mut all: Vec<_> = lock(&self.services).values().cloned().collect();
        all.sort_by(|a, b| a.id().cmp(b.id()));
        all
    }
}
