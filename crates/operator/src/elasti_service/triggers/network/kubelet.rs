//! Asks one kubelet for its summary: over TLS, with the token of our ServiceAccount, bounded in time and size, without
//! redirects. What the answer says is read by [`super::summary`]; where the kubelet is, by [`super::nodes`].

use std::{
    error::Error,
    fmt, io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{
    Request, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, HeaderValue},
};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::{ClientConfig, pki_types::pem};
use tokio::time::{Instant, timeout};
use weir_role::{metrics::lock, tls::believing_anybody};

use super::{
    nodes::NodeError,
    summary::{self, NotASummary, Summary},
};
use crate::{
    elasti_service::triggers::client::root_cause,
    settings::kubelets::{KubeletSettings, Trust},
    token::{Token, TokenError},
    trust::authorities,
};

/// How long a kubelet may take, from the first byte of the connection to the last of the answer.
pub const TIMEOUT: Duration = Duration::from_secs(5);
/// A node of 500 pods, which is more than Kubernetes recommends fourfold, answers some 6 MiB.
pub const ANSWER_LIMIT: usize = 8 * 1024 * 1024;
/// So long the authorities that were read are good: Kubernetes renews them in our pods, too.
const FRESH: Duration = Duration::from_secs(30);
const PATH: &str = "/stats/summary";

type HyperClient = Client<HttpsConnector<HttpConnector>, Empty<Bytes>>;

/// Asks kubelets. Cheap to clone.
#[derive(Clone)]
pub struct Kubelets {
    trust: Trust,
    token: Token,
    timeout: Duration,
    fresh: Duration,
    known: Arc<Mutex<Option<Known>>>,
}

/// A client, and what it believes.
#[derive(Clone)]
struct Known {
    read: Instant,
    file: Vec<u8>,
    client: HyperClient,
}

/// Why a kubelet says nothing.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody knows where it is.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The authorities cannot be read.
    #[error(
        "no certificate can be read from {}, so no kubelet is believed; name the authority of the kubelets' certificates with --kubelet-ca-file",
        path.display()
    )]
    Ca {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// The token cannot be read.
    #[error("{0}, which has the token for kubelets; see --kubelet-token-file")]
    Token(#[from] TokenError),
    /// It takes too long.
    #[error("no answer within {} s; see whether the node is overloaded", .0.as_secs_f64())]
    Timeout(Duration),
    /// Its certificate is not signed by whom we believe.
    #[error(
        "its certificate is not believed ({0}); let the cluster sign the kubelets' certificates (serverTLSBootstrap), name their authority with --kubelet-ca-file, or give --kubelet-insecure-tls"
    )]
    Certificate(String),
    /// There is no connection, or it broke.
    #[error("it cannot be reached ({0}); see whether the operator may connect to its port")]
    Unreachable(String),
    /// It does not know us.
    #[error("it does not take our token (401); see whether its webhook authentication is on")]
    Unauthorized,
    /// It knows us, and we may not.
    #[error(
        "we may not ask it (403); the operator needs the right to get nodes/stats, so apply `weir manifests` again"
    )]
    Forbidden,
    /// It cannot answer, or sends us elsewhere, where nobody is asked.
    #[error("it answers {0}; see whether the node is well")]
    Status(StatusCode),
    /// The answer never ends.
    #[error("its answer is longer than {} MiB", ANSWER_LIMIT / 1024 / 1024)]
    TooLong,
    /// The answer ends too soon.
    #[error("its answer breaks off ({0})")]
    Cut(String),
    /// The answer is of somebody else.
    #[error(transparent)]
    Content(#[from] NotASummary),
    /// A request that cannot be made.
    #[error("the question cannot be written")]
    Request(#[from] http::Error),
    /// A mistake of ours.
    #[error("asking failed inside; please report it with the log above")]
    Panic,
}

impl AskError {
    /// A label for metrics, out of a fixed set.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Node(_) => "node",
            Self::Ca { .. } => "ca",
            Self::Token(_) => "token",
            Self::Timeout(_) => "timeout",
            Self::Certificate(_) => "certificate",
            Self::Unreachable(_) => "unreachable",
            Self::Unauthorized | Self::Forbidden => "unauthorized",
            Self::Status(_) => "status",
            Self::TooLong => "too_long",
            Self::Cut(_) => "cut",
            Self::Content(_) => "malformed",
            Self::Request(_) => "request",
            Self::Panic => "panic",
        }
    }
}

