//! Who may wait, and who goes next: the hold as a synchronous state machine without I/O and without a clock.
//!
//! A *line* is where the requests for one backend wait, an *owner* is whose limits they count against (a service
//! may have several ports, and a line for each). A request **enters** a line or is refused, is **released** when the
//! backend can take it, then is answered and leaves, or waits again in its old place because the backend failed.
//! [`crate::waiting`] puts tasks around this.
//!
//! Three rules make it fair. Within a line the oldest goes first, also one that comes back. No owner may hold more
//! than what is left free for all others, so one flood cannot shut the door to a newcomer (the *dynamic threshold* of
//! shared packet buffers: a single flood gets half of the room, two get a third each). And each line has a window of
//! requests that are with the backend: one that has just woken gets as much as it takes, which [`pace`] finds out.

mod pace;

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use self::pace::{Pace, Round};

/// What may be held, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Over all owners.
    pub total: Room,
    /// By one owner.
    pub each: Room,
}

/// An amount of what is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Requests.
    pub requests: usize,
    /// Bytes of their heads and of what was read of their bodies, those included that are with a backend for long.
    pub bytes: usize,
}

/// Whose limits a request counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(pub u64);

/// A place where requests wait for one backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LineId(pub u64);

/// A held request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket {
    line: LineId,
    /// Counts up over all lines: the lower, the older.
    number: u64,
}

/// Why a request cannot be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// Its owner holds as many requests as it may.
    OwnerRequests,
    /// Its owner holds as many bytes as it may.
    OwnerBytes,
    /// All owners together hold as many requests as they may, or this one would take the last room of others.
    TotalRequests,
    /// The same for bytes.
    TotalBytes,
    /// There is no such line any more.
    Gone,
}

/// All that is held. `W` is what it takes to tell a waiting request that it may go.
#[derive(Debug)]
pub struct Hold<W> {
    limits: Limits,
    total: Room,
    owners: HashMap<Owner, Room>,
    lines: HashMap<LineId, Line<W>>,
    next_number: u64,
}

#[derive(Debug)]
struct Line<W> {
    owner: Owner,
    pace: Pace,
    /// By age.
    waiting: BTreeMap<u64, Waiting<W>>,
    /// With the backend, or on the way to it.
    released: HashMap<u64, Released>,
}

#[derive(Debug)]
struct Released {
    bytes: usize,
    at: Instant,
    round: Round,
}

#[derive(Debug)]
struct Waiting<W> {
    bytes: usize,
    go: W,
}

/// What a line looks like from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineState {
    /// Requests that wait.
    pub waiting: usize,
    /// Held requests that are with the backend.
    pub released: usize,
    /// How many may be with the backend at a time.
    pub window: usize,
}

