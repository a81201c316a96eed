//! The last phase: a request is over when its answer has been sent, or given up; then it is counted.

use std::{sync::Arc, time::Instant};

use http::{Method, StatusCode};

use crate::{
    backend::{Backend, Finished},
    client::ClientConnection,
    usage::InUse,
};

/// A request that is being worked on, as its connection sees it.
#[derive(Debug)]
pub(crate) struct Busy(Arc<ClientConnection>);

/// Goes with an answer, and is dropped when that has been sent.
#[derive(Debug)]
pub(crate) struct Finish {
    /// None: it was answered before it was known whom it was for.
    pub(crate) backend: Option<Arc<Backend>>,
    pub(crate) method: Method,
    pub(crate) status: StatusCode,
    pub(crate) began: Instant,
    #[allow(dead_code, reason = "it counts until it is dropped")]
    pub(crate) in_use: Option<InUse>,
    /// The connection is busy until then.
    #[allow(dead_code, reason = "it does its work when it is dropped")]
    pub(crate) busy: Busy,
}

impl Drop for Finish {
    fn drop(&mut self) {
        if let Some(backend) = &self.backend {
            backend.observer.finished(&Finished {
                method: &self.method,
                status: self.status,
                took: self.began.elapsed(),
            });
        }
    }
}

impl Busy {
    pub(crate) fn new(connection: &Arc<ClientConnection>) -> Self {
        connection.request_begins();
        Self(Arc::clone(connection))
    }

    pub(crate) fn connection(&self) -> &ClientConnection {
        &self.0
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.request_ends();
    }
}
