//! A connection that does not speak HTTP, phase by phase as a request has them in [`crate::exchange`]: admit, hold, pick,
//! connect, forward, finish.
//!
//! It is held as a request is, with what its client has said so far ([`kept`]), and connected to an endpoint when it is its
//! turn ([`held`]). From then on bytes pass both ways ([`crate::relay`]). Where a request would be answered that it cannot be
//! served, this is reset: no answer can be given in a protocol that we do not speak.

mod held;
mod kept;

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use kept::Kept;
use tokio::{net::TcpStream, sync::OwnedSemaphorePermit, time::sleep};

use crate::{
    backend::{Backend, Carried, End},
    client::{ClientConnection, Occupied},
    endpoint::Picked,
    life::Stage,
    relay::{self, Broken, Manner, Progress, Told},
    shard::{Led, Shard},
    sniff::{self, Raw},
    upstream::{self, Cause},
    usage::InUse,
    waiting::Place,
};

/// An endpoint that has had a connection for so long has taken it: the next may go.
const TAKEN_AFTER: Duration = Duration::from_millis(250);
/// What is kept of a connection after that, when it is no longer counted as held, so that it can begin again.
const SPARE: usize = 16 * 1024;

/// A connection that is passed through.
pub(crate) struct Passing {
    shard: Arc<Shard>,
    backend: Arc<Backend>,
    connection: Arc<ClientConnection>,
    client: TcpStream,
    protocol: Raw,
    kept: Kept,
    /// Nothing more comes from the client.
    is_finished: bool,
    /// There is no room to keep more: the rest stays in the socket.
    is_full: bool,
    occupied: Occupied,
    in_use: Option<InUse>,
    progress: Progress,
}

/// What came of an attempt.
enum Attempt {
    Over(End),
    /// It did not go well, but may be tried again.
    Again(Cause),
}

impl Passing {
    pub(crate) fn new(
        shard: &Arc<Shard>,
        led: Led,
        connection: &Arc<ClientConnection>,
        client: TcpStream,
        protocol: Raw,
    ) -> Self {
        let Led { backend, is_use } = led;
        let occupied = Occupied::new(&shard.shared.clients, connection, &backend);
        Self {
            shard: Arc::clone(shard),
            in_use: is_use.then(|| InUse::new(&backend)),
            backend,
            connection: Arc::clone(connection),
            client,
            protocol,
            kept: Kept::default(),
            is_finished: false,
            is_full: false,
            occupied,
            progress: Progress::default(),
        }
    }

    /// Takes it to its end. `said` is what the client has said, `is_finished`: and that was all.
    pub(crate) async fn run(mut self, said: &[u8], is_finished: bool) {
        self.kept = Kept::new(said);
        self.is_finished = is_finished;
        let end = self.carry().await;
        // Finish. Who only looks whether somebody is there closes soon and says nothing, as the operator does: no use of it.
        if let Some(in_use) = &mut self.in_use
            && self.connection.is_silent()
            && self.connection.born().elapsed() < sniff::PATIENCE_WITH_PROBES
        {
            in_use.was_none();
        }
        if end != End::Done {
            relay::reset(&self.client);
        }
        self.backend.observer.carried(&Carried {
            protocol: self.protocol,
            end,
            took: self.connection.born().elapsed(),
            sent: self.progress.sent(),
            received: self.progress.received(),
        });
    }

    /// Admit, and the way to an endpoint: at once if one is ready and nobody waits, else through the line.
    async fn carry(&mut self) -> End {
        if let Some(picked) = self.backend.pick_unless_others_wait() {
            match self.attempt(picked, &mut None, None).await {
                Attempt::Over(end) => return end,
                Attempt::Again(cause) => self.backend.observer.retried(cause.as_str()),
            }
        }
        // Boxed, so that tunnels need no room for it.
        Box::pin(self.hold()).await
    }

