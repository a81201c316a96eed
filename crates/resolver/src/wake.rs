//! Wakes services: one signal to the operator for each that is wanted, repeated until it is no longer.
//!
//! - [`signals`] decides which signal is due when, without I/O;
//! - [`client`] sends one;
//! - [`alone`] decides when a service is woken without an operator, where that is allowed, and [`scaler`] does it;
//! - here is the task between them, and the [`WakeHandle`] by which requests say what they want.

pub mod alone;
pub mod client;
pub mod scaler;
pub mod signals;

use std::{
    collections::HashMap,
    future::{Future, pending},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use alone::Alone;
use client::{OperatorClient, RpcError};
use futures_util::future::BoxFuture;
use scaler::ScaleError;
use signals::{Outcome, Signals};
use tokio::{
    sync::Notify,
    task::{Id, JoinHandle, JoinSet},
    time::{Instant, sleep_until},
};

use crate::{metrics::Metrics, view::ServiceId};

/// The most signals that are under way at a time.
const PARALLEL: usize = 64;
/// The most services that are woken at a time without an operator.
const PARALLEL_ALONE: usize = 16;

/// How wakes are paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeSettings {
    /// The longest pause between two signals for one service (`OPERATOR_RETRY_DURATION`).
    pub retry: Duration,
}

/// Called when the operator has answered a signal for a service.
pub type Answered = Arc<dyn Fn(&ServiceId) + Send + Sync>;

/// Wakes a service without an operator.
pub trait Wakes: Send + Sync + 'static {
    /// Says whether it was asleep.
    fn wake(&self, service: ServiceId) -> BoxFuture<'static, Result<bool, ScaleError>>;
}

/// How services are woken when no operator answers.
#[derive(Clone)]
pub struct ByOurselves {
    /// After so long without an answer.
    pub after: Duration,
    /// Who does it.
    pub wakes: Arc<dyn Wakes>,
}

/// Starts what wakes services.
#[derive(Debug)]
pub struct Wake;

/// Says which services are wanted. Cheap to clone; every call returns at once.
#[derive(Clone, Debug)]
pub struct WakeHandle {
    /// None where there is nobody to tell.
    shared: Option<Arc<Shared>>,
}

#[derive(Debug)]
struct Shared {
    /// What is wanted, with the number of requests that are held for it. One entry for each service that is wanted.
    wanted: Mutex<HashMap<ServiceId, usize>>,
    /// What changed since the task last looked: bounded by the number of services, since each stands here once.
    news: Mutex<HashMap<ServiceId, bool>>,
    wake: Notify,
}

impl Wake {
    /// Starts the task; it ends when `shutdown` does, and then sends nothing more.
    pub fn spawn(
        client: OperatorClient,
        settings: WakeSettings,
        metrics: Arc<Metrics>,
        answered: Answered,
        by_ourselves: Option<ByOurselves>,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> (WakeHandle, JoinHandle<()>) {
        let shared = Arc::new(Shared {
            wanted: Mutex::default(),
            news: Mutex::default(),
            wake: Notify::new(),
        });
        let task = Task {
            client: Arc::new(client),
            signals: Signals::new(settings.retry),
            metrics,
            answered,
            shared: Arc::clone(&shared),
            under_way: JoinSet::new(),
            whose: HashMap::new(),
            by_ourselves: by_ourselves.map(Waking::new),
        };
        let running = tokio::spawn(async move {
            tokio::select! {
                () = task.run() => {}
                () = shutdown => {}
            }
        });
        let handle = WakeHandle {
            shared: Some(shared),
        };
        (handle, running)
    }
}

impl WakeHandle {
    /// Wakes nobody: for a resolver without an operator.
    pub fn nobody() -> Self {
        Self { shared: None }
    }

    /// Requests are held for this service, so many by now. For one that is wanted already this is a lookup.
    pub fn want(&self, id: &ServiceId, held: usize) {
        let Some(shared) = &self.shared else {
            return;
        };
        let mut wanted = lock(&shared.wanted);
        if let Some(count) = wanted.get_mut(id) {
            *count = held;
            return;
        }
        wanted.insert(id.clone(), held);
        shared.tell(id, true);
    }

    /// Nothing is held for this service any more, or it is awake: no more signals.
    pub fn settled(&self, id: &ServiceId) {
        let Some(shared) = &self.shared else {
            return;
        };
        let mut wanted = lock(&shared.wanted);
        if wanted.remove(id).is_some() {
            shared.tell(id, false);
        }
    }
}

impl Shared {
    /// Called with `wanted` locked, so that the last word here is the last word there.
    fn tell(&self, id: &ServiceId, wanted: bool) {
        lock(&self.news).insert(id.clone(), wanted);
        self.wake.notify_one();
    }
}

struct Task {
    client: Arc<OperatorClient>,
    signals: Signals,
    metrics: Arc<Metrics>,
    answered: Answered,
    shared: Arc<Shared>,
    under_way: JoinSet<Result<(), RpcError>>,
    /// Whose signal each of these is; known also of one that panics, so that its service is signalled again.
    whose: HashMap<Id, ServiceId>,
    /// None where only operators wake.
    by_ourselves: Option<Waking>,
}

/// What is woken without an operator.
struct Waking {
    alone: Alone,
    wakes: Arc<dyn Wakes>,
    under_way: JoinSet<Result<bool, ScaleError>>,
    whose: HashMap<Id, ServiceId>,
}

impl Task {
    async fn run(mut self) {
        loop {
            self.hear();
            self.send();
            let due = self.next_due();
            if let Some(waking) = &mut self.by_ourselves {
                waking.start();
            }
            tokio::select! {
                () = self.shared.wake.notified() => {}
                Some(ended) = self.under_way.join_next_with_id() => {
                    let (task, outcome) = match ended {
                        Ok((task, outcome)) => (task, outcome),
                        Err(panicked) => (panicked.id(), Err(RpcError::Panic)),
                    };
                    if let Some(id) = self.whose.remove(&task) {
                        self.ended(&id, outcome);
                    }
                }
                Some((id, outcome)) = next_woken(&mut self.by_ourselves) => {
                    self.woken(&id, outcome);
                }
                () = at(due) => {}
            }
        }
    }

