//! Events on a real API server, which checks their form.

use k8s_openapi::api::{
    core::v1::{ConfigMap, ObjectReference},
    events::v1::Event,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{ListParams, PostParams},
    runtime::events::Reporter,
};
use tokio::time::timeout;
use weir_operator::events::{Events, Note, NoteKind};

use super::PATIENCE;

fn note(text: &str) -> Note {
    Note {
        kind: NoteKind::Warning,
        reason: "FailedToScale",
        action: "Scale",
        text: text.to_owned(),
    }
}

#[tokio::test]
async fn what_is_told_can_be_read_and_the_same_is_counted() {
    let namespace = weir_lab::api_server().await.namespace("events").await;
    let objects: Api<ConfigMap> = namespace.api();
    // The longest name there is.
    let name = format!("{}.a", "a".repeat(251));
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.clone());
    let object = objects
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    let about: ObjectReference = object.object_ref(&());
    let reporter = Reporter {
        controller: "weir-operator".to_owned(),
        instance: Some("weir-operator-x".to_owned()),
    };
    let (events, writer) = Events::start(namespace.client(), reporter);
    let writer = tokio::spawn(writer);
    for _ in 0..5 {
        events.tell(about.clone(), note("no such Deployment"));
    }
    events.tell(about.clone(), note("another text"));
    events.tell(about.clone(), note(&"ü".repeat(2000)));
    assert_eq!(events.lost(), 0);
    // The writer ends when there is nobody left to tell anything, and not before all is written.
    drop(events);
    timeout(PATIENCE, writer).await.expect("ends").unwrap();

    let all: Api<Event> = namespace.api();
    let mut all = all.list(&ListParams::default()).await.unwrap().items;
    all.sort_by_key(|event| event.note.clone());
    assert_eq!(all.len(), 3, "{all:?}");
    let [another, same, long] = all.as_slice() else {
        panic!("three")
    };
    assert_eq!(another.note.as_deref(), Some("another text"));
    assert!(another.series.is_none());
    assert_eq!(same.series.as_ref().unwrap().count, 5);
    assert_eq!(same.reason.as_deref(), Some("FailedToScale"));
    assert_eq!(same.type_.as_deref(), Some("Warning"));
    assert_eq!(same.reporting_instance.as_deref(), Some("weir-operator-x"));
    let regarding = same.regarding.as_ref().unwrap();
    assert_eq!(regarding.name.as_deref(), Some(object.name_any().as_str()));
    assert_eq!(regarding.uid, object.metadata.uid);
    assert!(long.note.as_ref().unwrap().len() <= 1024);
}

#[tokio::test]
async fn telling_never_waits_and_what_does_not_fit_is_counted() {
    let namespace = weir_lab::api_server().await.namespace("events").await;
    let reporter = Reporter {
        controller: "weir-operator".to_owned(),
        instance: None,
    };
    // Nobody writes.
    let (events, writer) = Events::start(namespace.client(), reporter);
    for number in 0..1100 {
        events.tell(ObjectReference::default(), note(&number.to_string()));
    }
    assert_eq!(events.lost(), 1100 - 1024);
    drop(writer);
}