    /// Connect, forward. If it has a place and a permit for a new connection, they are given back when the endpoint has
    /// taken it.
    async fn attempt(
        &mut self,
        picked: Picked,
        place: &mut Option<Place>,
        fresh: Option<OwnedSemaphorePermit>,
    ) -> Attempt {
        let patience = self.shard.shared.settings.connect_time;
        match upstream::connect(picked.address(), patience).await {
            Ok(endpoint) => {
                picked.endpoint().is_reached();
                self.forward(&endpoint, &picked, place, fresh).await
            }
            Err(cause) => {
                self.backend.failed(&picked, cause);
                Attempt::Again(cause)
            }
        }
    }

    async fn forward(
        &mut self,
        endpoint: &TcpStream,
        picked: &Picked,
        place: &mut Option<Place>,
        mut fresh: Option<OwnedSemaphorePermit>,
    ) -> Attempt {
        if place.is_some() {
            let waited = self.connection.born().elapsed();
            self.backend.observer.first_byte(waited);
        }
        self.occupied.is_tunnel();
        self.progress = Progress::default();
        let told = Told {
            pieces: self.kept.pieces(),
            remains: Arc::new(OnceLock::new()),
        };
        let remains = Arc::downgrade(&told.remains);
        let manner = Manner {
            is_finished: self.is_finished,
            must_answer: self.protocol == Raw::Tls,
        };
        let client_speaks = || self.connection.has_said_something();
        let progress = &self.progress;
        let relay = relay::relay(
            &self.client,
            endpoint,
            told,
            manner,
            progress,
            client_speaks,
        );
        let mut relay = std::pin::pin!(relay);
        let we_leave = self.shard.shared.life.reaches(Stage::Refusing);
        let mut we_leave = std::pin::pin!(we_leave);
        let is_taken = async {
            tokio::select! {
                () = sleep(TAKEN_AFTER) => false,
                () = progress.is_answered() => true,
            }
        };
        let mut is_taken = std::pin::pin!(is_taken);
        let mut is_new = true;
        let mut may_begin_again = true;
        let outcome = loop {
            tokio::select! {
                outcome = &mut relay => break outcome,
                is_answered = &mut is_taken, if is_new => {
                    is_new = false;
                    picked.works();
                    drop(fresh.take());
                    if let Some(place) = place.take() {
                        if is_answered {
                            place.answered();
                        } else {
                            // The little that is spare need not count.
                            let counted = place.lingers(self.kept.length());
                            if let (Some(unsent), Some(counted)) = (remains.upgrade(), counted) {
                                unsent.get_or_init(|| counted);
                            }
                        }
                    }
                    // One that says nothing has nothing to lose: were it held again when its endpoint goes to sleep, it
                    // would wake it at once.
                    may_begin_again = (1..=SPARE).contains(&self.kept.length());
                    if !may_begin_again {
                        self.kept.forget();
                    }
                }
                () = &mut we_leave => {
                    tracing::info!(endpoint = %picked.address(), "a tunnel was cut, as this process ends");
                    relay::reset(endpoint);
                    return Attempt::Over(End::Cut);
                }
                _ = self.connection.ordered() => {
                    relay::reset(endpoint);
                    return Attempt::Over(End::Cut);
                }
            }
        };
        let Err(broken) = outcome else {
            picked.works();
            return Attempt::Over(End::Done);
        };
        relay::reset(endpoint);
        // What was told in a protocol that we do not understand must not be told twice; the beginning of a handshake may.
        let is_safe = self.protocol == Raw::Tls || progress.sent() == 0;
        if broken == Broken::Endpoint && may_begin_again && is_safe && progress.can_begin_again() {
            picked.fails();
            self.occupied.waits();
            return Attempt::Again(Cause::Broken);
        }
        Attempt::Over(End::Broken)
    }

    /// When it has waited long enough.
    fn deadline(&self) -> Instant {
        self.connection.born() + self.shard.shared.settings.hold_time
    }
}
