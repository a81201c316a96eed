//! A load generator that counts every request, and does not look away while the server is slow.
//!
//! [`Load`] sends at a constant rate whether answers come or not (an *open loop*), and measures each latency from
//! the moment at which the request was *meant* to be sent: a server that stalls for a second shows that second in
//! all requests meant for it. Each request has an id and may have a body that the server must give back whole.
//! Nothing is tried twice: every request that is sent ends in exactly one [`Outcome`].
//!
//! [`schedule`] says when, [`request`] says what and judges the answers, [`http1`] and [`http2`] do the talking,
//! [`outcome`], [`failure`], [`recorder`] and [`report`] count.

mod failure;
mod http1;
mod http2;
mod outcome;
mod recorder;
mod report;
mod request;
mod schedule;
mod worker;

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use http::{HeaderName, HeaderValue, Uri};
use tokio::task::{JoinError, JoinSet};

pub use self::{
    failure::{Failure, Link},
    outcome::{Counts, Outcome},
    report::{Latency, Report, Second},
    request::{Check, REQUEST_ID, SHA256, VIA},
};
use self::{
    recorder::Recorder,
    request::Template,
    schedule::{Pacer, Schedule},
    worker::Worker,
};

/// The longest run; it bounds the timeline.
const LONGEST: Duration = Duration::from_hours(24);
/// The most requests in flight; it bounds memory and open files.
const MOST_IN_FLIGHT: usize = 100_000;

/// How requests share connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1; connections are kept and used again.
    KeepAlive,
    /// HTTP/1.1; each request makes a connection of its own.
    NewConnections,
    /// HTTP/2 without TLS and without asking first; each connection carries several requests at once.
    H2c {
        /// How many at once on one connection.
        streams: usize,
    },
}

