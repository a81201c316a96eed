//! Errors told to Sentry, for those who set `SENTRY_DSN`: log lines of level error, panics, and why the process ended.
//!
//! [`dsn`] says where to, [`envelope`] is the form in which Sentry takes them, `layer` picks them out of the log, `sender`
//! sends them from a thread of its own. Nothing here may delay or break what the process is for: the queue is short, what
//! does not fit is counted and left out, and a Sentry that does not answer is none.

pub mod dsn;
pub mod envelope;
mod layer;
mod sender;

use std::{panic, time::Duration};

use thiserror::Error;
use weir_api::hold::names::environment::{SENTRY_DSN, SENTRY_ENVIRONMENT};

use self::{
    dsn::{Dsn, DsnError},
    envelope::{Event, Level, Origin},
    sender::Queue,
};

pub use layer::Layer;

/// At the end of the process, what was told last has so long to go out.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Why nothing can be told.
#[derive(Debug, Error)]
pub enum SentryError {
    /// The address.
    #[error("{SENTRY_DSN} cannot be used")]
    Dsn(#[from] DsnError),
    /// The thread.
    #[error("the thread that reports to Sentry cannot be started")]
    Thread(#[from] std::io::Error),
}

/// Tells Sentry, until it is dropped.
#[derive(Debug)]
pub struct Sentry {
    queue: Queue,
}

impl Sentry {
    /// Begins, if the environment names a Sentry.
    pub fn of_environment(
        role: &str,
        release: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, SentryError> {
        let given = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let Some(dsn) = given(SENTRY_DSN) else {
            return Ok(None);
        };
        let origin = Origin {
            role: role.to_owned(),
            release: release.to_owned(),
            environment: given(SENTRY_ENVIRONMENT),
            server: given("POD_NAME").or_else(|| given("HOSTNAME")),
        };
        let sentry = Self {
            queue: sender::start(dsn.trim().parse::<Dsn>()?, origin)?,
        };
        sentry.watch_panics();
        Ok(Some(sentry))
    }

    /// Picks errors out of the log.
    pub fn layer(&self) -> Layer {
        Layer::new(self.queue.clone())
    }

    /// Tells why the process ends.
    pub fn tell_end(&self, why: &str) {
        self.queue.push(Event::now(Level::Fatal, why, "weir"));
    }

    fn watch_panics(&self) {
        let queue = self.queue.clone();
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let mut event = Event::now(Level::Error, "panic", "panic");
            if let Some(text) = info.payload_as_str() {
                event.message = format!("panic: {text}");
            }
            if let Some(place) = info.location() {
                event.fields.insert("place".to_owned(), place.to_string());
            }
            queue.push(event);
            before(info);
        }));
    }
}

impl Drop for Sentry {
    fn drop(&mut self) {
        self.queue.flush(LAST_WORDS);
    }
}
