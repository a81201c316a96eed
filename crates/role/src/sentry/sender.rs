//! Sends what is in the queue, one after the other, from a thread of its own: the process may have no runtime yet, or none
//! any more.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use http::{
    Method, Request, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{Instant, timeout};

use super::{
    dsn::Dsn,
    envelope::{Event, Origin, envelope, new_id},
};

/// What waits, at most.
const WAITING: usize = 64;
/// Sentry has so long to take one.
const PATIENCE: Duration = Duration::from_secs(5);
/// So many in such a span: an error that comes back every second need not be told as often.
const SPAN: Duration = Duration::from_mins(1);
const IN_A_SPAN: u32 = 30;
/// How long to be quiet when Sentry says to, but not for how long; and at most.
const QUIET: Duration = Duration::from_mins(1);
const LONGEST_QUIET: Duration = Duration::from_hours(1);

/// The way to the thread. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    sender: mpsc::SyncSender<Job>,
    left_out: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Job {
    Tell(Box<Event>),
    Flush(mpsc::SyncSender<()>),
}

impl Queue {
    /// Leaves a word; one too many is counted only.
    pub(super) fn push(&self, event: Event) {
        if self.sender.try_send(Job::Tell(Box::new(event))).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all of it is sent, or for so long.
    pub(super) fn flush(&self, patience: Duration) {
        let (done, is_done) = mpsc::sync_channel(1);
        if self.sender.try_send(Job::Flush(done)).is_ok() {
            // Late or not at all: the process ends now.
            let _ = is_done.recv_timeout(patience);
        }
    }
}

#[cfg(test)]
impl Queue {
    /// One that nobody empties but who calls the function.
    pub(super) fn kept() -> (Self, impl Fn() -> Option<Event>) {
        let (sender, jobs) = mpsc::sync_channel(WAITING);
        let queue = Self {
            sender,
            left_out: Arc::default(),
        };
        let next = move || match jobs.try_recv() {
            Ok(Job::Tell(event)) => Some(*event),
            Ok(Job::Flush(_)) | Err(_) => None,
        };
        (queue, next)
    }

    pub(super) fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }
}

/// Starts the thread.
pub(super) fn start(dsn: Dsn, origin: Origin) -> io::Result<Queue> {
    let (sender, jobs) = mpsc::sync_channel(WAITING);
    let left_out = Arc::new(AtomicU64::new(0));
    let queue = Queue {
        sender,
        left_out: Arc::clone(&left_out),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut sender = Sender {
        client: client(),
        dsn,
        origin,
        left_out,
        span: None,
        quiet_until: None,
        was_heard: true,
    };
    let work = move || {
        for job in jobs {
            match job {
                Job::Tell(event) => runtime.block_on(sender.tell(&event)),
                // Who asked may have gone.
                Job::Flush(done) => drop(done.try_send(())),
            }
        }
    };
    thread::Builder::new()
        .name("sentry".to_owned())
        .spawn(work)?;
    Ok(queue)
}

struct Sender {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    dsn: Dsn,
    origin: Origin,
    left_out: Arc<AtomicU64>,
    /// When the present span began, and how many it has had.
    span: Option<(Instant, u32)>,
    quiet_until: Option<Instant>,
    was_heard: bool,
}

impl Sender {
    async fn tell(&mut self, event: &Event) {
        if !self.may_tell() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        let outcome = timeout(PATIENCE, self.post(event, left_out)).await;
        let trouble = outcome.unwrap_or_else(|_| Some("no answer".to_owned()));
        if trouble.is_some() {
            self.left_out.fetch_add(left_out + 1, Ordering::Relaxed);
        }
        // Said once: it must not fill the log, nor be an error, or it would come back here.
        if let Some(trouble) = &trouble
            && self.was_heard
        {
            tracing::warn!(to = ?self.dsn, trouble, "an error cannot be told to Sentry; see SENTRY_DSN");
        }
        self.was_heard = trouble.is_none();
    }

    fn may_tell(&mut self) -> bool {
        let now = Instant::now();
        if self.quiet_until.is_some_and(|until| now < until) {
            return false;
        }
        let (began, count) = match self.span {
            Some((began, count)) if now.duration_since(began) < SPAN => (began, count),
            _ => (now, 0),
        };
        self.span = Some((began, count + 1));
        count < IN_A_SPAN
    }

    /// Says what went wrong, if anything.
    async fn post(&mut self, event: &Event, left_out: u64) -> Option<String> {
        let body = envelope(&new_id(), event, &self.origin, left_out);
        let auth = format!(
            "Sentry sentry_version=7, sentry_client=weir/{}, sentry_key={}",
            self.origin.release, self.dsn.key
        );
        let request = Request::builder()
            .method(Method::POST)
            .uri(self.dsn.envelopes.clone())
            .header(CONTENT_TYPE, "application/x-sentry-envelope")
            .header("x-sentry-auth", auth)
            .body(Full::from(body));
        let answer = match request {
            Ok(request) => self.client.request(request).await,
            Err(error) => return Some(error.to_string()),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Some(error.to_string()),
        };
        let status = answer.status();
        if status == StatusCode::TOO_MANY_REQUESTS {
            let after = answer.headers().get(RETRY_AFTER);
            let after = after.and_then(|after| after.to_str().ok()?.trim().parse().ok());
            let quiet = after.map_or(QUIET, Duration::from_secs).min(LONGEST_QUIET);
            self.quiet_until = Some(Instant::now() + quiet);
        }
        (!status.is_success()).then(|| status.to_string())
    }
}

fn client() -> Client<HttpsConnector<HttpConnector>, Full<Bytes>> {
    let mut roots = RootCertStore::empty();
    // Without any, a Sentry over HTTPS is not reached, which is told then.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .build();
    Client::builder(TokioExecutor::new()).build(connector)
}
