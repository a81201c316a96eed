//! Other targets than a quick Deployment: one that starts slowly, a StatefulSet, a Rollout.

use std::time::{Duration, Instant};

use super::{bed::Bed, client, echo::Echo, objects::Kind};

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_starts_slowly_is_held_for_until_it_is_ready() {
    let bed = Bed::new("slow").await;
    let mut echo = Echo::new("echo");
    bed.at_zero(&echo).await;
    // Changed while it sleeps, so that the test waits for it only once.
    echo.arguments = vec!["--ready-delay", "20s"];
    echo.startup_seconds = Some(60);
    let mut slow = echo.workload();
    slow["spec"]["replicas"] = 0.into();
    bed.objects.apply(echo.kind, echo.name, &slow).await;

    let began = Instant::now();
    bed.scale(&echo, 1).await;
    bed.is_in_phase(&echo, "Waking").await;
    let answer = tokio::spawn(client::get(bed.address(&echo).await, "/echo"));
    assert_eq!(bed.status(&echo).await["mode"], "proxy");
    let answer = answer.await.expect("an answer");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(
        began.elapsed() >= Duration::from_secs(20),
        "it was not ready"
    );
    bed.is_in(&echo, "serve").await;
    bed.is_out_of_the_path(&echo).await;
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stateful_set_is_woken() {
    is_put_to_zero_and_woken(Kind::StatefulSet).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_is_woken() {
    is_put_to_zero_and_woken(Kind::Rollout).await;
}

async fn is_put_to_zero_and_woken(kind: Kind) {
    let bed = Bed::new(&kind.name().to_lowercase()).await;
    let echo = Echo::new("echo").of_kind(kind);
    bed.at_zero(&echo).await;
    let answer = client::get(bed.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(bed.replicas(&echo).await, 1);
    bed.is_in(&echo, "serve").await;
    bed.is_out_of_the_path(&echo).await;
    // By a trigger as well.
    let idle = super::triggers::with_query(&echo, "vector(0)");
    bed.apply_elasti(&echo, &idle).await;
    bed.is_in_phase(&echo, "Asleep").await;
    assert_eq!(bed.replicas(&echo).await, 0);
    bed.end().await;
}
