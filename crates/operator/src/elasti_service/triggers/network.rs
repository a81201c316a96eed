//! `network` triggers: a workload is idle while the traffic of each of its pods is below a threshold, as the kubelets of their
//! nodes count it. Nobody else is asked, and nothing has to be installed for it.
//!
//! - [`wanted`]: what there is to know, for an object as it stands;
//! - [`table`]: whose traffic is to be known, what was heard, which kubelet is next; [`quiet`] is one pod in it;
//! - [`kubelet`] asks one of them, [`nodes`] says where it is, [`summary`] reads the answer;
//! - here are the [`Meter`], on which a controller reads, and the task that asks.

pub mod kubelet;
pub mod nodes;
pub mod quiet;
pub mod summary;
pub mod table;
pub mod wanted;

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::{
    sync::Notify,
    task::{Id, JoinSet},
    time::{Instant, timeout},
};
use weir_role::{cluster::ObjectId, metrics::lock};

use self::{
    kubelet::{AskError, Kubelets},
    nodes::NodeError,
    table::{Asking, Table, Told},
    wanted::Wanted,
};
use super::{Outcome, SUCCESS, Tell, Verdict, at, now, rounds};

/// Says where the kubelet of a node is.
pub type Find =
    Arc<dyn Fn(Arc<str>) -> BoxFuture<'static, Result<SocketAddr, NodeError>> + Send + Sync>;

/// What the `network` triggers of every object said last. Cheap to clone; every call returns at once.
#[derive(Clone, Debug)]
pub struct Meter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    may_ask: bool,
    table: Mutex<Table>,
    /// Somebody is to be asked, or nobody any more.
    news: Notify,
}

/// How kubelets are asked.
#[derive(Clone)]
pub struct MeterSettings {
    /// The time from one round to the next (`POLLING_INTERVAL`).
    pub polling_interval: Duration,
    /// Whether kubelets may be asked at all: not by an operator that cares for some namespaces only.
    pub may_ask: bool,
    /// Asks one.
    pub kubelets: Kubelets,
    /// Says where it is.
    pub find: Find,
}

impl fmt::Debug for MeterSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeterSettings")
            .field("polling_interval", &self.polling_interval)
            .field("may_ask", &self.may_ask)
            .finish_non_exhaustive()
    }
}

impl Meter {
    /// A meter, and the work behind it: nobody is asked unless the future is polled, and nothing is under way any more once it
    /// is dropped.
    pub fn start(
        settings: MeterSettings,
        tell: Tell,
        outcome: Outcome,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let MeterSettings {
            polling_interval,
            may_ask,
            kubelets,
            find,
        } = settings;
        let shared = Arc::new(Shared {
            may_ask,
            table: Mutex::new(Table::new(rounds(polling_interval))),
            news: Notify::new(),
        });
        let task = Task {
            shared: Arc::clone(&shared),
            kubelets,
            find,
            tell,
            outcome,
            under_way: JoinSet::new(),
            which: HashMap::new(),
        };
        (Self { shared }, task.run())
    }

    /// Whether kubelets may be asked at all.
    pub fn may_ask(&self) -> bool {
        self.shared.may_ask
    }

    /// What is to be known for this object from now on; nothing changes if it is the same as before.
    pub fn set(&self, object: ObjectId, wanted: Wanted) {
        if lock(&self.shared.table).set(object, wanted, now()) {
            self.shared.news.notify_one();
        }
    }

    /// Nothing is to be known for this object any more.
    pub fn forget(&self, object: &ObjectId) {
        lock(&self.shared.table).forget(object);
    }

    /// What was heard last. Unknown until pods have been quiet for the whole cooldown, absent without such triggers.
    pub fn verdict(&self, object: &ObjectId) -> Verdict {
        lock(&self.shared.table).verdict(object, now())
    }

    /// Whether to ask: the leader does, others do not. Off until this is called.
    pub fn set_active(&self, on: bool) {
        if lock(&self.shared.table).set_active(on, now()) {
            self.shared.news.notify_one();
        }
    }
}

struct Task {
    shared: Arc<Shared>,
    kubelets: Kubelets,
    find: Find,
    tell: Tell,
    outcome: Outcome,
    under_way: JoinSet<Result<Told, AskError>>,
    /// Whom each of these asks; known also of one that panics, so that it is asked again.
    which: HashMap<Id, Asking>,
}

impl Task {
    async fn run(mut self) {
        loop {
            let next_round = self.send();
            tokio::select! {
                () = self.shared.news.notified() => {}
                Some(ended) = self.under_way.join_next_with_id() => {
                    let (task, outcome) = match ended {
                        Ok((task, outcome)) => (task, outcome),
                        Err(panicked) => (panicked.id(), Err(AskError::Panic)),
                    };
                    if let Some(asking) = self.which.remove(&task) {
                        self.ended(&asking, outcome);
                    }
                }
                () = at(next_round) => {}
            }
        }
    }

    /// Asks whom it is time to ask. When the next round begins.
    fn send(&mut self) -> Option<Instant> {
        let now = now();
        let mut table = lock(&self.shared.table);
        let changed = table.begin_round(now);
        let due: Vec<Asking> = std::iter::from_fn(|| table.next(now)).collect();
        let next_round = table.next_round();
        drop(table);
        for asking in due {
            let ask = ask(
                self.kubelets.clone(),
                Arc::clone(&self.find),
                asking.clone(),
            );
            let task = self.under_way.spawn(ask);
            self.which.insert(task.id(), asking);
        }
        self.tell_all(changed);
        next_round.map(Instant::from_std)
    }

    fn ended(&self, asking: &Asking, outcome: Result<Told, AskError>) {
        (self.outcome)(outcome.as_ref().map_or_else(AskError::reason, |_| SUCCESS));
        let said = outcome.map_err(|error| {
            tracing::debug!(node = %asking.node, error = &error as &dyn std::error::Error, "a kubelet says nothing");
            error.to_string()
        });
        let changed = lock(&self.shared.table).answered(asking, said, now());
        self.tell_all(changed);
    }

    fn tell_all(&self, objects: Vec<ObjectId>) {
        for object in objects {
            (self.tell)(object);
        }
    }
}

/// Asks one, and where it is before if that is not known.
async fn ask(kubelets: Kubelets, find: Find, asking: Asking) -> Result<Told, AskError> {
    let address = if let Some(address) = asking.address {
        address
    } else {
        let patience = kubelets.timeout();
        let found = timeout(patience, find(asking.node)).await;
        found.map_err(|_| AskError::Timeout(patience))??
    };
    let summary = kubelets.ask(address).await?;
    Ok(Told { address, summary })
}
