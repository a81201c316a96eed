//! A server that does all that a server can do, well or badly: what the lab's tests put behind Services.
//!
//! It speaks HTTP/1.1 and HTTP/2 without TLS on one port ([`routes`] lists the paths), gRPC ([`grpc`]), WebSocket
//! ([`websocket`]) and, on another port, raw TCP ([`tcp`]). [`metrics`] counts what it saw, so that a load
//! generator's counts can be compared with it. [`traffic`] sends for its own sake. [`App::start`] runs it in a test; the program `lab-app` runs it in a
//! pod, as [`command`] says.

mod answer;
mod body;
pub mod command;
mod echo;
mod end;
mod grpc;
mod metrics;
mod pressure;
mod routes;
mod server;
mod stream;
mod tcp;
pub mod traffic;
mod websocket;

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{net::TcpListener, task::JoinHandle};

use self::{
    end::{End, Ending},
    metrics::Metrics,
    pressure::Pressure,
};

/// How the server is to behave.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where HTTP is served; port 0 takes any that is free.
    pub listen: SocketAddr,
    /// Where raw TCP is echoed, if at all.
    pub tcp_listen: Option<SocketAddr>,
    /// What is said first on a raw TCP connection.
    pub tcp_greeting: Option<String>,
    /// Who we are: the pod's name.
    pub name: String,
    /// How long nothing listens after the start.
    pub start_delay: Duration,
    /// How long `/ready` says no after that.
    pub ready_delay: Duration,
    /// Crashes by itself after this time.
    pub crash_after: Option<Duration>,
    /// At most this many requests are worked on at once; others wait.
    pub max_concurrent: Option<usize>,
    /// How long each of them takes at least.
    pub work: Duration,
    /// Crashes when this many requests are there at once, waiting ones included.
    pub fall_over_at: Option<usize>,
    /// How long requests may take to finish once the server is to stop.
    pub grace: Duration,
    /// How long a kept connection may bring one more request once the server is to stop. At once closed, it cuts a request
    /// that is on its way.
    pub linger: Duration,
}

impl Default for Settings {
    /// On any free port of 127.0.0.1, without faults.
    fn default() -> Self {
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            listen: anywhere,
            tcp_listen: Some(anywhere),
            tcp_greeting: None,
            name: "lab-app".to_owned(),
            start_delay: Duration::ZERO,
            ready_delay: Duration::ZERO,
            crash_after: None,
            max_concurrent: None,
            work: Duration::ZERO,
            fall_over_at: None,
            grace: Duration::from_secs(25),
            linger: Duration::ZERO,
        }
    }
}

/// A server that runs. It ends when it is told to, when it crashes, and when this value is dropped.
pub struct App {
    http: SocketAddr,
    tcp: Option<SocketAddr>,
    end: Arc<End>,
    server: JoinHandle<()>,
}

/// What all connections share.
struct State {
    settings: Settings,
    ready_at: Instant,
    metrics: Metrics,
    pressure: Pressure,
    end: Arc<End>,
}

impl App {
    /// Starts it; returns once it listens.
    pub async fn start(settings: Settings) -> io::Result<Self> {
        tokio::time::sleep(settings.start_delay).await;
        let http = TcpListener::bind(settings.listen).await?;
        let tcp = match settings.tcp_listen {
            Some(address) => Some(TcpListener::bind(address).await?),
            None => None,
        };
        let end = Arc::new(End::default());
        let (http_address, tcp_address) = (
            http.local_addr()?,
            tcp.as_ref().map(TcpListener::local_addr).transpose()?,
        );
        let state = Arc::new(State {
            ready_at: Instant::now() + settings.ready_delay,
            metrics: Metrics::default(),
            pressure: Pressure::new(settings.max_concurrent, settings.fall_over_at),
            end: Arc::clone(&end),
            settings,
        });
        Ok(Self {
            http: http_address,
            tcp: tcp_address,
            end,
            server: tokio::spawn(server::serve(state, http, tcp)),
        })
    }

    /// Where HTTP is served.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// Where raw TCP is echoed, if it is.
    pub fn tcp(&self) -> Option<SocketAddr> {
        self.tcp
    }

    /// `http://127.0.0.1:1234` and this path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.http)
    }

    /// Stops well: no new connections, what is under way is finished, and then the rest is closed.
    pub async fn stop(self) {
        self.end.drain();
        self.ended().await;
    }

    /// What begins to stop it, as [`App::stop`] does, without waiting.
    pub fn stopper(&self) -> impl Fn() + Send + 'static {
        let end = Arc::clone(&self.end);
        move || end.drain()
    }

    /// Closes every connection at once, as a process does that dies.
    pub async fn crash(self) {
        self.end.crash("it was told to");
        self.ended().await;
    }

    /// Waits until it has ended; returns why, if it crashed.
    pub async fn ended(mut self) -> Option<String> {
        // It is never aborted while we are here, and a panic in it is a crash like any other.
        if let Err(error) = (&mut self.server).await {
            return Some(error.to_string());
        }
        match self.end.now() {
            Ending::Crashed(why) => Some(why),
            Ending::NotYet | Ending::Draining => None,
        }
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.server.abort();
    }
}
