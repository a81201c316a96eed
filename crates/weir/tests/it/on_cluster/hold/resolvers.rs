//! Resolvers come and go while a target sleeps.

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{
    bed::Bed,
    client::{self, Answer},
    echo::Echo,
    objects::Kind,
};

/// As `weir manifests` has it.
const USUAL: usize = 2;

/// Waits until so many are ready, and the slice holds exactly those.
async fn slice_holds(bed: &Bed, echo: &Echo, count: usize) {
    bed.until(
        &format!("the slice holds the {count} resolvers"),
        || async {
            let resolvers = bed.resolvers().await;
            let slice = bed.slice(echo).await;
            if resolvers.len() == count && slice.as_ref() == Some(&resolvers) {
                Ok(())
            } else {
                Err(format!("{slice:?}, and {resolvers:?} are ready"))
            }
        },
    )
    .await;
}

async fn scale(bed: &Bed, replicas: usize) {
    let change = json!({"spec": {"replicas": replicas}});
    bed.weir
        .patch(Kind::Deployment, "weir-resolver", &change)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_slice_holds_exactly_the_ready_resolvers() {
    let bed = Bed::new("resolvers").await;
    let echo = Echo::new("echo");
    bed.at_zero(&echo).await;
    slice_holds(&bed, &echo, USUAL).await;
    scale(&bed, USUAL + 1).await;
    slice_holds(&bed, &echo, USUAL + 1).await;
    scale(&bed, USUAL).await;
    slice_holds(&bed, &echo, USUAL).await;
    assert_eq!(bed.status(&echo).await["phase"], "Asleep");
    let answer = client::get(bed.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resolver_that_is_told_to_go_answers_what_it_holds() {
    let (bed, echo) = slow_at_zero("resolver-goes").await;
    let held = hold_some(&bed, &echo).await;
    bed.weir.delete(Kind::Pod, &a_resolver(&bed).await).await;
    for answer in held {
        let answer = answer.await.expect("no panic").expect("an answer");
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    bed.is_in(&echo, "serve").await;
    usual_resolvers_are_ready(&bed).await;
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resolver_that_is_killed_loses_its_own_connections_and_no_other() {
    let (bed, echo) = slow_at_zero("resolver-dies").await;
    let held = hold_some(&bed, &echo).await;
    bed.kill(&a_resolver(&bed).await);
    let mut answered = 0;
    for answer in held {
        match answer.await.expect("no panic") {
            Ok(answer) => {
                assert_eq!(answer.status, 200, "{answer:?}");
                answered += 1;
            }
            // It was on a connection of the dead one.
            Err(error) => assert!(!error.contains("no answer"), "{error}"),
        }
    }
    assert!(answered > 0, "the other one held nothing");
    bed.is_in(&echo, "serve").await;
    bed.is_out_of_the_path(&echo).await;
    usual_resolvers_are_ready(&bed).await;
    bed.end().await;
}

/// At zero, and slow enough that something can happen while it wakes.
async fn slow_at_zero(name: &str) -> (Bed, Echo) {
    let bed = Bed::new(name).await;
    let mut echo = Echo::new("echo");
    echo.arguments = vec!["--start-delay", "3s"];
    bed.at_zero(&echo).await;
    (bed, echo)
}

/// So many requests that each of the resolvers holds some; returns when they are held.
async fn hold_some(bed: &Bed, echo: &Echo) -> Vec<JoinHandle<Result<Answer, String>>> {
    let address = bed.address(echo).await;
    let send = |_| tokio::spawn(client::try_get(address, "/echo"));
    let held = (0..20).map(send).collect();
    bed.is_in_phase(echo, "Waking").await;
    held
}

async fn a_resolver(bed: &Bed) -> String {
    let labels = "app.kubernetes.io/component=resolver";
    let pods = bed.weir.list(Kind::Pod, labels).await;
    let stays = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
    let pod = pods.iter().find(stays).expect("a resolver");
    pod["metadata"]["name"].as_str().expect("a name").to_owned()
}

/// The next test finds things as this one did.
async fn usual_resolvers_are_ready(bed: &Bed) {
    bed.until("a successor is ready", || async {
        let ready = bed.resolvers().await.len();
        if ready == USUAL { Ok(()) } else { Err(ready) }
    })
    .await;
}
