//! The phase in which a request waits: it takes a place in its backend's line, its body is read meanwhile as far as
//! there is room, and when it is its turn it is sent, as often as it takes.

use std::{
    pin::Pin,
    sync::{Arc, Weak},
    time::Instant,
};

use http::{Response, StatusCode};
use tokio::time::{sleep, sleep_until, timeout};

use super::{Exchange, Source};
use crate::{
    answer::Answer,
    body::Outgoing,
    headers,
    hold::Overflow,
    life::{Life, Stage},
    replay::{Read, Reading, Replay},
    retry,
    waiting::{BackendGone, Place},
};

/// What a waiting request costs besides its head and body, roughly: its future, its timer, its place.
const OVERHEAD: usize = 1024;

/// How the wait ended.
enum Wait {
    Over,
    TimeUp,
    BackendGone,
    ClientGone,
    WeLeave,
}

/// Admit, hold, pick, connect, forward.
pub(super) async fn hold(exchange: &mut Exchange) -> Result<Response<Outgoing>, Answer> {
    let backend = &Arc::clone(&exchange.backend);
    let shard = Arc::clone(&exchange.shard);
    let settings = &shard.shared.settings;
    let life = &shard.shared.life;
    let Some(message) = &mut exchange.message else {
        return Err(exchange.failed());
    };
    let bytes = OVERHEAD + headers::length_of(&message.head);
    let body = std::mem::replace(&mut message.body, Source::Empty);

    // Admit.
    if life.stage() == Stage::Refusing {
        return Err(leaving(exchange));
    }
    let mut place = Place::take(backend, bytes).map_err(|overflow| refused(exchange, overflow))?;

    // Hold: the first time with a body that comes in meanwhile.
    backend.begins_to_wait();
    let deadline = exchange.began + settings.hold_time;
    let (mut reading, body) = match body {
        Source::Stream(body) => (Some(Reading::new(body)), Source::Empty),
        whole => (None, whole),
    };
    let mut outcome = wait(
        &mut place,
        reading.as_mut(),
        settings.max_replay,
        deadline,
        life,
    )
    .await;
    if let Some(message) = &mut exchange.message {
        message.body = match reading {
            Some(reading) => Source::Replay(reading.finish()),
            None => body,
        };
    }
    let mut attempts = 0;
    let mut lingers = false;
    loop {
        match outcome {
            Wait::Over => {}
            Wait::TimeUp => return Err(time_is_up(exchange)),
            Wait::BackendGone => return Err(gone(exchange)),
            Wait::ClientGone => return Err(client_gone()),
            Wait::WeLeave => return Err(leaving(exchange)),
        }

        // Pick, connect, forward.
        if let Some(picked) = backend.pick() {
            let (connected, fresh) = if let Some(kept) = exchange.kept(&picked) {
                (Ok(kept), None)
            } else {
                // By the time there is room, one may have become free.
                let fresh = picked.room_for_a_new_one().await;
                (exchange.connect(&picked).await, fresh)
            };
            let cause = match connected {
                Ok(connected) => {
                    backend.observer.first_byte(exchange.began.elapsed());
                    let body = body_of(exchange);
                    // Boxed, so that those who wait need no room for it.
                    let mut forwarded = Box::pin(exchange.forward(picked, connected));
                    let early = answer_of(forwarded.as_mut(), &place).await;
                    drop(fresh);
                    let forwarded = if let Some(forwarded) = early {
                        forwarded
                    } else {
                        linger(&place, &body);
                        lingers = true;
                        forwarded.await
                    };
                    match forwarded {
                        Ok(response) => {
                            place.answered();
                            return Ok(response);
                        }
                        Err(cause) => cause,
                    }
                }
                Err(cause) => {
                    backend.failed(&picked, cause);
                    cause
                }
            };
            if exchange.message.is_none() {
                return Err(exchange.failed());
            }
            backend.observer.retried(cause.as_str());
            attempts += 1;
            let pause = retry::pause(attempts, backend.addresses().len());
            sleep(pause.min(deadline.saturating_duration_since(Instant::now()))).await;
        }
        if lingers {
            // Its place was given to the next. Its body counts by itself.
            place = Place::take(backend, bytes).map_err(|overflow| refused(exchange, overflow))?;
            lingers = false;
        } else if let Err(BackendGone) = place.wait_again() {
            return Err(gone(exchange));
        }
        backend.begins_to_wait();
        outcome = wait(&mut place, None, 0, deadline, life).await;
    }
}

