//! Picks errors out of the log.

use std::{collections::BTreeMap, fmt};

use tracing::{
    Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::layer::Context;

use super::{
    envelope::{Event, Level},
    sender::Queue,
};

/// No log line of ours has more.
const FIELDS: usize = 32;

/// The part of the log that tells Sentry.
#[derive(Debug)]
pub struct Layer {
    queue: Queue,
}

#[derive(Default)]
struct Fields {
    message: String,
    others: BTreeMap<String, String>,
}

impl Layer {
    pub(super) fn new(queue: Queue) -> Self {
        Self { queue }
    }
}

impl<S: Subscriber> tracing_subscriber::Layer<S> for Layer {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if *metadata.level() != tracing::Level::ERROR {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut error = Event::now(Level::Error, &fields.message, metadata.target());
        error.fields = fields.others;
        self.queue.push(error);
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.message);
        } else if self.others.len() < FIELDS {
            self.others
                .insert(field.name().to_owned(), value.to_owned());
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::prelude::*;

    use super::*;

    #[test]
    fn errors_are_told_with_their_fields_and_nothing_else_is() {
        let (queue, next) = Queue::kept();
        let log = tracing_subscriber::registry().with(Layer::new(queue));
        tracing::subscriber::with_default(log, || {
            tracing::warn!("not this");
            tracing::error!(service = "web", count = 3, "it failed");
        });
        let event = next().unwrap();
        assert_eq!((event.level, &*event.message), (Level::Error, "it failed"));
        assert!(event.logger.contains("sentry::layer"), "{event:?}");
        assert_eq!(event.fields["service"], "web");
        assert_eq!(event.fields["count"], "3");
        assert_eq!(next(), None);
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let (queue, next) = Queue::kept();
        for _ in 0..100 {
            queue.push(Event::now(Level::Error, "again", "weir"));
        }
        let mut kept = 0;
        while next().is_some() {
            kept += 1;
        }
        assert!(kept > 0 && kept + queue.left_out() == 100, "{kept}");
    }
}
