//! What becomes of the things that happen at a backend: wake signals, counts and log lines.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use weir_wire::backend::{Carried, Finished, Observer};

use crate::{
    early::EarlyHandle,
    metrics::{Metrics, ServiceMetrics, WakePhase},
    reach::Suspects,
    view::ServiceId,
    wake::WakeHandle,
};

/// How far the present wake of a service is.
#[derive(Debug, Default)]
pub(super) struct WakeProgress {
    first_byte_is_due: AtomicBool,
}

pub(super) struct ServiceObserver {
    pub(super) id: ServiceId,
    pub(super) metrics: Arc<ServiceMetrics>,
    pub(super) all: Arc<Metrics>,
    pub(super) wake: Option<WakeHandle>,
    pub(super) early: Option<EarlyHandle>,
    pub(super) progress: Arc<WakeProgress>,
    pub(super) suspects: Arc<Suspects>,
    pub(super) access_log: bool,
}

impl WakeProgress {
    /// An endpoint is ready: the next first byte is the first of this wake.
    pub(super) fn ready(&self) {
        self.first_byte_is_due.store(true, Ordering::Relaxed);
    }
}

impl Observer for ServiceObserver {
    fn waits(&self, waiting: usize) {
        if let Some(wake) = &self.wake {
            wake.want(&self.id, waiting);
        }
        if let Some(early) = &self.early {
            early.hold(&self.id);
        }
    }

    fn first_byte(&self, waited: Duration) {
        if self
            .progress
            .first_byte_is_due
            .swap(false, Ordering::Relaxed)
        {
            self.metrics.wake(WakePhase::FirstByte, waited);
        }
    }

    fn finished(&self, finished: &Finished<'_>) {
        self.metrics
            .finished(finished.method, finished.status, finished.took);
        if self.access_log {
            tracing::info!(
                target: "access",
                service = %self.id,
                method = %finished.method,
                status = finished.status.as_u16(),
                seconds = finished.took.as_secs_f64(),
                "answered"
            );
        }
    }

    fn carried(&self, carried: &Carried) {
        self.metrics.carried(carried);
        if self.access_log {
            tracing::info!(
                target: "access",
                service = %self.id,
                protocol = carried.protocol.as_str(),
                end = carried.end.as_str(),
                seconds = carried.took.as_secs_f64(),
                sent = carried.sent,
                received = carried.received,
                "passed through"
            );
        }
    }

    fn falls_silent(&self) {
        self.suspects.add(&self.id);
    }

    fn refused(&self, reason: &'static str) {
        self.all.refused.add(reason);
    }

    fn retried(&self, reason: &'static str) {
        self.all.retries.add(reason);
    }
}
