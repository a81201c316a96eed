//! What the operator counts, under the names that the peers' dashboards know, and how Prometheus reads it.
//!
//! Labels are bounded: objects there are, and words out of the program; never an error's text. What is counted for an
//! object goes with it ([`OperatorMetrics::forget`]).
//!
//! [`names`] has what is ours; the peers' names are in `weir_api`, the registry in `weir_role`. `object` is what is
//! counted for one object, [`place`] what place counts, `render` the text.

pub mod names;
mod object;
pub mod place;
mod render;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
};

use object::ObjectCounts;
use weir_api::hold::{Mode, Phase};
use weir_role::{
    cluster::ObjectId,
    metrics::{
        counts::{Gauge, Reasons},
        exposition, lock,
    },
};

/// All counts of the process.
#[derive(Debug, Default)]
pub struct OperatorMetrics {
    /// What place counts.
    pub place: place::PlaceMetrics,
    leader: Gauge,
    wakes: Reasons,
    triggers: Reasons,
    reconcile_errors: Reasons,
    writes: Reasons,
    objects: Mutex<HashMap<ObjectId, ObjectCounts>>,
    scales: Mutex<BTreeMap<ObjectId, Scales>>,
}

/// Scales of a Service's target, by target and error.
type Scales = BTreeMap<(Arc<str>, &'static str), u64>;

/// A Service whose target is called otherwise each time must not fill the memory.
const TARGETS: usize = 16;

impl OperatorMetrics {
    /// The content type of [`Self::render`].
    pub const CONTENT_TYPE: &str = exposition::CONTENT_TYPE;

    /// Counts at zero.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// An object was looked at.
    pub fn reconciled(&self, id: &ObjectId) {
        self.object(id, |counts| counts.reconciles += 1);
    }

    /// A look failed.
    pub fn reconcile_failed(&self, reason: &'static str) {
        self.reconcile_errors.add(reason);
    }

    /// A finalizer was [`names::ADDED`] or [`names::REMOVED`].
    pub fn finalizer(&self, id: &ObjectId, action: &'static str) {
        self.object(id, |counts| add(&mut counts.finalizers, action));
    }

    /// A status was written, with this mode in it.
    pub fn status_written(&self, id: &ObjectId, mode: Mode) {
        self.object(id, |counts| add(&mut counts.updates, object::mode(mode)));
    }

    /// The mode it is in.
    pub fn set_mode(&self, id: &ObjectId, mode: Mode) {
        self.object(id, |counts| counts.mode = Some(mode));
    }

    /// The phase it is in.
    pub fn set_phase(&self, id: &ObjectId, phase: Phase) {
        self.object(id, |counts| counts.phase = Some(phase));
    }

    /// The object holds this Service: what [`Self::scaled`] counts of the Service is forgotten with the object, or when
    /// the object holds another one.
    pub fn holds(&self, id: &ObjectId, service: &str) {
        let before = self.object(id, |counts| match &counts.service {
            Some(known) if **known == *service => None,
            _ => counts.service.replace(service.into()),
        });
        if let Some(before) = before {
            self.forget_scales(&id.namespace, &before);
        }
    }

    /// A target, as `weir_api`'s `scale_target` writes it, was scaled for a Service; the error is `success` or a reason.
    pub fn scaled(&self, namespace: &str, service: &str, target: &str, error: &'static str) {
        let mut scales = lock(&self.scales);
        let counts = scales.entry(ObjectId::new(namespace, service)).or_default();
        if counts.len() >= TARGETS && !counts.keys().any(|(known, _)| **known == *target) {
            counts.clear();
        }
        *counts.entry((target.into(), error)).or_default() += 1;
    }

    /// Something was written to the API server.
    pub fn wrote(&self, kind: &'static str) {
        self.writes.add(kind);
    }

    /// A wake signal was answered.
    pub fn woken(&self, outcome: &'static str) {
        self.wakes.add(outcome);
    }

    /// A trigger was asked.
    pub fn trigger_asked(&self, outcome: &'static str) {
        self.triggers.add(outcome);
    }

    /// Something is watched for an object from now on.
    pub fn watch_opened(&self, id: &ObjectId, key: &'static str) {
        self.object(id, |counts| {
            counts.open += 1;
            add(&mut counts.watches, (names::ADDED, key));
        });
    }

    /// It is no longer watched.
    pub fn watch_closed(&self, id: &ObjectId, key: &'static str) {
        self.object(id, |counts| {
            counts.open -= 1;
            add(&mut counts.watches, (names::REMOVED, key));
        });
    }

    /// The watch of this name saw a change.
    pub fn watch_seen(&self, id: &ObjectId, key: &'static str, watch: &'static str) {
        self.object(id, |counts| add(&mut counts.seen, (key, watch)));
    }

    /// Whether this process leads.
    pub fn set_leader(&self, leads: bool) {
        self.leader.set(leads.into());
    }

    /// The object is gone: nothing of it is shown any more.
    pub fn forget(&self, id: &ObjectId) {
        let gone = lock(&self.objects).remove(id);
        if let Some(service) = gone.and_then(|counts| counts.service) {
            self.forget_scales(&id.namespace, &service);
        }
    }

    /// Everything, in Prometheus' text format 0.0.4.
    pub fn render(&self) -> String {
        render::render(self)
    }

    fn object<T>(&self, id: &ObjectId, change: impl FnOnce(&mut ObjectCounts) -> T) -> T {
        let mut objects = lock(&self.objects);
        if let Some(counts) = objects.get_mut(id) {
            return change(counts);
        }
        change(objects.entry(id.clone()).or_default())
    }

    fn forget_scales(&self, namespace: &str, service: &str) {
        lock(&self.scales).remove(&ObjectId::new(namespace, service));
    }

    /// Sorted, so that two scrapes can be compared by eye.
    fn sorted(&self) -> Vec<(ObjectId, ObjectCounts)> {
        let objects = lock(&self.objects);
        let mut all: Vec<_> = objects
            .iter()
            .map(|(id, counts)| (id.clone(), counts.clone()))
            .collect();
        drop(objects);
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all
    }
}

fn add<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K) {
    *counts.entry(key).or_default() += 1;
}