/// What was read of the body: it goes when it was sent, unless it may have to be sent again.
fn body_of(exchange: &Exchange) -> Weak<Replay> {
    match exchange.message.as_ref().map(|message| &message.body) {
        Some(Source::Replay(replay)) => Arc::downgrade(replay),
        Some(Source::Empty | Source::Stream(_)) | None => Weak::new(),
    }
}

/// The next may go. What is still in memory of the body counts for as long as it is.
fn linger(place: &Place, body: &Weak<Replay>) {
    match body.upgrade() {
        Some(body) => body.lingers(place),
        None => drop(place.lingers(0)),
    }
}

/// What came of it, or nothing if that takes longer than others do: then the next may go. How long that is may be learnt
/// meanwhile.
async fn answer_of<T>(
    mut forwarded: Pin<&mut impl Future<Output = T>>,
    place: &Place,
) -> Option<T> {
    let began = Instant::now();
    loop {
        let left = place.patience().checked_sub(began.elapsed());
        let left = left.filter(|left| !left.is_zero())?;
        if let Ok(forwarded) = timeout(left, forwarded.as_mut()).await {
            return Some(forwarded);
        }
    }
}

/// Waits for its turn, reading the body as far as there is room.
async fn wait(
    place: &mut Place,
    mut reading: Option<&mut Reading>,
    max_replay: usize,
    deadline: Instant,
    life: &Life,
) -> Wait {
    let time_up = sleep_until(deadline.into());
    let mut time_up = std::pin::pin!(time_up);
    let we_leave = life.reaches(Stage::Refusing);
    let mut we_leave = std::pin::pin!(we_leave);
    // The end first: one that is let go again and again, to endpoints that refuse, would never see it. Then read what has
    // come already: a request whose turn it is at once should be whole if it can.
    loop {
        let reads = reading.as_ref().is_some_and(|reading| !reading.is_done());
        let (turn, room) = place.parts();
        tokio::select! {
            biased;
            () = time_up.as_mut() => return Wait::TimeUp,
            () = we_leave.as_mut() => return Wait::WeLeave,
            read = read_on(reading.as_deref_mut(), room, max_replay), if reads => {
                if matches!(read, Read::Broken) {
                    return Wait::ClientGone;
                }
            }
            turn = turn => return match turn {
                Ok(()) => Wait::Over,
                Err(_) => Wait::BackendGone,
            },
        }
    }
}

async fn read_on(
    reading: Option<&mut Reading>,
    room: crate::waiting::Growth<'_>,
    most: usize,
) -> Read {
    match reading {
        Some(reading) => reading.read(&room, most).await,
        None => std::future::pending().await,
    }
}

fn refused(exchange: &Exchange, overflow: Overflow) -> Answer {
    let name = &exchange.backend.name.display;
    let (reason, what) = match overflow {
        Overflow::OwnerRequests => ("full_requests", "as many requests wait for it as may"),
        Overflow::OwnerBytes => (
            "full_bytes",
            "the requests that wait for it are as large as they may be",
        ),
        Overflow::TotalRequests => ("full_requests_total", "as many requests wait here as may"),
        Overflow::TotalBytes => (
            "full_bytes_total",
            "the requests that wait here are as large as they may be",
        ),
        Overflow::Gone => return gone(exchange),
    };
    exchange.backend.observer.refused(reason);
    let message = format!("{name} is not awake yet, and {what}; come again");
    Answer::new(StatusCode::SERVICE_UNAVAILABLE, reason, message)
        .retry_after(exchange.backend.retry_after())
}

fn time_is_up(exchange: &Exchange) -> Answer {
    exchange.backend.observer.refused("time_up");
    let message = format!(
        "{} had no endpoint that took this request within {} s; look at its pods and at the events of its ElastiService",
        exchange.backend.name.display,
        exchange.shard.shared.settings.hold_time.as_secs()
    );
    Answer::new(StatusCode::GATEWAY_TIMEOUT, "time_up", message)
}

fn gone(exchange: &Exchange) -> Answer {
    exchange.backend.observer.refused("gone");
    let message = format!(
        "{} is no longer held here; come again, the Service leads elsewhere by now",
        exchange.backend.name.display
    );
    Answer::new(StatusCode::SERVICE_UNAVAILABLE, "gone", message).retry_after(1)
}

fn leaving(exchange: &Exchange) -> Answer {
    exchange.backend.observer.refused("leaving");
    let message = format!(
        "{} did not wake before this process has to end; come again",
        exchange.backend.name.display
    );
    Answer::new(StatusCode::SERVICE_UNAVAILABLE, "leaving", message)
        .retry_after(exchange.backend.retry_after())
}

/// Read by nobody.
fn client_gone() -> Answer {
    Answer::new(
        StatusCode::BAD_REQUEST,
        "client_gone",
        "the request broke off",
    )
}