    fn hear(&mut self) {
        let news = std::mem::take(&mut *lock(&self.shared.news));
        let now = Instant::now().into_std();
        for (id, wanted) in news {
            if wanted {
                self.signals.want(&id, now);
            } else {
                self.signals.settled(&id);
                self.leave(&id);
            }
        }
    }

    fn send(&mut self) {
        let room = PARALLEL.saturating_sub(self.under_way.len());
        let now = Instant::now().into_std();
        for id in self.signals.due(now, room) {
            if let Some(waking) = &mut self.by_ourselves {
                waking.alone.signalled(&id, now);
            }
            let held = lock(&self.shared.wanted)
                .get(&id)
                .map_or(1, |held| (*held).max(1));
            let client = Arc::clone(&self.client);
            let signalled = id.clone();
            let task = self
                .under_way
                .spawn(async move { client.signal(&signalled, held).await });
            self.whose.insert(task.id(), id);
        }
    }

    /// While all places are taken, an end of one is waited for instead.
    fn next_due(&self) -> Option<Instant> {
        let room = self.under_way.len() < PARALLEL;
        let due = self.signals.next_due().filter(|_| room);
        let by_ourselves = self.by_ourselves.as_ref().and_then(Waking::next_due);
        due.into_iter()
            .chain(by_ourselves)
            .min()
            .map(Instant::from_std)
    }

    /// An operator will see to it, or nobody waits.
    fn leave(&mut self, id: &ServiceId) {
        if let Some(waking) = &mut self.by_ourselves {
            waking.alone.leave(id);
        }
    }

    fn ended(&mut self, id: &ServiceId, outcome: Result<(), RpcError>) {
        let now = Instant::now().into_std();
        if outcome.as_ref().map_or_else(RpcError::is_answer, |()| true) {
            self.leave(id);
        }
        match outcome {
            Ok(()) => {
                self.metrics.operator_called("");
                self.signals.ended(id, Outcome::Answered, now);
                (self.answered)(id);
            }
            Err(error) => {
                self.metrics.operator_called(error.reason());
                if let Some(pause) = self.signals.ended(id, Outcome::Failed, now) {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::warn!(service = %id, again_in = ?pause, cause, "{error}");
                }
            }
        }
    }
}

impl Task {
    /// One was woken without an operator, or was not.
    fn woken(&self, id: &ServiceId, outcome: Result<bool, ScaleError>) {
        match outcome {
            Ok(was_asleep) => {
                let result = if was_asleep { "woken" } else { "awake" };
                self.metrics.scaled(result);
                if was_asleep {
                    tracing::warn!(service = %id, "no operator answers: woken without one");
                    (self.answered)(id);
                }
            }
            Err(error) => {
                self.metrics.scaled(error.reason());
                let error = &error as &dyn std::error::Error;
                tracing::warn!(service = %id, error, "no operator answers, and it was not woken without one");
            }
        }
    }
}

impl Waking {
    fn new(by_ourselves: ByOurselves) -> Self {
        Self {
            alone: Alone::new(by_ourselves.after),
            wakes: by_ourselves.wakes,
            under_way: JoinSet::new(),
            whose: HashMap::new(),
        }
    }

    fn start(&mut self) {
        let room = PARALLEL_ALONE.saturating_sub(self.under_way.len());
        for id in self.alone.due(Instant::now().into_std(), room) {
            let task = self.under_way.spawn(self.wakes.wake(id.clone()));
            self.whose.insert(task.id(), id);
        }
    }

    /// While all places are taken, an end of one is waited for instead.
    fn next_due(&self) -> Option<std::time::Instant> {
        let room = self.under_way.len() < PARALLEL_ALONE;
        self.alone.next_due().filter(|_| room)
    }
}

/// The next one that ends; never, where only operators wake. May be given up and called again.
async fn next_woken(
    by_ourselves: &mut Option<Waking>,
) -> Option<(ServiceId, Result<bool, ScaleError>)> {
    let waking = by_ourselves.as_mut()?;
    let (task, outcome) = match waking.under_way.join_next_with_id().await? {
        Ok((task, outcome)) => (task, outcome),
        Err(panicked) => (panicked.id(), Err(ScaleError::Panic)),
    };
    let id = waking.whose.remove(&task)?;
    waking.alone.ended(&id, Instant::now().into_std());
    Some((id, outcome))
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
