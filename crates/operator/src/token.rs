//! A token from a file that somebody else renews: Kubernetes puts a new one into a pod long before the old one ends. Shown to
//! exporters, and to kubelets.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::HeaderValue;
use thiserror::Error;
use tokio::time::Instant;

/// So long what was read is good: there may be thousands of questions within a second.
const FRESH: Duration = Duration::from_secs(30);

/// The token in a file. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    path: PathBuf,
    fresh: Duration,
    known: Arc<Mutex<Option<(Instant, HeaderValue)>>>,
}

/// Why there is no token.
#[derive(Debug, Error)]
pub enum TokenError {
    /// The file.
    #[error("{} cannot be read", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is not repeated, as it may be a secret all the same.
    #[error("what is in {} is not one line of text", .0.display())]
    Content(PathBuf),
}

impl Token {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            fresh: FRESH,
            known: Arc::default(),
        }
    }

    /// The same, where what was read is good for another time.
    pub(crate) fn good_for(self, fresh: Duration) -> Self {
        Self { fresh, ..self }
    }

    /// The header that carries it.
    pub(crate) async fn header(&self) -> Result<HeaderValue, TokenError> {
        let known = self.lock().clone();
        if let Some((_, header)) = known.filter(|(read, _)| read.elapsed() < self.fresh) {
            return Ok(header);
        }
        let text = tokio::fs::read_to_string(&self.path).await;
        let text = text.map_err(|source| TokenError::File {
            path: self.path.clone(),
            source,
        })?;
        let token = text.trim();
        let header = HeaderValue::try_from(format!("Bearer {token}"));
        let mut header = header
            .ok()
            .filter(|_| !token.is_empty())
            .ok_or_else(|| TokenError::Content(self.path.clone()))?;
        header.set_sensitive(true);
        *self.lock() = Some((Instant::now(), header.clone()));
        Ok(header)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(Instant, HeaderValue)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
