//! Scale-down triggers: asked on a timer, remembered until asked again.
//!
//! - [`question`]: what a trigger comes down to; [`address`] reads where it is asked;
//! - [`table`]: who asks what, what was heard, what is due; [`queue`] is its order of sending;
//! - [`client`] asks one question, and [`answer`] reads what comes back;
//! - [`judge`]: what the answers of an object mean together;
//! - [`network`]: triggers that ask kubelets instead, with a table and a client of their own;
//! - [`usage`]: triggers that ask resolvers;
//! - here are the [`Board`], on which a controller reads them, and the task that asks.

mod address;
pub mod answer;
pub mod client;
pub mod judge;
pub mod network;
pub mod question;
pub mod queue;
pub mod table;
pub mod usage;

use std::{
    collections::HashMap,
    fmt,
    future::{Future, pending},
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    sync::Notify,
    task::{Id, JoinSet},
    time::{Instant, sleep_until},
};
use weir_api::hold::Trigger;
use weir_role::{cluster::ObjectId, metrics::lock};

use self::{
    client::{AskError, Client},
    question::Defaults,
    table::{Asking, Table},
};
use weir_hold::facts::Triggers;

/// Rounds follow each other neither faster nor slower than this, whatever is set.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);
const LONGEST_INTERVAL: Duration = Duration::from_hours(7 * 24);
/// What is counted for a question that was answered.
const SUCCESS: &str = "success";

/// Told when what the triggers of an object say has changed.
pub type Tell = Arc<dyn Fn(ObjectId) + Send + Sync>;

/// Told how each request ended: `success`, or a reason out of a fixed set.
pub type Outcome = Arc<dyn Fn(&'static str) + Send + Sync>;

/// How triggers are asked.
#[derive(Clone)]
pub struct TriggerSettings {
    /// The time from one round to the next (`POLLING_INTERVAL`).
    pub polling_interval: Duration,
    /// The server of triggers that name none.
    pub default_address: Option<String>,
    /// The Authorization header of triggers that give none.
    pub default_authorization: Option<Secret>,
}

/// A text that is sent, and never printed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

/// What the triggers of an object say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// All of them together.
    pub triggers: Triggers,
    /// The trigger that is busy, or why one could not be asked; for people.
    pub why: Option<String>,
    /// Nobody was asked yet, so that what was said of it before stays.
    pub is_unheard: bool,
}

/// What every object's triggers said last. Cheap to clone; every call returns at once.
#[derive(Clone, Debug)]
pub struct Board {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    defaults: Defaults,
    table: Mutex<Table>,
    /// Something is to be asked, or nothing any more.
    news: Notify,
}

impl Secret {
    /// A text to keep quiet about.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, to be sent.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl Verdict {
    /// What somebody was asked for, or what needs nobody.
    pub fn new(triggers: Triggers, why: Option<String>) -> Self {
        Self {
            triggers,
            why,
            is_unheard: false,
        }
    }

    /// Nobody was asked yet. Nobody is to blame for it, so nothing is said.
    pub fn unheard() -> Self {
        Self {
            is_unheard: true,
            ..Self::new(Triggers::Unknown, None)
        }
    }
}

impl fmt::Debug for TriggerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // There may be a password in the address.
        f.debug_struct("TriggerSettings")
            .field("polling_interval", &self.polling_interval)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Board {
    /// A board, and the work behind it: nothing is asked unless the future is polled, and nothing is
    /// under way any more once it is dropped.
    pub fn start(
        settings: TriggerSettings,
        tell: Tell,
        outcome: Outcome,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        Self::start_with(Client::new(), settings, tell, outcome)
    }

    /// The same with a client of one's own.
    pub fn start_with(
        client: Client,
        settings: TriggerSettings,
        tell: Tell,
        outcome: Outcome,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let TriggerSettings {
            polling_interval,
            default_address,
            default_authorization,
        } = settings;
        let interval = rounds(polling_interval);
        let shared = Arc::new(Shared {
            defaults: Defaults {
                address: default_address.map(Secret::new),
                authorization: default_authorization,
            },
            table: Mutex::new(Table::new(interval, client.timeout())),
            news: Notify::new(),
        });
        let task = Task {
            shared: Arc::clone(&shared),
            client,
            tell,
            outcome,
            under_way: JoinSet::new(),
            which: HashMap::new(),
        };
        (Self { shared }, task.run())
    }

    /// What is to be asked for this object from now on; nothing changes if it is the same as before.
    pub fn set(&self, object: ObjectId, triggers: &[Trigger], cooldown: Duration) {
        let asks = question::asks(triggers, cooldown, &self.shared.defaults);
        if lock(&self.shared.table).set(object, asks, now()) {
            self.shared.news.notify_one();
        }
    }

    /// Nothing is asked for this object any more.
    pub fn forget(&self, object: &ObjectId) {
        lock(&self.shared.table).forget(object);
    }

    /// What was heard last, for whoever is told when that changes. Unknown until the first answer, absent without triggers.
    pub fn read(&self, object: &ObjectId) -> Verdict {
        lock(&self.shared.table).read(object, now())
    }

    /// The same for others.
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
    client: Client,
    tell: Tell,
    outcome: Outcome,
    under_way: JoinSet<Result<f64, AskError>>,
    /// Which question each of these asks; known also of one that panics, so that it is asked again.
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

    /// Sends what is due and has room. When the next round begins.
    fn send(&mut self) -> Option<Instant> {
        let now = now();
        let mut table = lock(&self.shared.table);
        let run_out = table.begin_round(now);
        let due: Vec<Asking> = std::iter::from_fn(|| table.next(now)).collect();
        let next_round = table.next_round();
        drop(table);
        for asking in due {
            let client = self.client.clone();
            let question = Arc::clone(&asking.question);
            let task = self
                .under_way
                .spawn(async move { client.ask(&question).await });
            self.which.insert(task.id(), asking);
        }
        self.tell_all(run_out);
        next_round.map(Instant::from_std)
    }

    fn ended(&self, asking: &Asking, outcome: Result<f64, AskError>) {
        (self.outcome)(outcome.as_ref().map_or_else(AskError::reason, |_| SUCCESS));
        let said = outcome.map_err(|error| {
            let why = format!("{}: {error}", asking.question);
            tracing::debug!("{why}");
            why
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

/// The time from one round to the next.
fn rounds(polling_interval: Duration) -> Duration {
    polling_interval.clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL)
}

/// Of tokio's clock, which tests can stop.
fn now() -> std::time::Instant {
    Instant::now().into_std()
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}