/// A run to be: what to send where, how often and for how long.
#[derive(Clone, Debug)]
pub struct Load {
    url: String,
    rate: u32,
    duration: Duration,
    connections: usize,
    protocol: Protocol,
    time_out: Duration,
    body_bytes: usize,
    check: Option<Check>,
    headers: Vec<(String, String)>,
}

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A URL that we cannot use.
    #[error("cannot use the URL {url:?}: it must be like http://host:port/path")]
    Url {
        /// What was given.
        url: String,
    },
    /// A header that cannot be sent.
    #[error(
        "cannot send the header {0:?}: a name takes letters, digits and dashes, a value no control characters"
    )]
    Header(String),
    /// A setting out of its bounds.
    #[error("{0}")]
    Setting(&'static str),
    /// The host's name has no address.
    #[error("cannot find an address for {host}")]
    Resolve {
        /// The name.
        host: String,
        /// Why.
        source: std::io::Error,
    },
    /// A fault of the generator itself.
    #[error("the load generator itself failed; its counts cannot be trusted")]
    Broken(#[from] JoinError),
}

impl Load {
    /// 10 requests a second for 10 s on up to 64 connections, unless told otherwise.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            rate: 10,
            duration: Duration::from_secs(10),
            connections: 64,
            protocol: Protocol::KeepAlive,
            time_out: Duration::from_secs(10),
            body_bytes: 0,
            check: None,
            headers: Vec::new(),
        }
    }

    /// Requests per second.
    #[must_use]
    pub fn rate(self, rate: u32) -> Self {
        Self { rate, ..self }
    }

    /// How long requests are sent; the last answers may take up to the time-out longer.
    #[must_use]
    pub fn duration(self, duration: Duration) -> Self {
        Self { duration, ..self }
    }

    /// At most this many connections at once. If all are busy a request goes out late, and its latency says so.
    #[must_use]
    pub fn connections(self, connections: usize) -> Self {
        Self {
            connections,
            ..self
        }
    }

    /// How requests share connections.
    #[must_use]
    pub fn protocol(self, protocol: Protocol) -> Self {
        Self { protocol, ..self }
    }

    /// How long after it was meant to be sent a request is given up.
    #[must_use]
    pub fn time_out(self, time_out: Duration) -> Self {
        Self { time_out, ..self }
    }

    /// Sends a body of this size, different for each request, which the answer must give back ([`Check::Mirror`]).
    #[must_use]
    pub fn body_bytes(self, body_bytes: usize) -> Self {
        Self { body_bytes, ..self }
    }

    /// What a right answer is, if it is not what the body's presence suggests.
    #[must_use]
    pub fn check(self, check: Check) -> Self {
        Self {
            check: Some(check),
            ..self
        }
    }

    /// Sends one more header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Runs it to its end: the duration, and up to the time-out for the last answers.
    ///
    /// The host's name is looked up once. Dropping the future stops everything.
    pub async fn run(self) -> Result<Report, LoadError> {
        let in_flight = self.in_flight();
        if self.rate == 0 || in_flight == 0 {
            return Err(LoadError::Setting(
                "the rate and the number of connections must be 1 or more",
            ));
        }
        if in_flight > MOST_IN_FLIGHT || self.duration > LONGEST {
            return Err(LoadError::Setting(
                "a run takes at most 24 h and has at most 100,000 requests in flight",
            ));
        }
        let uri = self.uri()?;
        let address = resolve(&uri).await?;
        let template = self.template(&uri)?;
        let schedule = Schedule::new(Instant::now(), self.rate, self.duration);
        let recorder = Arc::new(Recorder::new(&schedule));
        let pacer = Arc::new(Pacer::new(schedule, in_flight));
        let worker = Worker {
            address,
            template: Arc::new(template),
            time_out: self.time_out,
            pacer: Arc::clone(&pacer),
            recorder: Arc::clone(&recorder),
        };

        let _stop = pacer.stop_when_dropped();
        let pacing = Arc::clone(&pacer);
        let pacing = tokio::task::spawn_blocking(move || pacing.pace());
        let mut workers = JoinSet::new();
        match self.protocol {
            Protocol::KeepAlive | Protocol::NewConnections => {
                let reuse = self.protocol == Protocol::KeepAlive;
                for number in 0..self.connections {
                    workers.spawn(worker.clone().http1(number, reuse));
                }
            }
            Protocol::H2c { streams } => {
                for number in 0..self.connections {
                    let connection = Arc::new(http2::Connection::default());
                    for _ in 0..streams {
                        let connection = Arc::clone(&connection);
                        workers.spawn(worker.clone().http2(number, connection));
                    }
                }
            }
        }
        while let Some(ended) = workers.join_next().await {
            ended?;
        }
        pacing.await?;
        Ok(recorder.report(&self.url, pacer.schedule()))
    }

    fn in_flight(&self) -> usize {
        match self.protocol {
            Protocol::H2c { streams } => self.connections.saturating_mul(streams),
            _ => self.connections,
        }
    }

    fn uri(&self) -> Result<Uri, LoadError> {
        let uri: Result<Uri, _> = self.url.parse();
        uri.ok()
            .filter(|uri| uri.scheme_str() == Some("http") && uri.host().is_some())
            .ok_or_else(|| LoadError::Url {
                url: self.url.clone(),
            })
    }

    fn template(&self, uri: &Uri) -> Result<Template, LoadError> {
        let mut headers = Vec::new();
        for (name, value) in &self.headers {
            let parsed: Option<(HeaderName, HeaderValue)> =
                name.parse().ok().zip(value.parse().ok());
            headers.push(parsed.ok_or_else(|| LoadError::Header(name.clone()))?);
        }
        let check = self.check.unwrap_or(if self.body_bytes > 0 {
            Check::Mirror
        } else {
            Check::Any
        });
        Ok(Template::new(uri, headers, self.body_bytes, check))
    }
}

/// Lets this process open as many files as the system allows at all: each connection is one.
///
/// Returns how many that is; nothing if there is no limit.
pub fn allow_many_connections() -> std::io::Result<Option<u64>> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    Ok(limit.maximum)
}

async fn resolve(uri: &Uri) -> Result<SocketAddr, LoadError> {
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let cannot = |source| LoadError::Resolve {
        host: host.to_owned(),
        source,
    };
    let mut found = tokio::net::lookup_host((host, uri.port_u16().unwrap_or(80)))
        .await
        .map_err(cannot)?;
    let none = || std::io::Error::new(std::io::ErrorKind::NotFound, "it has none");
    found.next().ok_or_else(|| cannot(none()))
}
