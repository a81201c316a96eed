//! The life of the process as its connections see it: serving, then leaving in order.
//!
//! Leaving has four steps, each some time after the last: answers ask clients to move on while new connections are
//! still taken; then no more are taken and idle ones closed; then, short of the time limit, what still waits is refused
//! and tunnels are cut.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

/// How far the process is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It serves.
    Serving,
    /// Answers ask clients to move on.
    Leaving,
    /// Idle connections are closed.
    Closing,
    /// What waits is refused, tunnels are cut.
    Refusing,
}

/// The stage, and what is open.
#[derive(Debug)]
pub struct Life {
    stage: watch::Sender<Stage>,
    open: [AtomicUsize; 3],
    /// Told at each end of something open.
    changed: tokio::sync::Notify,
}

/// What can be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// A connection of a client.
    Connection = 0,
    /// A request that is worked on.
    Request = 1,
    /// A connection on which something else than HTTP is spoken by now.
    Tunnel = 2,
}

impl Default for Life {
    fn default() -> Self {
        Self {
            stage: watch::Sender::new(Stage::Serving),
            open: Default::default(),
            changed: tokio::sync::Notify::new(),
        }
    }
}

impl Life {
    /// How far it is.
    pub fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    /// Goes on to this stage; never back.
    pub fn advance(&self, to: Stage) {
        self.stage.send_if_modified(|stage| {
            let moves = to > *stage;
            *stage = to.max(*stage);
            moves
        });
    }

    /// Waits for this stage.
    pub async fn reaches(&self, wanted: Stage) {
        let mut stage = self.stage.subscribe();
        // The sender lives as long as we do.
        let _ = stage.wait_for(|stage| *stage >= wanted).await;
    }

    /// How many of these are open.
    pub fn count(&self, what: Open) -> usize {
        self.open[what as usize].load(Ordering::Relaxed)
    }

    /// Waits until no connection and no tunnel is open.
    pub async fn nothing_is_open(&self) {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if self.count(Open::Connection) + self.count(Open::Tunnel) == 0 {
                return;
            }
            changed.await;
        }
    }

    pub(crate) fn begins(&self, what: Open) {
        self.open[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn ends(&self, what: Open) {
        self.open[what as usize].fetch_sub(1, Ordering::Relaxed);
        if what != Open::Request {
            self.changed.notify_waiters();
        }
    }
}