impl<W> Hold<W> {
    /// An empty hold.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            total: Room::default(),
            owners: HashMap::new(),
            lines: HashMap::new(),
            next_number: 0,
        }
    }

    /// Makes a line, with a backend that is not ready. A line that is there already stays as it is.
    pub fn open_line(&mut self, line: LineId, owner: Owner) {
        self.lines.entry(line).or_insert_with(|| Line {
            owner,
            pace: Pace::default(),
            waiting: BTreeMap::new(),
            released: HashMap::new(),
        });
    }

    /// Ends a line. What waits there is given back, to be told; what is with the backend is not touched.
    pub fn close_line(&mut self, line: LineId) -> Vec<W> {
        let Some(line) = self.lines.remove(&line) else {
            return Vec::new();
        };
        let mut told = Vec::with_capacity(line.waiting.len());
        for (_, waiting) in line.waiting {
            self.release_room(line.owner, waiting.bytes);
            told.push(waiting.go);
        }
        for (_, released) in line.released {
            self.release_room(line.owner, released.bytes);
        }
        told
    }

    /// Says how many endpoints of the backend are ready.
    pub fn set_endpoints(&mut self, line: LineId, endpoints: usize) {
        if let Some(line) = self.lines.get_mut(&line) {
            line.pace.set_endpoints(endpoints);
        }
    }

    /// Takes a request in, at the end of the line.
    pub fn enter(&mut self, line: LineId, bytes: usize, go: W) -> Result<Ticket, Overflow> {
        let Some(owner) = self.lines.get(&line).map(|line| line.owner) else {
            return Err(Overflow::Gone);
        };
        self.take_room(owner, Room { requests: 1, bytes })?;
        let number = self.next_number;
        self.next_number += 1;
        if let Some(line) = self.lines.get_mut(&line) {
            line.waiting.insert(number, Waiting { bytes, go });
        }
        Ok(Ticket { line, number })
    }

    /// The next request of this line that may go now.
    pub fn next(&mut self, line: LineId, now: Instant) -> Option<W> {
        let line = self.lines.get_mut(&line)?;
        if line.released.len() >= line.pace.window() {
            return None;
        }
        let (number, waiting) = line.waiting.pop_first()?;
        let released = Released {
            bytes: waiting.bytes,
            at: now,
            round: line.pace.round(),
        };
        line.released.insert(number, released);
        Some(waiting.go)
    }

    /// More of a held request's body was read. Says whether there is room; if not, nothing has changed.
    pub fn grow(&mut self, ticket: Ticket, bytes: usize) -> bool {
        let Some(owner) = self.lines.get(&ticket.line).map(|line| line.owner) else {
            return false;
        };
        if !self.is_held(ticket) || self.take_room(owner, Room { requests: 0, bytes }).is_err() {
            return false;
        }
        if let Some(line) = self.lines.get_mut(&ticket.line) {
            if let Some(waiting) = line.waiting.get_mut(&ticket.number) {
                waiting.bytes += bytes;
            } else if let Some(released) = line.released.get_mut(&ticket.number) {
                released.bytes += bytes;
            }
        }
        true
    }

    /// Less is kept of a held request than there was room asked for.
    pub fn shrink(&mut self, ticket: Ticket, bytes: usize) {
        let Some(line) = self.lines.get_mut(&ticket.line) else {
            return;
        };
        let waiting = line.waiting.get_mut(&ticket.number).map(|it| &mut it.bytes);
        let released = line.released.get_mut(&ticket.number);
        let Some(held) = waiting.or(released.map(|it| &mut it.bytes)) else {
            return;
        };
        let bytes = bytes.min(*held);
        *held -= bytes;
        self.total.bytes -= bytes;
        if let Some(of_owner) = self.owners.get_mut(&line.owner) {
            of_owner.bytes -= bytes;
        }
    }

    /// The backend answered a released request.
    pub fn answered(&mut self, ticket: Ticket, now: Instant) {
        let Some(line) = self.lines.get_mut(&ticket.line) else {
            return;
        };
        if let Some(released) = line.released.get(&ticket.number) {
            let took = now.saturating_duration_since(released.at);
            line.pace.answered(released.round, took);
        }
        self.leave(ticket);
    }

    /// For how long a released request may be with the backend before [`Self::lingers`].
    pub fn patience(&self, line: LineId) -> Duration {
        let line = self.lines.get(&line);
        line.map_or(Duration::ZERO, |line| line.pace.patience())
    }

    /// The backend has had a released request for long and not refused it: it is no longer held, and the next may go.
    ///
    /// `remains` of its bytes are in memory still, and count for the owner that is returned until
    /// [`Self::give_back`]; never more than it was held with.
    pub fn lingers(&mut self, ticket: Ticket, remains: usize) -> Option<(Owner, usize)> {
        let line = self.lines.get_mut(&ticket.line)?;
        let bytes = line.released.get(&ticket.number)?.bytes;
        line.pace.lingers();
        let owner = line.owner;
        let remains = remains.min(bytes);
        self.shrink(ticket, remains);
        self.leave(ticket);
        // Room that was this request's a moment ago: nobody can have taken it.
        self.total.bytes += remains;
        self.owners.entry(owner).or_default().bytes += remains;
        Some((owner, remains))
    }

    /// What remained of a request that lingered is no longer in memory.
    pub fn give_back(&mut self, owner: Owner, remains: usize) {
        self.release(
            owner,
            Room {
                requests: 0,
                bytes: remains,
            },
        );
    }

    /// The backend did not take a released request: it goes back to its old place, and fewer are sent. Says whether
    /// it waits again; a request that is no longer held, or was never released, does not.
    pub fn wait_again(&mut self, ticket: Ticket, go: W) -> bool {
        let Some(line) = self.lines.get_mut(&ticket.line) else {
            return false;
        };
        let Some(Released { bytes, .. }) = line.released.remove(&ticket.number) else {
            return false;
        };
        line.pace.failed();
        line.waiting.insert(ticket.number, Waiting { bytes, go });
        true
    }

    /// A request is no longer held, for whatever reason. Again and again is as good as once.
    pub fn leave(&mut self, ticket: Ticket) {
        let Some(line) = self.lines.get_mut(&ticket.line) else {
            return;
        };
        let waiting = line.waiting.remove(&ticket.number).map(|it| it.bytes);
        let released = || line.released.remove(&ticket.number).map(|it| it.bytes);
        if let Some(bytes) = waiting.or_else(released) {
            let owner = line.owner;
            self.release_room(owner, bytes);
        }
    }

    /// What a line looks like.
    pub fn line(&self, line: LineId) -> LineState {
        self.lines
            .get(&line)
            .map_or_else(LineState::default, |line| LineState {
                waiting: line.waiting.len(),
                released: line.released.len(),
                window: line.pace.window(),
            })
    }

    /// What an owner holds.
    pub fn held_by(&self, owner: Owner) -> Room {
        self.owners.get(&owner).copied().unwrap_or_default()
    }

    /// What all hold together.
    pub fn held(&self) -> Room {
        self.total
    }

    fn is_held(&self, ticket: Ticket) -> bool {
        self.lines.get(&ticket.line).is_some_and(|line| {
            line.waiting.contains_key(&ticket.number) || line.released.contains_key(&ticket.number)
        })
    }

    fn take_room(&mut self, owner: Owner, more: Room) -> Result<(), Overflow> {
        let Limits { total, each } = self.limits;
        let held = self.held_by(owner);
        let requests = held.requests + more.requests;
        let bytes = held.bytes + more.bytes;
        if requests > each.requests {
            return Err(Overflow::OwnerRequests);
        }
        if bytes > each.bytes {
            return Err(Overflow::OwnerBytes);
        }
        // What an owner has, with what it asks for, may not exceed what is free before it asks.
        if more.requests > 0 && requests > total.requests.saturating_sub(self.total.requests) {
            return Err(Overflow::TotalRequests);
        }
        if bytes > total.bytes.saturating_sub(self.total.bytes) {
            return Err(Overflow::TotalBytes);
        }
        self.total.requests += more.requests;
        self.total.bytes += more.bytes;
        self.owners.insert(owner, Room { requests, bytes });
        Ok(())
    }

    /// Gives back the room of one request.
    fn release_room(&mut self, owner: Owner, bytes: usize) {
        self.release(owner, Room { requests: 1, bytes });
    }

    fn release(&mut self, owner: Owner, room: Room) {
        self.total.requests = self.total.requests.saturating_sub(room.requests);
        self.total.bytes = self.total.bytes.saturating_sub(room.bytes);
        if let Some(held) = self.owners.get_mut(&owner) {
            held.requests = held.requests.saturating_sub(room.requests);
            held.bytes = held.bytes.saturating_sub(room.bytes);
            if *held == Room::default() {
                self.owners.remove(&owner);
            }
        }
    }
}

#[cfg(test)]
mod tests;
