//! Where services are learned from: a cluster, or a file that is read again on SIGHUP.

use std::path::PathBuf;

use thiserror::Error;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};
use weir_role::cluster::{self, ClientError};

use crate::{
    index::IndexSettings,
    settings::Source,
    targets::{self, TargetsError},
    view::ServiceView,
    watch::{self, News, WatchSettings},
};

/// Why services cannot be learned.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The file cannot be used.
    #[error(transparent)]
    Targets(#[from] TargetsError),
    /// SIGHUP cannot be listened to.
    #[error("SIGHUP cannot be listened to")]
    Signal(#[source] std::io::Error),
    /// The cluster cannot be reached.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Batches of changes that may wait to be carried out; the watches wait when there are more.
const UNTOLD: usize = 64;

/// Follows a source.
pub(super) enum Follow {
    File {
        path: PathBuf,
        known: Vec<ServiceView>,
        hangup: Signal,
        /// What the first reading brought, to be told first.
        first: Vec<News>,
    },
    Cluster(mpsc::Receiver<News>),
}

impl Follow {
    pub(super) async fn start(source: &Source, index: IndexSettings) -> Result<Self, SourceError> {
        match source {
            Source::File(path) => {
                let hangup = signal(SignalKind::hangup()).map_err(SourceError::Signal)?;
                let known = targets::read(path)?;
                let changes = targets::diff(&[], &known);
                Ok(Self::File {
                    path: path.clone(),
                    known,
                    hangup,
                    // Taken from the end.
                    first: vec![News::Synced, News::Changes(changes)],
                })
            }
            Source::Cluster {
                kubeconfig,
                namespaces,
            } => {
                let client = cluster::client(kubeconfig.as_deref()).await?;
                let settings = WatchSettings {
                    namespaces: namespaces.clone(),
                    index,
                };
                let (tell, news) = mpsc::channel(UNTOLD);
                tokio::spawn(watch::run(client, settings, tell));
                Ok(Self::Cluster(news))
            }
        }
    }

    /// The next news. May be given up and called again.
    pub(super) async fn next(&mut self) -> News {
        match self {
            Self::File {
                path,
                known,
                hangup,
                first,
            } => loop {
                if let Some(first) = first.pop() {
                    return first;
                }
                hangup.recv().await;
                match targets::read(path) {
                    Ok(now) => {
                        let changes = targets::diff(known, &now);
                        tracing::info!(
                            changes = changes.len(),
                            "the file of targets was read again"
                        );
                        *known = now;
                        return News::Changes(changes);
                    }
                    Err(error) => {
                        let error = &error as &dyn std::error::Error;
                        tracing::error!(
                            error,
                            "the file of targets is left aside; what was known stays"
                        );
                    }
                }
            },
            Self::Cluster(news) => match news.recv().await {
                Some(news) => news,
                // The watches never end by themselves; should they, what is known stays.
                None => std::future::pending().await,
            },
        }
    }
}