impl fmt::Debug for Kubelets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubelets")
            .field("trust", &self.trust)
            .finish_non_exhaustive()
    }
}

impl Kubelets {
    /// Asks as it is told to. Files are read when they are needed: who has no such trigger needs none.
    pub fn new(settings: &KubeletSettings) -> Self {
        weir_role::tls::install_provider();
        Self {
            trust: settings.trust.clone(),
            token: Token::new(settings.token.clone()),
            timeout: TIMEOUT,
            fresh: FRESH,
            known: Arc::default(),
        }
    }

    /// The same with less patience, for tests.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The same, where what was read of files is good for another time; for tests.
    #[must_use]
    pub fn good_for(mut self, fresh: Duration) -> Self {
        self.fresh = fresh;
        self.token = self.token.good_for(fresh);
        self
    }

    /// How long all that a question takes may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// What the kubelet there says.
    pub async fn ask(&self, address: SocketAddr) -> Result<Summary, AskError> {
        timeout(self.timeout, self.ask_patiently(address))
            .await
            .unwrap_or(Err(AskError::Timeout(self.timeout)))
    }

    async fn ask_patiently(&self, address: SocketAddr) -> Result<Summary, AskError> {
        let client = self.client().await?;
        let uri = Uri::builder()
            .scheme("https")
            .authority(address.to_string())
            .path_and_query(PATH)
            .build()?;
        let mut request = Request::get(uri).body(Empty::new())?;
        let headers = request.headers_mut();
        headers.insert(AUTHORIZATION, self.token.header().await?);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let response = client.request(request).await;
        let response = response.map_err(|error| match distrust(&error) {
            Some(why) => AskError::Certificate(why),
            None => AskError::Unreachable(root_cause(&error)),
        })?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => return Err(AskError::Unauthorized),
            StatusCode::FORBIDDEN => return Err(AskError::Forbidden),
            status => return Err(AskError::Status(status)),
        }
        let body = Limited::new(response.into_body(), ANSWER_LIMIT);
        let body = body.collect().await;
        let body = body.map_err(|error| match error.downcast::<LengthLimitError>() {
            Ok(_) => AskError::TooLong,
            Err(error) => AskError::Cut(root_cause(&*error)),
        })?;
        Ok(summary::read(&body.to_bytes())?)
    }

    /// A client that believes whom the file names now.
    async fn client(&self) -> Result<HyperClient, AskError> {
        let known = lock(&self.known).clone();
        let is_fresh = |known: &Known| known.read.elapsed() < self.fresh;
        if let Some(known) = known.as_ref().filter(|known| is_fresh(known)) {
            return Ok(known.client.clone());
        }
        let (file, tls) = match &self.trust {
            Trust::Anybody => (Vec::new(), believing_anybody()),
            Trust::Authorities(path) => {
                let wrong = |source| AskError::Ca {
                    path: path.clone(),
                    source,
                };
                let file = tokio::fs::read(path).await;
                let file = file.map_err(|error| wrong(pem::Error::Io(error)))?;
                let roots = authorities(&file).map_err(wrong)?;
                let tls = ClientConfig::builder()
                    .with_root_certificates(roots)
                    .with_no_client_auth();
                (file, tls)
            }
        };
        let client = match known.filter(|known| known.file == file) {
            Some(known) => known.client,
            None => client(tls),
        };
        *lock(&self.known) = Some(Known {
            read: Instant::now(),
            file,
            client: client.clone(),
        });
        Ok(client)
    }
}

/// A connection to each node, idle between rounds, costs more than to open it.
fn client(tls: ClientConfig) -> HyperClient {
    let mut http = HttpConnector::new();
    http.set_nodelay(true);
    http.enforce_http(false);
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only()
        .enable_http1()
        .wrap_connector(http);
    Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(0)
        .build(connector)
}

/// What is wrong with a certificate, if that is what was wrong.
fn distrust(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(rustls::Error::InvalidCertificate(why)) = error.downcast_ref() {
            return Some(why.to_string());
        }
        // What an I/O error wraps is not its source.
        let wrapped = error.downcast_ref().and_then(io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}
