//! What happened when: watches on some objects, each change noted with the time at which it was seen.
//!
//! Kubernetes' own times are whole seconds, which is too coarse for most of what is measured.

use std::{
    io::BufReader,
    process::{Child, Stdio},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use serde_json::Value;
use weir_lab::cluster::Cluster;

/// A watch that ended, say because the API server was away, is begun again after this time.
const AGAIN: Duration = Duration::from_millis(500);

/// A fact, and when it was seen.
pub(crate) type Noted<F> = (f64, F);

/// What a watch's event says, if it says anything.
pub(crate) type Read<F> = fn(&Value) -> Option<F>;

/// All that was seen since it was started.
pub(crate) struct Log<F> {
    notes: Arc<Notes<F>>,
    watches: Vec<JoinHandle<()>>,
}

struct Notes<F> {
    all: Mutex<Vec<Noted<F>>>,
    changed: Condvar,
    is_over: AtomicBool,
    children: Mutex<Vec<Child>>,
}

impl<F: Send + 'static> Log<F> {
    /// Begins to watch: each is what `kubectl get` takes, and how its events are read.
    pub(crate) fn start(cluster: &Cluster, watches: Vec<(Vec<String>, Read<F>)>) -> Self {
        let notes = Arc::new(Notes {
            all: Mutex::default(),
            changed: Condvar::default(),
            is_over: AtomicBool::default(),
            children: Mutex::default(),
        });
        let watch = |(what, read): (Vec<String>, Read<F>)| {
            let (cluster, notes) = (cluster.clone(), Arc::clone(&notes));
            thread::spawn(move || notes.watch(&cluster, &what, read))
        };
        let watches = watches.into_iter().map(watch).collect();
        Self { notes, watches }
    }
}

impl<F> Log<F> {
    /// Waits until this is found in what was seen; looks after each change.
    pub(crate) fn until<T>(
        &self,
        patience: Duration,
        find: impl Fn(&[Noted<F>]) -> Result<T, &'static str>,
    ) -> Result<T> {
        let deadline = Instant::now() + patience;
        let mut all = lock(&self.notes.all);
        loop {
            let missing = match find(&all) {
                Ok(found) => return Ok(found),
                Err(missing) => missing,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(anyhow!("not seen within {patience:?}: {missing}"));
            }
            let waited = self.notes.changed.wait_timeout(all, left);
            all = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What comes of all that was seen so far.
    pub(crate) fn read<T>(&self, find: impl FnOnce(&[Noted<F>]) -> T) -> T {
        find(&lock(&self.notes.all))
    }
}

impl<F> Drop for Log<F> {
    fn drop(&mut self) {
        self.notes.is_over.store(true, Ordering::SeqCst);
        self.notes.end_children();
        for watch in self.watches.drain(..) {
            // One that panicked has noted less, and somebody missed it.
            let _ = watch.join();
        }
    }
}

impl<F> Notes<F> {
    fn watch(&self, cluster: &Cluster, what: &[String], read: Read<F>) {
        while !self.is_over.load(Ordering::SeqCst) {
            let mut kubectl = cluster.kubectl();
            kubectl.args(["get", "--watch", "--output-watch-events", "-o", "json"]);
            kubectl.args(what).stdin(Stdio::null());
            let child = kubectl.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
            if let Ok(mut child) = child
                && let Some(output) = child.stdout.take()
            {
                lock(&self.children).push(child);
                if self.is_over.load(Ordering::SeqCst) {
                    self.end_children();
                }
                let events = serde_json::Deserializer::from_reader(BufReader::new(output));
                for event in events.into_iter::<Value>() {
                    let Ok(event) = event else { break };
                    if let Some(fact) = read(&event) {
                        lock(&self.all).push((super::now(), fact));
                        self.changed.notify_all();
                    }
                }
            }
            if !self.is_over.load(Ordering::SeqCst) {
                thread::sleep(AGAIN);
            }
        }
    }

    fn end_children(&self) {
        for mut child in lock(&self.children).drain(..) {
            // One that has ended by itself is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
