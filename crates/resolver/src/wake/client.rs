//! One wake signal: a small POST to the operator, with the token of our ServiceAccount.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, stream::FuturesUnordered};
use http::{
    HeaderValue, Method, Request, StatusCode, Uri,
    header::{AUTHORIZATION, CONTENT_TYPE},
    uri::PathAndQuery,
};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use serde::Serialize;
use thiserror::Error;
use tokio::time::{sleep, timeout};
use weir_api::hold::names::http::INCOMING_REQUEST_PATH;

use crate::view::ServiceId;

/// How long the operator may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Without an answer for so long another is sent beside it, and at most so many.
const ANOTHER_AFTER: Duration = Duration::from_millis(500);
const AT_A_TIME: usize = 4;
/// An idle connection is given up before most servers do.
const IDLE: Duration = Duration::from_secs(30);
/// The answer is read so that the connection can be used again, but no more of it.
const ANSWER_LIMIT: usize = 64 * 1024;
/// A token is about 1 KiB; what is much longer is none.
const TOKEN_LIMIT: usize = 64 * 1024;

/// Why a signal was not heard.
#[derive(Debug, Error)]
pub enum RpcError {
    /// There is no answer.
    #[error("the operator does not answer a wake signal within {} s; see whether it runs", TIMEOUT.as_secs())]
    Timeout,
    /// There is no connection, or it broke.
    #[error(
        "the operator cannot be reached for a wake signal; see whether it runs and its Service leads to it"
    )]
    Unreachable(#[source] hyper_util::client::legacy::Error),
    /// It does not know us.
    #[error(
        "the operator refuses a wake signal with {0}; see whether this ServiceAccount may wake services"
    )]
    Unauthorized(StatusCode),
    /// It does not know the service, or the path.
    #[error(
        "the operator answers a wake signal with 404; see whether the service is held and --operator-url is right"
    )]
    NotFound,
    /// It cannot do it now.
    #[error("the operator answers a wake signal with {0}; its log says why")]
    Status(StatusCode),
    /// Our own token cannot be used.
    #[error("the token of this ServiceAccount cannot be read; see --token-file")]
    Token(#[source] io::Error),
    /// A request that cannot be made, which the settings should have refused.
    #[error("a wake signal cannot be written; see --operator-url")]
    Request(#[source] http::Error),
    /// A mistake of ours.
    #[error("sending a wake signal failed inside; please report it with the log above")]
    Panic,
    /// A body that cannot be written.
    #[error("a wake signal cannot be written as JSON")]
    Json(#[source] serde_json::Error),
}

/// Sends signals. Cheap to clone.
#[derive(Clone, Debug)]
pub struct OperatorClient {
    client: Client<HttpConnector, Full<Bytes>>,
    url: Uri,
    token_file: Arc<PathBuf>,
    timeout: Duration,
    another_after: Duration,
}

#[derive(Serialize)]
struct Signal<'a> {
    count: usize,
    svc: &'a str,
    namespace: &'a str,
}

impl RpcError {
    /// A label for metrics, out of a fixed set.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unreachable(_) => "unreachable",
            Self::Unauthorized(_) => "unauthorized",
            Self::NotFound => "not_found",
            Self::Status(_) => "status",
            Self::Token(_) => "token",
            Self::Request(_) | Self::Json(_) => "request",
            Self::Panic => "panic",
        }
    }

    /// Whether some operator has answered, if only that it cannot.
    pub const fn is_answer(&self) -> bool {
        match self {
            Self::Unauthorized(_) | Self::NotFound | Self::Status(_) => true,
            Self::Timeout
            | Self::Unreachable(_)
            | Self::Token(_)
            | Self::Request(_)
            | Self::Panic
            | Self::Json(_) => false,
        }
    }
}

impl OperatorClient {
    /// A client of the operator at this address, such as `http://host:port`.
    pub fn new(url: &Uri, token_file: PathBuf) -> Result<Self, http::Error> {
        let mut parts = url.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::from_static(INCOMING_REQUEST_PATH));
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(TIMEOUT));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(8)
            .build(connector);
        Ok(Self {
            client,
            url: Uri::from_parts(parts).map_err(http::Error::from)?,
            token_file: Arc::new(token_file),
            timeout: TIMEOUT,
            another_after: ANOTHER_AFTER,
        })
    }

    /// The same with another patience, for tests: so long for an answer, and so long until another is sent beside it.
    #[must_use]
    pub fn with_patience(mut self, timeout: Duration, another_after: Duration) -> Self {
        self.timeout = timeout;
        self.another_after = another_after;
        self
    }

    /// Tells the operator that so many requests are held for a service.
    ///
    /// One of several operators may be on a node that was lost, and its Service lead there for a while. So a signal without
    /// an answer is sent again beside the first, on another connection, and the first answer counts. To hear it twice does
    /// no harm.
    pub async fn signal(&self, id: &ServiceId, held: usize) -> Result<(), RpcError> {
        timeout(self.timeout, self.send_beside(id, held))
            .await
            .unwrap_or(Err(RpcError::Timeout))
    }

    async fn send_beside(&self, id: &ServiceId, held: usize) -> Result<(), RpcError> {
        let mut sent = FuturesUnordered::new();
        sent.push(self.send(id, held));
        loop {
            tokio::select! {
                Some(outcome) = sent.next() => match outcome {
                    // Another may still get through.
                    Err(RpcError::Unreachable(_)) if !sent.is_empty() => {}
                    outcome => return outcome,
                },
                () = sleep(self.another_after), if sent.len() < AT_A_TIME => {
                    sent.push(self.send(id, held));
                }
            }
        }
    }

    async fn send(&self, id: &ServiceId, held: usize) -> Result<(), RpcError> {
        let body = Signal {
            count: held,
            svc: &id.name,
            namespace: &id.namespace,
        };
        let body = serde_json::to_vec(&body).map_err(RpcError::Json)?;
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(self.url.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(bearer) = self.token().await.map_err(RpcError::Token)? {
            request = request.header(AUTHORIZATION, bearer);
        }
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(RpcError::Request)?;
        let response = self
            .client
            .request(request)
            .await
            .map_err(RpcError::Unreachable)?;
        let status = response.status();
        // What it says is for people; read so that the connection can serve the next signal.
        let _ = Limited::new(response.into_body(), ANSWER_LIMIT)
            .collect()
            .await;
        match status {
            status if status.is_success() => Ok(()),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(RpcError::Unauthorized(status)),
            StatusCode::NOT_FOUND => Err(RpcError::NotFound),
            status => Err(RpcError::Status(status)),
        }
    }

    /// Read each time: Kubernetes replaces a token long before it runs out.
    async fn token(&self) -> io::Result<Option<HeaderValue>> {
        let text = match tokio::fs::read_to_string(self.token_file.as_path()).await {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let token = text.trim();
        if token.is_empty() {
            return Ok(None);
        }
        if token.len() > TOKEN_LIMIT {
            return Err(io::Error::other("the file is too long to be a token"));
        }
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| io::Error::other("the file does not hold a token"))?;
        bearer.set_sensitive(true);
        Ok(Some(bearer))
    }
}
