//! Questions to the nodes' exporters: one request each, bounded in time and size, without redirects; with TLS and a token
//! where somebody else's exporters want it. What the answer says is read by `weir_place`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header::AUTHORIZATION};
use http_body_util::{BodyExt, Empty};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{ServerName, pem},
};
use thiserror::Error;
use tokio::time::timeout;
use weir_api::place::names::EXPORTER_QUERY;
use weir_place::exposition::{ExpositionError, Reader, Scrape};

use crate::{
    settings::exporters::{ExporterSettings, Tls},
    token::{Token, TokenError},
    trust::authorities,
};

/// A node whose network is full answers slowly, and is the very one that matters.
const PATIENCE: Duration = Duration::from_secs(4);
const PATH: &str = "/metrics";

/// Asks exporters. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Exporters {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    scheme: &'static str,
    token: Option<Token>,
}

/// Why exporters cannot even be asked.
#[derive(Debug, Error)]
pub enum SetUpError {
    /// The file with certificates.
    #[error("no certificate can be read from {}; --node-exporter-ca-file takes PEM", path.display())]
    Ca {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// No certificate is for such a name.
    #[error("`{0}` cannot be the name of a server; see --node-exporter-server-name")]
    ServerName(String),
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
    #[error(
        "nobody says where its exporter is: the node has no address of the type InternalIP, or the Service of the exporters no endpoint there"
    )]
    NoAddress,
    /// Too slow.
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Timeout,
    /// The token cannot be read.
    #[error("the token for exporters cannot be read; see --node-exporter-token-file")]
    Token(#[from] TokenError),
    /// Nobody there.
    #[error("no connection, or it broke; is the exporter running, and may the operator reach it")]
    Unreachable(#[source] hyper_util::client::legacy::Error),
    /// Somebody else is there, or wants a token.
    #[error("the answer has the status {0}; is this the exporter's port")]
    Status(StatusCode),
    /// It ended early.
    #[error("the answer cannot be read to its end")]
    Body(#[source] hyper::Error),
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
            Self::Token(_) => "token",
        }
    }
}

impl Exporters {
    /// Asks as it is told to.
    pub fn new(settings: &ExporterSettings) -> Result<Self, SetUpError> {
        weir_role::tls::install_provider();
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(PATIENCE));
        connector.enforce_http(false);
        let trust = match &settings.tls {
            Some(tls) => roots(tls)?,
            None => RootCertStore::empty(),
        };
        let builder = HttpsConnectorBuilder::new().with_tls_config(
            ClientConfig::builder()
                .with_root_certificates(trust)
                .with_no_client_auth(),
        );
        // What was asked for: a token never goes out without TLS.
        let builder = match &settings.tls {
            Some(_) => builder.https_only(),
            None => builder.https_or_http(),
        };
        let name = (settings.tls.as_ref()).and_then(|tls| tls.server_name.clone());
        let builder = match name {
            Some(name) => {
                let name =
                    ServerName::try_from(name.clone()).map_err(|_| SetUpError::ServerName(name))?;
                builder.with_server_name_resolver(FixedServerNameResolver::new(name))
            }
            None => builder,
        };
        // A connection to each of some thousand nodes, idle between rounds, costs more than to open it.
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .build(builder.enable_http1().wrap_connector(connector));
        Ok(Self {
            client,
            scheme: if settings.tls.is_some() {
                "https"
            } else {
                "http"
            },
            token: settings.token.clone().map(Token::new),
        })
    }

    /// Asks one. `is_plain`: it has refused before to be asked for some collectors alone.
    pub async fn ask(
        &self,
        address: Option<SocketAddr>,
        is_plain: bool,
    ) -> Result<Answer, ScrapeError> {
        let address = address.ok_or(ScrapeError::NoAddress)?;
        let asked = timeout(PATIENCE, self.ask_patiently(address, is_plain)).await;
        asked.unwrap_or(Err(ScrapeError::Timeout))
    }

    async fn ask_patiently(
        &self,
        address: SocketAddr,
        is_plain: bool,
    ) -> Result<Answer, ScrapeError> {
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

    async fn get(&self, address: SocketAddr, path: &str) -> Result<Scrape, ScrapeError> {
        let uri = Uri::builder()
            .scheme(self.scheme)
            .authority(address.to_string())
            .path_and_query(path)
            .build()
            .map_err(ScrapeError::Question)?;
        let request = Request::get(uri).body(Empty::new());
        let mut request = request.map_err(ScrapeError::Question)?;
        if let Some(token) = &self.token {
            let header = token.header().await?;
            request.headers_mut().insert(AUTHORIZATION, header);
        }
        let response = self.client.request(request).await;
        let response = response.map_err(ScrapeError::Unreachable)?;
        // What is behind a redirect is not the node.
        if response.status() != StatusCode::OK {
            return Err(ScrapeError::Status(response.status()));
        }
        // Read as it comes: an answer of some megabytes is never held, and there may be two thousand at a time.
        let mut body = response.into_body();
        let mut reader = Reader::default();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(ScrapeError::Body)?;
            if let Some(piece) = frame.data_ref() {
                reader.feed(piece)?;
            }
        }
        Ok(reader.finish()?)
    }
}

/// Whom to trust.
fn roots(tls: &Tls) -> Result<RootCertStore, SetUpError> {
    let Some(path) = &tls.ca else {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        return Ok(roots);
    };
    let file = std::fs::read(path).map_err(pem::Error::Io);
    let found = file.and_then(|file| authorities(&file));
    found.map_err(|source| SetUpError::Ca {
        path: path.clone(),
        source,
    })
}
