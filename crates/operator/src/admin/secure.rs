//! Metrics over TLS, with a certificate made at start, for those who may read them.
//!
//! The certificate is self-signed: it keeps what is sent from others' eyes, and Prometheus is told not to check it, as
//! with other operators. Who may read is decided by their token.

use std::{future::Future, sync::Arc, time::Duration};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use thiserror::Error;
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use weir_role::internal_port;

use super::{AdminState, routes};

/// A client has so long to shake hands.
const HANDSHAKE: Duration = Duration::from_secs(10);

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
    let open = move |stream: TcpStream| {
        let accepted = acceptor.accept(stream);
        // Who does not speak TLS, or too slowly, concerns nobody else.
        async move { timeout(HANDSHAKE, accepted).await.ok()?.ok() }
    };
    internal_port::serve_through(listener, routes::metrics_for_some(state), open, shutdown).await;
    Ok(())
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
