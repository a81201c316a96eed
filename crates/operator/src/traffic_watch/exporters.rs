//! Questions to the nodes' exporters: one request each, bounded in time and size, without redirects. What the answer says
//! is read by `weir_place`.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use thiserror::Error;
use tokio::time::timeout;
use weir_api::place::names::EXPORTER_QUERY;
use weir_place::exposition::{self, BODY_LIMIT, ExpositionError, Scrape};

/// A node whose network is full answers slowly, and is the very one that matters.
const PATIENCE: Duration = Duration::from_secs(4);
const PATH: &str = "/metrics";

/// Asks exporters on one port. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Exporters {
    client: Client<HttpConnector, Empty<Bytes>>,
    port: u16,
}

/// What an exporter said.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Its counters.
    pub scrape: Scrape,
    /// It cannot be asked for some collectors alone, and is asked for everything the next time.
    pub is_plain: bool,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum ScrapeError {
    /// The Node names none.
    #[error("the node has no address of the type InternalIP")]
    NoAddress,
    /// Too slow.
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Timeout,
    /// Nobody there.
    #[error("no connection, or it broke; is the exporter running, and may the operator reach it")]
    Unreachable(#[source] hyper_util::client::legacy::Error),
    /// Somebody else is there, or wants a token.
    #[error("the answer has the status {0}; is this the exporter's port")]
    Status(StatusCode),
    /// It ended early.
    #[error("the answer cannot be read to its end")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It says nothing of use.
    #[error(transparent)]
    Content(#[from] ExpositionError),
    /// The address makes no URL.
    #[error("the question cannot be written")]
    Question(#[source] http::Error),
}

impl ScrapeError {
    /// A label for metrics, out of a fixed set.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoAddress => "no_address",
            Self::Timeout => "timeout",
            Self::Unreachable(_) => "unreachable",
            Self::Status(_) => "status",
            Self::Body(_) => "body",
            Self::Content(_) => "content",
            Self::Question(_) => "question",
        }
    }
}

impl Exporters {
    /// Exporters on this port.
    pub fn new(port: u16) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(PATIENCE));
        // A connection to each of some thousand nodes, idle between rounds, costs more than to open it.
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .build(connector);
        Self { client, port }
    }

    /// Asks one. `is_plain`: it has refused before to be asked for some collectors alone.
    pub async fn ask(
        &self,
        address: Option<IpAddr>,
        is_plain: bool,
    ) -> Result<Answer, ScrapeError> {
        let address = address.ok_or(ScrapeError::NoAddress)?;
        let asked = timeout(PATIENCE, self.ask_patiently(address, is_plain)).await;
        asked.unwrap_or(Err(ScrapeError::Timeout))
    }

    async fn ask_patiently(&self, address: IpAddr, is_plain: bool) -> Result<Answer, ScrapeError> {
        if !is_plain {
            // An exporter without one of the collectors answers 400.
            match self.get(address, &format!("{PATH}?{EXPORTER_QUERY}")).await {
                Err(ScrapeError::Status(StatusCode::BAD_REQUEST)) => {}
                scrape => {
                    let is_plain = false;
                    return scrape.map(|scrape| Answer { scrape, is_plain });
                }
            }
        }
        let scrape = self.get(address, PATH).await?;
        let is_plain = true;
        Ok(Answer { scrape, is_plain })
    }

    async fn get(&self, address: IpAddr, path: &str) -> Result<Scrape, ScrapeError> {
        let uri = Uri::builder()
            .scheme("http")
            .authority(SocketAddr::new(address, self.port).to_string())
            .path_and_query(path)
            .build()
            .map_err(ScrapeError::Question)?;
        let request = Request::get(uri).body(Empty::new());
        let request = request.map_err(ScrapeError::Question)?;
        let response = self.client.request(request).await;
        let response = response.map_err(ScrapeError::Unreachable)?;
        // What is behind a redirect is not the node.
        if response.status() != StatusCode::OK {
            return Err(ScrapeError::Status(response.status()));
        }
        let body = Limited::new(response.into_body(), BODY_LIMIT)
            .collect()
            .await;
        let body = body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                ScrapeError::Content(ExpositionError::TooLong)
            } else {
                ScrapeError::Body(error)
            }
        })?;
        Ok(exposition::read(&body.to_bytes())?)
    }
}
