//! A test that waits in vain hears what Kubernetes has to say.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, ObjectReference};
use kube::{Api, api::PostParams};
use weir_lab::api_server;

#[tokio::test]
async fn who_waits_in_vain_hears_the_events_of_the_namespace() {
    let namespace = api_server().await.namespace("eventually").await;
    let mut event = Event {
        reason: Some("OutOfBeer".to_owned()),
        message: Some("the fridge is empty".to_owned()),
        involved_object: ObjectReference {
            namespace: Some(namespace.name().to_owned()),
            ..ObjectReference::default()
        },
        ..Event::default()
    };
    event.metadata.name = Some("one".to_owned());
    let events: Api<Event> = namespace.api();
    events.create(&PostParams::default(), &event).await.unwrap();

    let waiting = tokio::spawn(async move {
        let patience = Duration::from_millis(50);
        let never = || async { Err::<(), _>("still none") };
        namespace.eventually(patience, "there is beer", never).await;
    });
    let panic = waiting.await.unwrap_err().into_panic();
    let told = panic.downcast_ref::<String>().unwrap();
    for part in [
        "there is beer",
        "still none",
        "OutOfBeer",
        "the fridge is empty",
    ] {
        assert!(told.contains(part), "no {part:?} in\n{told}");
    }
}
