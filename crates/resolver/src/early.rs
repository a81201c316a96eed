//! Pods that are ready before the kubelet says so: while requests are held, pods that start are asked by their own probes.
//!
//! - [`machine`] decides who is asked when and who is ready, without I/O;
//! - [`progress`] is how far one container is, [`budget`] how much may be asked;
//! - [`ask`] sends one probe;
//! - here is the task between them and the table, and the [`EarlyHandle`] by which both are told what happens.

pub mod ask;
mod budget;
pub mod machine;
mod progress;

use std::{
    collections::{HashMap, HashSet},
    future::{Future, pending},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ask::Asker;
use machine::{Machine, Outcome, Pace, Ticket};
use tokio::{
    sync::Notify,
    task::{Id, JoinError, JoinSet},
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};

use crate::{
    metrics::Metrics,
    table::Table,
    view::{Change, ServiceId},
};

/// Enough for a pod that is asked every 50 ms in each of fifty services at once; with more of them all are asked less often.
const PACE: Pace = Pace {
    at_a_time: 256,
    per_second: 1000,
    at_once: 100,
    longest: Duration::from_secs(1),
};
/// How often to look whether requests are still held.
const LOOK: Duration = Duration::from_millis(250);

/// Says what starts, and for whom requests are held. Cheap to clone; every call returns at once.
#[derive(Clone, Debug)]
pub struct EarlyHandle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    machine: Mutex<Machine>,
    /// For whom requests are held. One entry for each service, however many requests there are.
    held: Mutex<HashSet<ServiceId>>,
    wake: Notify,
}

impl Default for EarlyHandle {
    fn default() -> Self {
        Self::new()
    }
}

impl EarlyHandle {
    /// One that knows of nothing.
    pub fn new() -> Self {
        let shared = Shared {
            machine: Mutex::new(Machine::new(PACE)),
            held: Mutex::default(),
            wake: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// A request is held for this service. For one of which that is known this is a lookup.
    pub fn hold(&self, id: &ServiceId) {
        let mut held = lock(&self.shared.held);
        if held.contains(id) {
            return;
        }
        held.insert(id.clone());
        lock(&self.shared.machine).hold(id);
        self.shared.wake.notify_one();
    }

    /// Services have changed.
    pub fn apply(&self, changes: &[Change]) {
        let now = Instant::now().into_std();
        let mut machine = lock(&self.shared.machine);
        for change in changes {
            machine.apply(change, now);
        }
        drop(machine);
        self.shared.wake.notify_one();
    }

    /// Asks pods and tells the table which are ready, until `shutdown`; then what is under way is given up.
    pub async fn run(
        self,
        table: Arc<Table>,
        asker: Asker,
        metrics: Arc<Metrics>,
        shutdown: impl Future<Output = ()>,
    ) {
        let task = Task {
            shared: self.shared,
            table,
            asker: Arc::new(asker),
            metrics,
            under_way: JoinSet::new(),
            whose: HashMap::new(),
        };
        let shutdown = pin!(shutdown);
        tokio::select! {
            () = task.run() => {}
            () = shutdown => {}
        }
    }
}

struct Task {
    shared: Arc<Shared>,
    table: Arc<Table>,
    asker: Arc<Asker>,
    metrics: Arc<Metrics>,
    under_way: JoinSet<Outcome>,
    /// Which probe each of these is; known also of one that panics.
    whose: HashMap<Id, Ticket>,
}

impl Task {
    async fn run(mut self) {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.tell();
            let due = self.send();
            let is_anybody_held = self.is_anybody_held();
            tokio::select! {
                () = self.shared.wake.notified() => {}
                Some(ended) = self.under_way.join_next_with_id() => self.ended(ended),
                () = at(due) => {}
                _ = look.tick(), if is_anybody_held => self.look(),
            }
        }
    }

    fn is_anybody_held(&self) -> bool {
        !lock(&self.shared.held).is_empty() || lock(&self.shared.machine).held().next().is_some()
    }

    /// Tells the table who is ready now, and who is no longer.
    fn tell(&self) {
        let news = lock(&self.shared.machine).take_news();
        for (id, pods) in news {
            self.table.set_early(&id, pods);
        }
    }

    /// Sends what is due, and says when there will be more.
    fn send(&mut self) -> Option<Instant> {
        let mut machine = lock(&self.shared.machine);
        let due = machine.due(Instant::now().into_std());
        let next = machine.next_due().map(Instant::from_std);
        drop(machine);
        for ask in due {
            let asker = Arc::clone(&self.asker);
            let ticket = ask.ticket;
            let probe = self.under_way.spawn(async move {
                let action = &ask.probe.action;
                asker.ask(ask.address, action, ask.timeout).await
            });
            self.whose.insert(probe.id(), ticket);
        }
        next
    }

    fn ended(&mut self, ended: Result<(Id, Outcome), JoinError>) {
        let (id, outcome) = match ended {
            Ok((id, outcome)) => (id, outcome),
            Err(panicked) => (panicked.id(), Outcome::Failed),
        };
        self.metrics.early_probes.add(outcome.as_str());
        if let Some(ticket) = self.whose.remove(&id) {
            lock(&self.shared.machine).answered(ticket, outcome);
        }
    }

    /// Forgets services for which nothing is held any more.
    fn look(&self) {
        let mut known = lock(&self.shared.held).clone();
        known.extend(lock(&self.shared.machine).held().cloned());
        for id in known {
            if self.table.waits(&id) {
                lock(&self.shared.machine).hold(&id);
                continue;
            }
            // Looked at once more with the lock, so that who comes just now is not forgotten.
            let mut held = lock(&self.shared.held);
            if !self.table.waits(&id) {
                held.remove(&id);
                lock(&self.shared.machine).released(&id);
            }
        }
    }
}

impl Outcome {
    /// In metrics.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Unreachable => "unreachable",
        }
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
