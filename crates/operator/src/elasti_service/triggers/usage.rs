//! `resolver` triggers: a workload that stays behind resolvers is idle while none of them has had anything for it. They
//! count, and are asked each round what they have counted; nobody else is asked.
//!
//! - [`table`]: of whom it is to be known, and what the answers mean;
//! - here are the [`Turnstile`], on which a controller reads, and the task that asks.

pub mod table;

use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::Notify;
use weir_role::{cluster::ObjectId, metrics::lock};

use self::table::{Table, Wanted};
use super::{Outcome, SUCCESS, Tell, Verdict, at, now, rounds};
use crate::resolvers::Resolvers;

/// What the `resolver` triggers of every object said last. Cheap to clone; every call returns at once.
#[derive(Clone, Debug)]
pub struct Turnstile {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    table: Mutex<Table>,
    /// Resolvers are to be asked from now on, or no more.
    news: Notify,
}

impl Turnstile {
    /// A turnstile, and the work behind it: nobody is asked unless the future is polled.
    pub fn start(
        polling_interval: Duration,
        resolvers: Resolvers,
        tell: Tell,
        outcome: Outcome,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let shared = Arc::new(Shared {
            table: Mutex::new(Table::new(rounds(polling_interval))),
            news: Notify::new(),
        });
        let work = run(Arc::clone(&shared), resolvers, tell, outcome);
        (Self { shared }, work)
    }

    /// What is to be known for this object from now on; nothing, if it has no such trigger.
    pub fn set(&self, object: ObjectId, wanted: Option<Wanted>) {
        if lock(&self.shared.table).set(object, wanted) {
            self.shared.news.notify_one();
        }
    }

    /// Nothing is to be known for this object any more.
    pub fn forget(&self, object: &ObjectId) {
        lock(&self.shared.table).forget(object);
    }

    /// What was heard last. Unknown until it has not been used for the whole cooldown, absent without such triggers.
    pub fn verdict(&self, object: &ObjectId) -> Verdict {
        lock(&self.shared.table).verdict(object, now())
    }

    /// Asks now, if something is to be known for one of these: before something is done that only what is so at this moment
    /// allows. Those of which something else is to be said than before.
    pub async fn ask(&self, objects: &[ObjectId], resolvers: &Resolvers) -> Vec<ObjectId> {
        let follows = |table: &Table| objects.iter().any(|object| table.follows(object));
        if !follows(&lock(&self.shared.table)) {
            return Vec::new();
        }
        let asked = now();
        let answers = resolvers.usage().await;
        lock(&self.shared.table).heard(asked, answers, now())
    }

    /// Whether to ask: the leader does, others do not. Off until this is called.
    pub fn set_active(&self, on: bool) {
        if lock(&self.shared.table).set_active(on, now()) {
            self.shared.news.notify_one();
        }
    }
}

/// Asks all resolvers at once, each round.
async fn run(shared: Arc<Shared>, resolvers: Resolvers, tell: Tell, outcome: Outcome) {
    loop {
        if !lock(&shared.table).begin_round(now()) {
            let next_round = lock(&shared.table).next_round();
            tokio::select! {
                () = shared.news.notified() => {}
                () = at(next_round.map(Into::into)) => {}
            }
            continue;
        }
        let asked = now();
        let answers = resolvers.usage().await;
        for answer in answers.values() {
            outcome(
                answer
                    .as_ref()
                    .map_or_else(|error| error.reason, |_| SUCCESS),
            );
        }
        let changed = lock(&shared.table).heard(asked, answers, now());
        for object in changed {
            tell(object);
        }
    }
}
