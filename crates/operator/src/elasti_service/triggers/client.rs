//! Asks a Prometheus server one question over HTTP or HTTPS.
//!
//! What is asked is [`super::question`]'s; what the answer means, [`super::answer`]'s.

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{ACCEPT, CONTENT_TYPE},
    uri::PathAndQuery,
};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client as HyperClient, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::time::timeout;

use super::{
    answer::{self, AnswerError},
    question::Question,
};

/// How long a server may take to answer, from the first byte of the connection to the last of the body.
pub const TIMEOUT: Duration = Duration::from_secs(5);
/// One number fits into much less; what is longer is none.
const ANSWER_LIMIT: usize = 1024 * 1024;
/// An idle connection is kept from one round to the next, and no longer.
const IDLE: Duration = Duration::from_secs(45);

/// Why there is no number.
#[derive(Debug, Error)]
pub enum AskError {
    /// It takes too long.
    #[error("no answer within {} s; see whether Prometheus is overloaded", .0.as_secs_f64())]
    Timeout(Duration),
    /// There is no connection, or it broke.
    #[error("Prometheus cannot be reached ({0}); see whether the address is right and it runs")]
    Unreachable(String),
    /// It does not know us.
    #[error("Prometheus refuses us with {0}; see metadata.headers")]
    Unauthorized(StatusCode),
    /// It sends us elsewhere.
    #[error("{0} leads elsewhere, which is not followed; give the address that answers itself")]
    Redirect(StatusCode),
    /// It cannot answer.
    #[error("Prometheus answers {status}{}", told.as_ref().map(|told| format!(": {told}")).unwrap_or_default())]
    Status {
        /// Its status.
        status: StatusCode,
        /// What it says about it.
        told: Option<String>,
    },
    /// The answer never ends.
    #[error("the answer is longer than {} KiB", ANSWER_LIMIT / 1024)]
    TooLong,
    /// The answer ends too soon.
    #[error("the answer breaks off ({0})")]
    Cut(String),
    /// There is an answer, which is no number.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// A request that cannot be made.
    #[error("the question cannot be sent; see the address and metadata.headers")]
    Request,
    /// A mistake of ours.
    #[error("asking failed inside; please report it with the log above")]
    Panic,
}

/// Asks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    client: HyperClient<HttpsConnector<HttpConnector>, Full<Bytes>>,
    timeout: Duration,
}

impl AskError {
    /// A label for metrics, out of a fixed set.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Timeout(_) => "timeout",
            Self::Unreachable(_) => "unreachable",
            Self::Unauthorized(_) => "unauthorized",
            Self::Redirect(_) => "redirect",
            Self::Status { .. } => "status",
            Self::TooLong => "too_long",
            Self::Cut(_) => "cut",
            Self::Answer(AnswerError::Malformed) => "malformed",
            Self::Answer(AnswerError::Told(_)) => "refused",
            Self::Answer(AnswerError::Empty) => "empty",
            Self::Answer(AnswerError::Several(_)) => "several",
            Self::Answer(AnswerError::NotANumber | AnswerError::NotFinite(_)) => "not_a_number",
            Self::Request => "request",
            Self::Panic => "panic",
        }
    }
}

impl Client {
    /// A client that trusts whom this machine trusts.
    pub fn new() -> Self {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        let (_, unusable) = roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            tracing::warn!(
                unusable,
                "no root certificates are found, so no Prometheus can be asked over HTTPS; see SSL_CERT_FILE"
            );
        }
        Self::trusting(roots)
    }

    /// A client that trusts these alone.
    pub fn trusting(roots: RootCertStore) -> Self {
        weir_role::tls::install_provider();
        let tls = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        http.enforce_http(false);
        http.set_connect_timeout(Some(TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = HyperClient::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(4)
            .build(connector);
        Self {
            client,
            timeout: TIMEOUT,
        }
    }

    /// The same with less patience, for tests.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long one question may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The number that answers a question.
    pub async fn ask(&self, question: &Question) -> Result<f64, AskError> {
        timeout(self.timeout, self.send(question))
            .await
            .unwrap_or(Err(AskError::Timeout(self.timeout)))
    }

    async fn send(&self, question: &Question) -> Result<f64, AskError> {
        let mut response = self.request(question, Method::POST).await?;
        // As Prometheus' own client does: some servers and what stands before them take only GET.
        if matches!(
            response.status(),
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED
        ) {
            response = self.request(question, Method::GET).await?;
        }
        let status = response.status();
        if status.is_redirection() {
            return Err(AskError::Redirect(status));
        }
        let body = Limited::new(response.into_body(), ANSWER_LIMIT)
            .collect()
            .await;
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(AskError::Unauthorized(status)),
            status if status.is_success() => {
                let body = body.map_err(|error| match error.downcast::<LengthLimitError>() {
                    Ok(_) => AskError::TooLong,
                    Err(error) => AskError::Cut(root_cause(&*error)),
                })?;
                Ok(answer::read(&body.to_bytes())?)
            }
            status => {
                let told = body.ok().and_then(|body| answer::told(&body.to_bytes()));
                Err(AskError::Status { status, told })
            }
        }
    }

    async fn request(
        &self,
        question: &Question,
        method: Method,
    ) -> Result<Response<Incoming>, AskError> {
        let attempt = || {
            let request = request(question, method.clone()).ok_or(AskError::Request);
            request.map(|request| self.client.request(request))
        };
        let response = match attempt()?.await {
            // Most likely a connection of the last round, which the server closed just now.
            Err(error) if !error.is_connect() => attempt()?.await,
            response => response,
        };
        response.map_err(|error| AskError::Unreachable(root_cause(&error)))
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

fn request(question: &Question, method: Method) -> Option<Request<Full<Bytes>>> {
    let form = format!("query={}", percent_encoded(&question.query));
    let (uri, body) = if method == Method::GET {
        (with_query(&question.endpoint, &form)?, String::new())
    } else {
        (question.endpoint.clone(), form)
    };
    let is_form = method == Method::POST;
    let mut request = Request::builder().method(method).uri(uri);
    let headers = request.headers_mut()?;
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    for (name, value) in &question.headers {
        headers.insert(name, value.clone());
    }
    if is_form {
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, form);
    }
    request.body(Full::new(Bytes::from(body))).ok()
}

/// The endpoint with this added to what stands behind its question mark.
fn with_query(endpoint: &Uri, form: &str) -> Option<Uri> {
    let mut parts = endpoint.clone().into_parts();
    let path = parts.path_and_query.as_ref()?;
    let sign = if path.query().is_some() { '&' } else { '?' };
    let path = PathAndQuery::try_from(format!("{path}{sign}{form}")).ok()?;
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).ok()
}

fn percent_encoded(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = String::with_capacity(text.len() * 3);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push(char::from(DIGITS[usize::from(byte >> 4)]));
            encoded.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
    encoded
}

/// What lies behind an error: hyper's own words say little.
pub(super) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
