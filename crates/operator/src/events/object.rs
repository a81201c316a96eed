//! An Event as Kubernetes takes it.

use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::runtime::events::Reporter;

use super::{Note, NoteKind};

/// Bytes of a text, at most.
const TEXT: usize = 1024;
/// Bytes of a reason, an action and a reporter, at most.
const WORD: usize = 128;
/// Bytes of an object's name, at most.
const NAME: usize = 253;
/// Where Events about what is in no namespace go.
const DEFAULT: &str = "default";

/// The namespace of an Event about an object.
pub(super) fn namespace(about: Option<&str>) -> &str {
    about
        .filter(|namespace| !namespace.is_empty())
        .unwrap_or(DEFAULT)
}

/// A new one.
pub(super) fn event(
    about: &ObjectReference,
    note: &Note,
    reporter: &Reporter,
    now: Timestamp,
) -> Event {
    let instance = reporter.instance.as_ref().unwrap_or(&reporter.controller);
    // As kubectl's own are named: the object, and the time in nanoseconds.
    let time = format!(".{:016x}", now.as_nanosecond());
    let object = about.name.as_deref().unwrap_or("unnamed");
    Event {
        metadata: ObjectMeta {
            namespace: Some(namespace(about.namespace.as_deref()).to_owned()),
            name: Some(format!("{}{time}", start(object, NAME - time.len()))),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(now)),
        regarding: Some(about.clone()),
        type_: Some(match note.kind {
            NoteKind::Normal => "Normal".to_owned(),
            NoteKind::Warning => "Warning".to_owned(),
        }),
        reason: Some(start(note.reason, WORD).to_owned()),
        action: Some(start(note.action, WORD).to_owned()),
        note: Some(cut(&note.text)),
        reporting_controller: Some(start(&reporter.controller, WORD).to_owned()),
        reporting_instance: Some(start(instance, WORD).to_owned()),
        ..Event::default()
    }
}

/// What fits, with a mark where something is missing.
fn cut(text: &str) -> String {
    const MARK: &str = "…";
    if text.len() <= TEXT {
        return text.to_owned();
    }
    format!("{}{MARK}", start(text, TEXT - MARK.len()))
}

fn start(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_fits_and_begins_as_it_did(text in "(ä|€|a|😀){0,1100}") {
            let cut = cut(&text);
            prop_assert!(cut.len() <= TEXT);
            if text.len() <= TEXT {
                prop_assert_eq!(cut, text);
            } else {
                prop_assert!(text.starts_with(cut.strip_suffix('…').unwrap()));
                prop_assert!(cut.len() > TEXT - 8);
            }
        }
    }
}
