//! The phase in which a connection waits: it takes a place in its backend's line, what its client says meanwhile is kept as
//! far as there is room, and when it is its turn it is connected, as often as it takes.

use std::{
    io,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use tokio::{
    io::Interest,
    time::{sleep, sleep_until, timeout},
};

use super::{Attempt, Passing};
use crate::{
    backend::{Backend, End},
    hold::Overflow,
    life::Stage,
    retry,
    sniff::Raw,
    waiting::{BackendGone, Growth, Place},
};

/// What a waiting connection costs besides its bytes, roughly.
const OVERHEAD: usize = 1024;
/// How much is read at a time.
const PIECE: usize = 16 * 1024;
/// The most memory that keeping such a piece can take.
const MOST: usize = 64 * 1024;
/// How often to look whether a client has gone whose last words cannot be read.
const LOOK: Duration = Duration::from_secs(1);

/// How the wait ended.
enum Wait {
    Over,
    TimeUp,
    BackendGone,
    ClientGone,
    WeLeave,
}

/// What is known of the client after listening for a while.
enum Listened {
    /// It is there.
    There,
    Gone,
}

impl Passing {
    /// Admit, hold, pick, connect, forward.
    pub(super) async fn hold(&mut self) -> End {
        let backend = &Arc::clone(&self.backend);
        let deadline = self.deadline();
        let mut place: Option<Place> = None;
        let mut attempts = 0;
        loop {
            // Admit, or back to its place; which it has lost if an endpoint had taken it before it broke.
            self.occupied.waits();
            if self.shard.shared.life.stage() == Stage::Refusing {
                return refused(backend, "leaving");
            }
            let mut mine = match place.take() {
                Some(mut mine) => match mine.wait_again() {
                    Ok(()) => mine,
                    Err(BackendGone) => return refused(backend, "gone"),
                },
                None => match Place::take(backend, OVERHEAD + self.kept.length()) {
                    Ok(mine) => mine,
                    Err(overflow) => return refused(backend, reason(overflow)),
                },
            };

            // Hold.
            backend.begins_to_wait();
            match self.wait(&mut mine, deadline).await {
                Wait::Over => {}
                Wait::TimeUp => return refused(backend, "time_up"),
                Wait::BackendGone => return refused(backend, "gone"),
                Wait::WeLeave => return refused(backend, "leaving"),
                Wait::ClientGone => return End::ClientGone,
            }
            place = Some(mine);

            // Pick, connect, forward.
            let Some(picked) = backend.pick() else {
                continue;
            };
            let fresh = picked.room_for_a_new_one().await;
            match self.attempt(picked, &mut place, fresh).await {
                Attempt::Over(end) => return end,
                Attempt::Again(cause) => backend.observer.retried(cause.as_str()),
            }
            attempts += 1;
            let pause = retry::pause(attempts, backend.addresses().len());
            sleep(pause.min(deadline.saturating_duration_since(Instant::now()))).await;
        }
    }

    /// Waits for its turn, and listens to the client meanwhile.
    async fn wait(&mut self, place: &mut Place, deadline: Instant) -> Wait {
        let shared = Arc::clone(&self.shard.shared);
        let connection = Arc::clone(&self.connection);
        let time_up = sleep_until(deadline.into());
        let mut time_up = std::pin::pin!(time_up);
        let we_leave = shared.life.reaches(Stage::Refusing);
        let mut we_leave = std::pin::pin!(we_leave);
        loop {
            let (turn, room) = place.parts();
            tokio::select! {
                biased;
                () = time_up.as_mut() => return Wait::TimeUp,
                () = we_leave.as_mut() => return Wait::WeLeave,
                _ = connection.ordered() => return Wait::ClientGone,
                listened = self.listen(&room) => match listened {
                    Listened::There => {}
                    Listened::Gone => return Wait::ClientGone,
                },
                turn = turn => return match turn {
                    Ok(()) => Wait::Over,
                    Err(_) => Wait::BackendGone,
                },
            }
        }
    }

    /// Reads what the client says, or waits for it to go. May be given up at any time and called again.
    async fn listen(&mut self, room: &Growth<'_>) -> Listened {
        if self.is_finished || self.is_full {
            self.hangs_up().await;
            return Listened::Gone;
        }
        if self.client.readable().await.is_err() {
            return Listened::Gone;
        }
        // Room is taken before the look, and what was not needed given back at once.
        let most = self.shard.shared.settings.max_replay;
        if self.kept.length() + MOST > most || !room.grow(MOST) {
            // The rest stays where it is.
            self.is_full = true;
            return Listened::There;
        }
        let (listened, taken) = self.read_a_piece();
        room.shrink(MOST.saturating_sub(taken));
        listened
    }

    /// Also returns how much memory that took.
    fn read_a_piece(&mut self) -> (Listened, usize) {
        // Here and not in the future of everyone who waits.
        let mut piece = [0; PIECE];
        match self.client.try_read(&mut piece) {
            Ok(0) if self.is_over_at_its_end() => (Listened::Gone, 0),
            Ok(0) => {
                self.is_finished = true;
                (Listened::There, 0)
            }
            Ok(length) => {
                self.connection.has_said_something();
                (Listened::There, self.kept.push(&piece[..length]))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => (Listened::There, 0),
            Err(_) => (Listened::Gone, 0),
        }
    }

    /// Whether a client that says no more has gone. In TLS nobody ends his side before he was answered, and one that never
    /// said anything asks for nothing; else it may well wait for an answer to what it has said.
    fn is_over_at_its_end(&self) -> bool {
        self.protocol == Raw::Tls || self.kept.length() == 0
    }

    /// Waits until the client has gone, without reading.
    async fn hangs_up(&self) {
        loop {
            let reset = self.client.ready(Interest::ERROR);
            if timeout(LOOK, reset).await.is_ok() {
                return;
            }
            if self.is_over_at_its_end() && self.is_read_closed() {
                return;
            }
        }
    }

    fn is_read_closed(&self) -> bool {
        let ready = std::pin::pin!(self.client.ready(Interest::READABLE));
        let ready = ready.poll(&mut Context::from_waker(Waker::noop()));
        matches!(ready, Poll::Ready(Ok(ready)) if ready.is_read_closed())
    }
}

/// It cannot be told why; the metrics can.
fn refused(backend: &Backend, reason: &'static str) -> End {
    backend.observer.refused(reason);
    End::Refused
}

fn reason(overflow: Overflow) -> &'static str {
    match overflow {
        Overflow::OwnerRequests => "full_requests",
        Overflow::OwnerBytes => "full_bytes",
        Overflow::TotalRequests => "full_requests_total",
        Overflow::TotalBytes => "full_bytes_total",
        Overflow::Gone => "gone",
    }
}
