//! The resolver as a process.

use thiserror::Error;

use crate::settings::Settings;

/// Why the resolver ended before its time.
#[derive(Debug, Error)]
pub enum RoleError {
    /// It is not there yet.
    #[error("the resolver cannot be run yet")]
    NotYet,
}

/// Runs until it is told to end.
#[allow(clippy::unused_async, reason = "it will serve until it is told to end")]
pub async fn run(settings: Settings) -> Result<(), RoleError> {
    for note in &settings.notes {
        tracing::warn!("{note}");
    }
    Err(RoleError::NotYet)
}
