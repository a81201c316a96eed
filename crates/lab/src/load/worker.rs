//! One request at a time, from the pacer's permit to the recorder's entry.
//!
//! There are as many workers as there may be requests in flight. [`super::http1`] and [`super::http2`] make the
//! attempts; here are the clock, the time-out and the counting, which are the same for both.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::timeout_at;

use super::{
    failure::Link,
    http1, http2,
    outcome::Outcome,
    recorder::Recorder,
    request::{Received, Request, Template},
    schedule::Pacer,
};

/// What every worker has.
#[derive(Clone)]
pub(super) struct Worker {
    pub(super) address: SocketAddr,
    pub(super) template: Arc<Template>,
    pub(super) time_out: Duration,
    pub(super) pacer: Arc<Pacer>,
    pub(super) recorder: Arc<Recorder>,
}

impl Worker {
    /// Sends on an HTTP/1.1 connection of its own until there is nothing more to send.
    pub(super) async fn http1(self, number: usize, reuse: bool) {
        let mut client = http1::Client::new(self.address, reuse);
        while let Some(index) = self.pacer.next().await {
            let Some(attempt) = self.begin(number, index) else {
                continue;
            };
            let ended = timeout_at(
                attempt.deadline.into(),
                client.attempt(&self.template, &attempt.request),
            )
            .await;
            if ended.is_err() {
                client.disconnect();
            }
            let ended = ended.unwrap_or(Err(Outcome::TimeOut));
            self.end(number, &attempt, client.link(), ended);
        }
    }

    /// Sends on a shared HTTP/2 connection until there is nothing more to send.
    pub(super) async fn http2(self, number: usize, connection: Arc<http2::Connection>) {
        while let Some(index) = self.pacer.next().await {
            let Some(attempt) = self.begin(number, index) else {
                continue;
            };
            let ended = timeout_at(
                attempt.deadline.into(),
                connection.attempt(self.address, &self.template, &attempt.request),
            )
            .await;
            let ended = ended.unwrap_or(Err(Outcome::TimeOut));
            self.end(number, &attempt, Link::Shared, ended);
        }
    }

    /// None if it is too late to send this one at all.
    fn begin(&self, number: usize, index: u64) -> Option<Attempt> {
        let schedule = self.pacer.schedule();
        let at = schedule.offset(index);
        let intended = schedule.start + at;
        let deadline = intended + self.time_out;
        if Instant::now() >= deadline {
            self.recorder.unsent(number, at);
            return None;
        }
        self.recorder.begin();
        Some(Attempt {
            at,
            intended,
            deadline,
            request: self.template.request(index),
        })
    }

    fn end(&self, number: usize, attempt: &Attempt, link: Link, ended: Result<Received, Outcome>) {
        let (outcome, bytes) = match ended {
            Ok(received) => (attempt.request.judge(&received), received.bytes),
            Err(outcome) => (outcome, 0),
        };
        let latency = attempt.intended.elapsed();
        self.recorder
            .end(number, attempt.at, latency, (bytes, link), &outcome);
    }
}

struct Attempt {
    /// When it was meant to be sent, from the start of the run, and by the clock.
    at: Duration,
    intended: Instant,
    deadline: Instant,
    request: Request,
}
