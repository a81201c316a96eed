//! Kubernetes Events: what a user reads in `kubectl describe`.
//!
//! Telling never waits: what is told goes to a queue, and [`Events::start`] returns who writes from it. The same told
//! again within some minutes is counted rather than written anew; `series` decides that.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, runtime::events::Reporter};
use tokio::sync::mpsc;
use weir_role::metrics::counts::Counter;

/// What waits to be written, at most.
const QUEUE: usize = 1024;

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

async fn write(_client: Client, _reporter: Reporter, mut told: mpsc::Receiver<Told>) {
    while told.recv().await.is_some() {}
}
