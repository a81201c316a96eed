//! Questions to resolvers, over connections that are kept: a question a second to each costs one small request.

use std::{
    collections::HashMap,
    error::Error as _,
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use serde::{Deserialize, de::DeserializeOwned};
use thiserror::Error;
use tokio::{sync::Semaphore, time::timeout};
use weir_api::hold::{
    PortAllotment,
    names::http::{RESOLVER_CACHE_STATUS_PATH, SILENT_CONNECTIONS_PATH, USAGE_PATH},
};
use weir_role::cluster::ObjectId;

use super::{Usage, known::Answer};

/// A list of all ports that can be allotted, with the longest names, is shorter.
const ANSWER_LIMIT: usize = 32 << 20;
/// An idle connection is given up before resolvers do.
const IDLE: Duration = Duration::from_secs(5);
/// How long a resolver may take to say whether it has seen a connection.
const SILENT_PATIENCE: Duration = Duration::from_millis(200);
/// Questions for connections at a time. Resolvers take 256 connections on that port, from everybody.
const SILENT_QUESTIONS: usize = 32;

/// Why there is no answer.
#[derive(Debug, Error)]
pub(super) enum AskError {
    #[error("no answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    #[error("no connection, or it broke")]
    Unreachable(#[source] hyper_util::client::legacy::Error),
    #[error("the answer has the status {0}; this may be another version or another program")]
    Status(StatusCode),
    #[error("the answer cannot be read to its end")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error(
        "the answer is not what a resolver says; this may be another version or another program"
    )]
    Json(#[source] serde_json::Error),
    #[error("the question cannot be written")]
    Question(#[source] http::Error),
}

impl AskError {
    /// A label for metrics, out of a fixed set.
    pub(super) const fn reason(&self) -> &'static str {
        match self {
            Self::Timeout(_) => "timeout",
            Self::Unreachable(_) => "unreachable",
            Self::Status(_) => "status",
            Self::Body(_) => "body",
            Self::Json(_) => "json",
            Self::Question(_) => "question",
        }
    }

    /// Nobody listens there.
    pub(super) fn is_refusal(&self) -> bool {
        let Self::Unreachable(error) = self else {
            return false;
        };
        let mut source = error.source();
        while let Some(cause) = source {
            if let Some(error) = cause.downcast_ref::<io::Error>() {
                return error.kind() == io::ErrorKind::ConnectionRefused;
            }
            source = cause.source();
        }
        false
    }
}

/// How a connection was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum By {
    /// Address and port.
    Address,
    /// The port alone, since the address was rewritten on the way.
    Port,
}

/// Asks.
#[derive(Debug)]
pub(super) struct Asker {
    client: Client<HttpConnector, Empty<Bytes>>,
    port: u16,
    patience: Duration,
    silent_questions: Semaphore,
}

#[derive(Deserialize)]
struct Status {
    generation: u64,
    synced: bool,
    draining: bool,
    #[serde(default)]
    unchanged: bool,
    #[serde(default)]
    services: Vec<Entry>,
    #[serde(default)]
    unreachable: Vec<UnreachableEntry>,
}

#[derive(Deserialize)]
struct Entry {
    namespace: String,
    service: String,
    ports: Vec<PortAllotment>,
}

#[derive(Deserialize)]
struct UnreachableEntry {
    namespace: String,
    service: String,
    endpoint: SocketAddr,
}

#[derive(Deserialize)]
struct Silent {
    seen: bool,
    by: Option<By>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsageEntry {
    namespace: String,
    service: String,
    open: usize,
    ended_seconds_ago: Option<f64>,
    counted_seconds: f64,
}

impl Asker {
    /// Asks on this port, and waits so long for a status.
    pub(super) fn new(port: u16, patience: Duration) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(patience));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(8)
            .build(connector);
        Self {
            client,
            port,
            patience,
            silent_questions: Semaphore::new(SILENT_QUESTIONS),
        }
    }

    /// What a resolver knows; its list only if that is another than the one with this number.
    pub(super) async fn status(
        &self,
        address: IpAddr,
        unless: Option<u64>,
    ) -> Result<Answer, AskError> {
        let query = unless.map_or_else(String::new, |unless| format!("?unless={unless}"));
        let path = format!("{RESOLVER_CACHE_STATUS_PATH}{query}");
        let status: Status = self.ask(address, &path, self.patience).await?;
        let services = status.services.into_iter().map(|entry| {
            let id = ObjectId::new(&entry.namespace, &entry.service);
            (id, entry.ports)
        });
        let unreachable = status.unreachable.into_iter().map(|entry| {
            let id = ObjectId::new(&entry.namespace, &entry.service);
            (id, entry.endpoint)
        });
        Ok(Answer {
            generation: status.generation,
            is_ready: status.synced && !status.draining,
            services: (!status.unchanged).then(|| services.collect()),
            unreachable: unreachable.collect(),
        })
    }

    /// Whether a resolver has a silent connection from there, and how it knows.
    pub(super) async fn silent(
        &self,
        address: IpAddr,
        peer: SocketAddr,
    ) -> Result<Option<By>, AskError> {
        // Never closed.
        let _place = self.silent_questions.acquire().await.ok();
        let path = format!("{SILENT_CONNECTIONS_PATH}?peer={peer}&port_only=true");
        let silent: Silent = self.ask(address, &path, SILENT_PATIENCE).await?;
        Ok(silent.by.filter(|_| silent.seen))
    }

    /// How much the services are used that stay behind a resolver.
    pub(super) async fn usage(
        &self,
        address: IpAddr,
    ) -> Result<HashMap<ObjectId, Usage>, AskError> {
        let entries: Vec<UsageEntry> = self.ask(address, USAGE_PATH, self.patience).await?;
        let usage = entries.into_iter().map(|entry| {
            let usage = Usage {
                open: entry.open,
                ended: entry.ended_seconds_ago.map(seconds),
                counted: seconds(entry.counted_seconds),
            };
            (ObjectId::new(&entry.namespace, &entry.service), usage)
        });
        Ok(usage.collect())
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        address: IpAddr,
        path: &str,
        patience: Duration,
    ) -> Result<T, AskError> {
        timeout(patience, self.get(address, path))
            .await
            .unwrap_or(Err(AskError::Timeout(patience)))
    }

    async fn get<T: DeserializeOwned>(&self, address: IpAddr, path: &str) -> Result<T, AskError> {
        let uri = Uri::builder()
            .scheme("http")
            .authority(SocketAddr::new(address, self.port).to_string())
            .path_and_query(path)
            .build()
            .map_err(AskError::Question)?;
        let request = Request::get(uri)
            .body(Empty::new())
            .map_err(AskError::Question)?;
        let sent = self.client.request(request).await;
        let response = sent.map_err(AskError::Unreachable)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_LIMIT);
        let body = body.collect().await.map_err(AskError::Body)?.to_bytes();
        if !status.is_success() {
            return Err(AskError::Status(status));
        }
        serde_json::from_slice(&body).map_err(AskError::Json)
    }
}

/// What is none counts as none.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
