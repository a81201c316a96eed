//! An ElastiService is deleted: nothing of ours is left, and nobody is left without an answer.

use serde_json::Value;
use weir_api::hold::names;

use super::{bed::Bed, client, echo::Echo, objects::Kind};

#[tokio::test(flavor = "multi_thread")]
async fn deleted_while_it_serves_it_leaves_nothing() {
    let bed = Bed::new("delete").await;
    let echo = Echo::new("echo");
    bed.hold(&echo).await;
    // Only then is it certain that everything was there to be left.
    bed.until("the private Service is there", || {
        private_service(&bed, &echo)
    })
    .await;
    bed.objects.delete(Kind::ElastiService, echo.name).await;
    nothing_is_left(&bed, &echo).await;
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_at_zero_it_is_woken_and_leaves_nothing() {
    let bed = Bed::new("delete-zero").await;
    let echo = Echo::new("echo");
    bed.at_zero(&echo).await;
    bed.objects.delete(Kind::ElastiService, echo.name).await;
    nothing_is_left(&bed, &echo).await;
    assert_eq!(bed.replicas(&echo).await, 1);
    let answer = client::get(bed.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("x-weir-via"), "-");
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_while_requests_are_held_it_answers_them() {
    let bed = Bed::new("delete-held").await;
    let mut echo = Echo::new("echo");
    echo.arguments = vec!["--start-delay", "3s"];
    bed.at_zero(&echo).await;
    let address = bed.address(&echo).await;
    let held = tokio::spawn(client::get(address, "/echo"));
    bed.is_in_phase(&echo, "Waking").await;
    bed.objects.delete(Kind::ElastiService, echo.name).await;
    let answer = held.await.expect("an answer");
    assert_eq!(answer.status, 200, "{answer:?}");
    nothing_is_left(&bed, &echo).await;
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_can_be_deleted_when_its_service_and_target_went_first() {
    let bed = Bed::new("delete-last").await;
    let echo = Echo::new("echo");
    bed.at_zero(&echo).await;
    bed.objects.delete(Kind::Service, echo.name).await;
    bed.objects.delete(echo.kind, echo.name).await;
    bed.objects.delete(Kind::ElastiService, echo.name).await;
    is_gone(&bed, &echo).await;
    bed.end().await;
}

async fn private_service(bed: &Bed, echo: &Echo) -> Result<(), &'static str> {
    let name = names::private_service(echo.name);
    let found = bed.objects.find(Kind::Service, &name).await;
    found.map(drop).ok_or("it is not")
}

/// Waits until the object and all that was derived from it are gone.
async fn is_gone(bed: &Bed, echo: &Echo) {
    bed.until("the ElastiService is gone", || async {
        match bed.objects.find(Kind::ElastiService, echo.name).await {
            None => Ok(()),
            Some(left) => Err(format!("{left}")),
        }
    })
    .await;
    bed.until("no slice and no private Service is left", || async {
        // Whatever is derived has this label, whoever it was made for.
        let mut left = bed.objects.list(Kind::Service, names::UID_LABEL).await;
        left.extend(
            bed.objects
                .list(Kind::EndpointSlice, names::UID_LABEL)
                .await,
        );
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?}"))
        }
    })
    .await;
}

async fn nothing_is_left(bed: &Bed, echo: &Echo) {
    is_gone(bed, echo).await;
    for (kind, name) in [(echo.kind, echo.name), (Kind::Service, echo.name)] {
        let object = bed.objects.get(kind, name).await;
        for place in ["annotations", "labels", "finalizers", "ownerReferences"] {
            let marks = object["metadata"][place].to_string();
            let ours = ["elasti", "weir"];
            assert!(
                !ours.iter().any(|word| marks.contains(word)),
                "{kind:?}: {marks}"
            );
        }
        assert_eq!(object["metadata"]["deletionTimestamp"], Value::Null);
    }
}
