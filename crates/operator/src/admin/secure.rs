//! Metrics over TLS, with a certificate made at start, for those who may read them.
//!
//! The certificate is self-signed: it keeps what is sent from others' eyes, and Prometheus is told not to check it, as
//! with other operators. Who may read is decided by their token.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use thiserror::Error;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::{AdminState, routes};

/// A client has so long to shake hands, and as long to send its headers.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// No connection lasts longer.
const CONNECTION: Duration = Duration::from_mins(5);
/// Request line and headers; a token is about 1 KiB.
const HEADER_BYTES: usize = 16 * 1024;
/// Prometheus, and some people.
const CONNECTIONS: usize = 64;
/// After an accept that failed, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Why metrics cannot be told over TLS.
#[derive(Debug, Error)]
pub enum SecureError {
    /// No certificate.
    #[error("no certificate for secured metrics can be made")]
    Certificate(#[from] rcgen::Error),
    /// A certificate that TLS does not take.
    #[error("the certificate for secured metrics cannot be used")]
    Tls(#[from] rustls::Error),
}

/// Tells metrics over TLS until `shutdown`; then what is under way is cut.
pub async fn serve(
    listener: TcpListener,
    state: AdminState,
    shutdown: impl Future<Output = ()>,
) -> Result<(), SecureError> {
    let acceptor = TlsAcceptor::from(Arc::new(certified()?));
    let service = TowerToHyperService::new(routes::metrics_for_some(state));
    let answer = async move |stream: TcpStream| {
        let Ok(Ok(stream)) = timeout(HANDSHAKE, acceptor.accept(stream)).await else {
            // Who does not speak TLS, or too slowly, concerns nobody else.
            return;
        };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HANDSHAKE)
            .max_buf_size(HEADER_BYTES)
            .serve_connection(TokioIo::new(stream), service.clone());
        let _ = timeout(CONNECTION, connection).await;
    };
    let answer = Arc::new(answer);
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (listener.accept().await, place)
        };
        tokio::select! {
            () = &mut shutdown => return Ok(()),
            Some(_) = connections.join_next() => {}
            (accepted, place) = accepted => match accepted {
                Ok((stream, _)) => {
                    let answer = Arc::clone(&answer);
                    connections.spawn(async move {
                        let _place = place;
                        answer(stream).await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection to the port of secured metrics cannot be accepted");
                    sleep(PAUSE).await;
                }
            }
        }
    }
}

fn certified() -> Result<ServerConfig, SecureError> {
    let names = ["weir-operator".to_owned(), "localhost".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
