//! Questions to the nodes' exporters: one request each, bounded in time and size, without redirects; with TLS and a token
//! where somebody else's exporters want it. What the answer says is read in [`super::reading`], by `weir_place`.

use std::{error::Error, net::SocketAddr, path::PathBuf, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue, Request, StatusCode, Uri,
    header::{AUTHORIZATION, HOST},
};
use http_body_util::Empty;
use hyper::{client::conn::http1, service::Service};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{client::legacy::connect::HttpConnector, service::TowerToHyperService};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{ServerName, pem},
};
use thiserror::Error;
use tokio::time::timeout;
use weir_api::place::names::EXPORTER_QUERY;
use weir_place::exposition::{ExpositionError, Scrape};

use super::reading::{ReadError, Turns};
use crate::{
    settings::exporters::{ExporterSettings, Tls},
    token::{Token, TokenError},
    trust::authorities,
};

/// A node whose network is full answers slowly, and is the very one that matters.
const PATIENCE: Duration = Duration::from_secs(4);
const PATH: &str = "/metrics";
/// So much of an answer is held at most until it has been read. hyper would hold six times as much of each that waits for
/// its turn.
const HELD: usize = 64 << 10;

/// Asks exporters. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Exporters {
    connector: TowerToHyperService<HttpsConnector<HttpConnector>>,
    scheme: &'static str,
    token: Option<Token>,
    turns: Arc<Turns>,
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
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
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

impl From<ReadError<hyper::Error>> for ScrapeError {
    fn from(error: ReadError<hyper::Error>) -> Self {
        match error {
            ReadError::Body(error) => Self::Body(error),
            ReadError::Content(error) => Self::Content(error),
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
        let connector = builder.enable_http1().wrap_connector(connector);
        Ok(Self {
            connector: TowerToHyperService::new(connector),
            scheme: if settings.tls.is_some() {
                "https"
            } else {
                "http"
            },
            token: settings.token.clone().map(Token::new),
            turns: Arc::default(),
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

    /// Over a connection of its own, which is closed when this is over or dropped: one to each of some thousand nodes, idle
    /// between rounds, costs more than to open it, and whoever counts questions counts open files.
    async fn get(&self, address: SocketAddr, path: &str) -> Result<Scrape, ScrapeError> {
        let authority = address.to_string();
        let host = HeaderValue::try_from(&authority);
        let request = Request::get(path)
            .header(
                HOST,
                host.map_err(|error| ScrapeError::Question(error.into()))?,
            )
            .body(Empty::<Bytes>::new());
        let mut request = request.map_err(ScrapeError::Question)?;
        if let Some(token) = &self.token {
            let header = token.header().await?;
            request.headers_mut().insert(AUTHORIZATION, header);
        }
        let whom = Uri::builder()
            .scheme(self.scheme)
            .authority(authority)
            .path_and_query("/")
            .build()
            .map_err(ScrapeError::Question)?;
        let connected = self.connector.call(whom).await;
        let stream = connected.map_err(ScrapeError::Unreachable)?;
        let shaken = (http1::Builder::new().max_buf_size(HELD)).handshake(stream);
        let (mut sender, connection) = shaken.await.map_err(unreachable)?;
        let mut answer = pin!(async {
            let response = sender.send_request(request).await.map_err(unreachable)?;
            // What is behind a redirect is not the node.
            if response.status() != StatusCode::OK {
                return Err(ScrapeError::Status(response.status()));
            }
            Ok(self.turns.read(response.into_body()).await?)
        });
        tokio::select! {
            answer = &mut answer => answer,
            // What it said last is to be read still, or why it broke.
            _ = connection => answer.await,
        }
    }
}

fn unreachable(error: hyper::Error) -> ScrapeError {
    ScrapeError::Unreachable(Box::new(error))
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
