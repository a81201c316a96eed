//! The hold with tasks around it: a request waits in a [`Place`] until it may go, and leaves by dropping it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use crate::{
    backend::{Backend, Go},
    hold::{Hold, Limits, LineId, LineState, Overflow, Owner, Room, Ticket},
    lock,
};

/// Where all requests wait that are held by this process.
#[derive(Debug)]
pub struct WaitingRoom {
    hold: Mutex<Hold<Go>>,
    next_line: AtomicU64,
}

/// The place of one request in a line. Dropped, it is free.
#[derive(Debug)]
pub(crate) struct Place {
    backend: Arc<Backend>,
    ticket: Ticket,
    go: oneshot::Receiver<()>,
}

/// Asks for room for more of a request, and gives it back.
#[derive(Debug)]
pub(crate) struct Growth<'a> {
    backend: &'a Backend,
    ticket: Ticket,
}

/// What is in memory of a request that is no longer held. Dropped, its room is free.
#[derive(Debug)]
pub(crate) struct Remains {
    room: Arc<WaitingRoom>,
    owner: Owner,
    bytes: usize,
}

/// The backend is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BackendGone;

impl WaitingRoom {
    /// An empty one.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            hold: Mutex::new(Hold::new(limits)),
            next_line: AtomicU64::new(0),
        })
    }

    /// What is held in all.
    pub fn held(&self) -> Room {
        lock(&self.hold).held()
    }

    /// What one owner holds.
    pub fn held_by(&self, owner: Owner) -> Room {
        lock(&self.hold).held_by(owner)
    }

    pub(crate) fn new_line(&self, owner: Owner) -> LineId {
        let line = LineId(self.next_line.fetch_add(1, Ordering::Relaxed));
        lock(&self.hold).open_line(line, owner);
        line
    }

    pub(crate) fn line(&self, line: LineId) -> LineState {
        lock(&self.hold).line(line)
    }

    pub(crate) fn set_endpoints(&self, backend: &Backend, endpoints: usize) {
        let mut hold = lock(&self.hold);
        hold.set_endpoints(backend.line(), endpoints);
        release(&mut hold, backend);
    }

    pub(crate) fn close_line(&self, backend: &Backend) {
        // Dropping the senders tells those who wait.
        drop(lock(&self.hold).close_line(backend.line()));
        backend.has_line.store(false, Ordering::Relaxed);
    }

    pub(crate) fn forget_line(&self, line: LineId) {
        drop(lock(&self.hold).close_line(line));
    }
}

/// Lets all go that may, and notes whether some still wait.
fn release(hold: &mut Hold<Go>, backend: &Backend) {
    let now = Instant::now();
    while let Some(go) = hold.next(backend.line(), now) {
        // One that is just leaving does not hear it; its place is freed when it is dropped, and the next let go.
        let _ = go.send(());
    }
    let has_line = hold.line(backend.line()).waiting > 0;
    backend.has_line.store(has_line, Ordering::Relaxed);
}

impl Place {
    /// Takes a place at the end of the line, or says why there is none.
    pub(crate) fn take(backend: &Arc<Backend>, bytes: usize) -> Result<Self, Overflow> {
        let (sender, go) = oneshot::channel();
        let mut hold = lock(&backend.room().hold);
        let ticket = hold.enter(backend.line(), bytes, sender)?;
        // It may be its turn already: the endpoints may have come between the look at them and this.
        release(&mut hold, backend);
        drop(hold);
        Ok(Self {
            backend: Arc::clone(backend),
            ticket,
            go,
        })
    }

    /// Its turn to wait for, and what it takes to ask for room meanwhile.
    pub(crate) fn parts(&mut self) -> (&mut oneshot::Receiver<()>, Growth<'_>) {
        let growth = Growth {
            backend: &self.backend,
            ticket: self.ticket,
        };
        (&mut self.go, growth)
    }

    /// The backend failed: back to the old place in the line.
    pub(crate) fn wait_again(&mut self) -> Result<(), BackendGone> {
        let (sender, go) = oneshot::channel();
        self.go = go;
        let mut hold = lock(&self.backend.room().hold);
        if !hold.wait_again(self.ticket, sender) {
            return Err(BackendGone);
        }
        release(&mut hold, &self.backend);
        Ok(())
    }

    /// How long to wait for an answer before it [`Self::lingers`].
    pub(crate) fn patience(&self) -> Duration {
        lock(&self.backend.room().hold).patience(self.backend.line())
    }

    /// The backend has had it for long and not refused it: the next may go. So many bytes of it stay in memory, and are
    /// to be kept with what is returned.
    pub(crate) fn lingers(&self, remains: usize) -> Option<Remains> {
        let room = self.backend.room();
        let mut hold = lock(&room.hold);
        let counted = hold.lingers(self.ticket, remains);
        release(&mut hold, &self.backend);
        drop(hold);
        counted.map(|(owner, bytes)| Remains {
            room: Arc::clone(room),
            owner,
            bytes,
        })
    }

    /// The backend answered.
    pub(crate) fn answered(self) {
        lock(&self.backend.room().hold).answered(self.ticket, Instant::now());
        // The rest, letting the next go, is in the drop.
    }
}

impl Growth<'_> {
    /// Asks for room for more bytes of the request.
    pub(crate) fn grow(&self, bytes: usize) -> bool {
        lock(&self.backend.room().hold).grow(self.ticket, bytes)
    }

    /// Gives back room that was not needed.
    pub(crate) fn shrink(&self, bytes: usize) {
        lock(&self.backend.room().hold).shrink(self.ticket, bytes);
    }
}

impl Drop for Remains {
    fn drop(&mut self) {
        lock(&self.room.hold).give_back(self.owner, self.bytes);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut hold = lock(&self.backend.room().hold);
        hold.leave(self.ticket);
        release(&mut hold, &self.backend);
        if hold.line(self.backend.line()).waiting == 0 {
            self.backend.nobody_waits();
        }
    }
}
