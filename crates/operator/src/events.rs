//! Kubernetes Events: what a user reads in `kubectl describe`.
//!
//! Telling never waits: what is told goes to a queue, and [`Events::start`] returns who writes from it. The same told
//! again within some minutes is counted rather than written anew: `series` decides that. `object` is the form that
//! Kubernetes wants.

mod object;
mod series;

use std::{mem, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    runtime::events::Reporter,
};
use serde_json::json;
use series::{COUNT_EVERY, Count, Deed, Key, Stories};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, error::Elapsed, interval, timeout},
};
use weir_role::metrics::counts::Counter;

/// What waits to be written, at most.
const QUEUE: usize = 1024;
/// The API server has so long to take one.
const WRITE: Duration = Duration::from_secs(5);

/// Tells Events. Cheap to clone; when the last one goes, the writer writes what it has and ends.
#[derive(Clone, Debug)]
pub struct Events {
    queue: mpsc::Sender<Told>,
    lost: Arc<Counter>,
}

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Whether all is well.
    pub kind: NoteKind,
    /// Why, in one word such as `SuccessToScale`.
    pub reason: &'static str,
    /// What was done, in one word such as `Scale`.
    pub action: &'static str,
    /// A sentence. What is longer than Kubernetes takes is cut.
    pub text: String,
}

/// Whether all is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoteKind {
    /// It is.
    Normal,
    /// Somebody should look.
    Warning,
}

#[derive(Clone, Debug)]
struct Told {
    about: ObjectReference,
    note: Note,
}

impl Events {
    /// A place to tell, and who writes; the latter must be waited for.
    pub fn start(client: Client, reporter: Reporter) -> (Self, impl Future<Output = ()> + Send) {
        let (queue, told) = mpsc::channel(QUEUE);
        let events = Self {
            queue,
            lost: Arc::default(),
        };
        (events, write(client, reporter, told))
    }

    /// Tells something about an object. Never waits: what does not fit into the queue is lost, and counted.
    pub fn tell(&self, about: ObjectReference, note: Note) {
        if self.queue.try_send(Told { about, note }).is_err() {
            self.lost.add(1);
            if self.lost.get() == 1 {
                tracing::warn!("Events come faster than the cluster takes them; some are lost");
            }
        }
    }

    /// How many were lost.
    pub fn lost(&self) -> u64 {
        self.lost.get()
    }
}

/// Writes what is told, one after the other. An Event that cannot be written is lost: what it says is in the log and in
/// the status as well.
async fn write(client: Client, reporter: Reporter, mut told: mpsc::Receiver<Told>) {
    let mut writer = Writer {
        client,
        reporter,
        stories: Stories::default(),
        began: Instant::now(),
        failing: false,
    };
    let mut round = interval(COUNT_EVERY);
    round.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            next = told.recv() => match next {
                Some(next) => writer.tell(next).await,
                None => break,
            },
            _ = round.tick() => writer.count_up(false).await,
        }
    }
    writer.count_up(true).await;
}

struct Writer {
    client: Client,
    reporter: Reporter,
    stories: Stories,
    began: Instant,
    failing: bool,
}

impl Writer {
    async fn tell(&mut self, Told { about, note }: Told) {
        let key = Key::new(&about, &note);
        match self.stories.hear(&key, self.began.elapsed()) {
            Deed::Later => {}
            Deed::Write(count) => self.count(count).await,
            Deed::Create => {
                let event = object::event(&about, &note, &self.reporter, Timestamp::now());
                let name = event.metadata.name.clone().unwrap_or_default();
                let parameters = PostParams::default();
                let events = self.events(key.namespace());
                let written = events.create(&parameters, &event);
                let written = timeout(WRITE, written).await;
                if self.is_written(written.map(|written| written.map(drop))) {
                    self.stories.begin(key, name, self.began.elapsed());
                }
            }
        }
    }

    async fn count_up(&mut self, at_once: bool) {
        for count in self.stories.behind(self.began.elapsed(), at_once) {
            self.count(count).await;
        }
    }

    async fn count(&mut self, Count { key, event, times }: Count) {
        let now = MicroTime(Timestamp::now());
        let series = json!({ "series": { "count": times, "lastObservedTime": now } });
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(&series));
        let events = self.events(key.namespace());
        let written = timeout(WRITE, events.patch(&event, &parameters, &patch)).await;
        if let Ok(Err(kube::Error::Api(status))) = &written
            && status.code == 404
        {
            // Kubernetes forgets Events after an hour. The next one begins a new story.
            self.stories.end(&key);
            return;
        }
        self.is_written(written.map(|written| written.map(drop)));
    }

    fn events(&self, namespace: Option<&str>) -> Api<Event> {
        Api::namespaced(self.client.clone(), object::namespace(namespace))
    }

    /// Said once when it begins to fail, and once when that is over.
    fn is_written(&mut self, written: Result<kube::Result<()>, Elapsed>) -> bool {
        let trouble = match written {
            Ok(Ok(())) => {
                if mem::take(&mut self.failing) {
                    tracing::info!("Events can be written again");
                }
                return true;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        if !mem::replace(&mut self.failing, true) {
            tracing::warn!(
                error = trouble,
                "an Event cannot be written; see whether this ServiceAccount may create and patch events of the group \"events.k8s.io\""
            );
        }
        false
    }
}
