//! What all reconciles share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, Resource};
use weir_api::hold::ElastiService;
use weir_hold::Memory;
use weir_role::cluster::ObjectId;
use weir_wake::Kinds;

use super::{
    clock::Clock,
    fail_open::FailOpen,
    hands::Hands,
    ports::PortBook,
    queue::SharedQueue,
    triggers::{Board, network::Meter, usage::Turnstile},
    world::World,
};
use crate::{
    events::{Events, Note, NoteKind},
    metrics::OperatorMetrics,
    resolvers::Resolvers,
};

/// A wake signal counts for so long; resolvers repeat it sooner while requests are held.
const WAKE_LASTS: std::time::Duration = std::time::Duration::from_secs(20);

/// What all reconciles share. No lock is held for longer than a look.
pub struct Context {
    /// To read afresh.
    pub client: Client,
    /// To write.
    pub hands: Hands,
    /// How kinds that are not watched are asked for.
    pub kinds: Arc<Kinds>,
    /// What the watches said.
    pub world: Mutex<World>,
    /// Who is to be looked at.
    pub queue: Arc<SharedQueue>,
    /// The resolvers.
    pub resolvers: Resolvers,
    /// What triggers say.
    pub board: Board,
    /// What those say that go by the traffic of pods.
    pub meter: Meter,
    /// What those say that go by the requests that came through resolvers.
    pub turnstile: Turnstile,
    /// What users read.
    pub events: Events,
    /// What Prometheus reads.
    pub metrics: Arc<OperatorMetrics>,
    /// The time spans of decisions.
    pub settings: weir_hold::Settings,
    /// The namespace of the resolvers.
    pub resolver_namespace: String,
    /// The resolvers' shared port.
    pub shared_port: u16,
    /// Whether Services get ports of their own.
    pub per_service_ports: bool,
    /// The time.
    pub clock: Clock,
    /// Which port is whose.
    pub book: Mutex<PortBook>,
    /// What this process has seen of each.
    pub memories: Mutex<HashMap<ObjectId, Memory>>,
    /// Who waits to be woken for want of a resolver.
    pub fail_open: Mutex<FailOpen>,
    /// When a wake was asked for last.
    pub wakes: Mutex<HashMap<ObjectId, Timestamp>>,
    /// How often in a row something failed.
    pub failures: Mutex<HashMap<ObjectId, u32>>,
}

/// The value, whatever became of who had it before.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A wake was asked for.
    pub fn wake_asked(&self, id: &ObjectId) {
        let now = self.now();
        lock(&self.wakes).insert(id.clone(), now);
        self.queue.mark([id.clone()]);
    }

    /// Whether a wake was asked for not long ago.
    pub fn is_wake_asked(&self, id: &ObjectId) -> bool {
        let now = self.now();
        let mut wakes = lock(&self.wakes);
        let recent = wakes
            .get(id)
            .is_some_and(|asked| now < weir_hold::settings::after(*asked, WAKE_LASTS));
        if !recent {
            wakes.remove(id);
        }
        recent
    }

    /// What was asked for until then is done.
    pub fn wake_is_done(&self, id: &ObjectId, until: Timestamp) {
        let mut wakes = lock(&self.wakes);
        if wakes.get(id).is_some_and(|asked| *asked <= until) {
            wakes.remove(id);
        }
    }

    /// The object is gone: nothing of it stays in memory.
    pub fn forget(&self, id: &ObjectId) {
        lock(&self.memories).remove(id);
        lock(&self.wakes).remove(id);
        lock(&self.failures).remove(id);
        lock(&self.fail_open).forget(id);
        lock(&self.book).forget(id, self.now());
        self.board.forget(id);
        self.meter.forget(id);
        self.turnstile.forget(id);
        self.metrics.forget(id);
    }

    /// Tells users something good.
    pub fn tell(
        &self,
        object: &ElastiService,
        reason: &'static str,
        action: &'static str,
        text: String,
    ) {
        self.event(object, NoteKind::Normal, reason, action, text);
    }

    /// Tells users that somebody should look.
    pub fn warn(
        &self,
        object: &ElastiService,
        reason: &'static str,
        action: &'static str,
        text: String,
    ) {
        self.event(object, NoteKind::Warning, reason, action, text);
    }

    fn event(
        &self,
        object: &ElastiService,
        kind: NoteKind,
        reason: &'static str,
        action: &'static str,
        text: String,
    ) {
        let about: ObjectReference = object.object_ref(&());
        let note = Note {
            kind,
            reason,
            action,
            text,
        };
        self.events.tell(about, note);
    }
}
