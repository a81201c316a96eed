//! What the parts of this controller share.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, Resource};
use tokio::time::Instant;
use weir_api::place::TrafficWatch;
use weir_place::{moment::Moment, plan::Options};

use super::{exporters::Exporters, hands::Hands};
use crate::{
    events::{Events, Note, NoteKind},
    metrics::OperatorMetrics,
    settings::exporters::Where,
};

/// What is shared. Nothing in it changes.
pub struct Context {
    /// To watch.
    pub client: Client,
    /// To write.
    pub hands: Hands,
    /// To ask nodes.
    pub exporters: Exporters,
    /// Where they are.
    pub exporters_at: Where,
    /// What users read.
    pub events: Events,
    /// What Prometheus reads.
    pub metrics: Arc<OperatorMetrics>,
    /// How far it may go on nodes.
    pub options: Options,
    /// Which nodes it looks at, as a selector of labels; none: all.
    pub nodes: Option<String>,
    /// Questions to exporters at a time, of any age.
    pub questions: usize,
    /// When this process began: moments count from here.
    pub began: Instant,
}

impl Context {
    /// The time since this process began.
    pub fn now(&self) -> Moment {
        Moment(self.began.elapsed())
    }

    /// Tells users of a watch something.
    pub fn tell(
        &self,
        object: &TrafficWatch,
        kind: NoteKind,
        reason: &'static str,
        action: &'static str,
        text: String,
    ) {
        let about: ObjectReference = object.object_ref(&());
        let note = Note {
            kind,
            reason,
            action,
            text,
        };
        self.events.tell(about, note);
    }
}
