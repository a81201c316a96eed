//! Pods whose traffic real kubelets count: who is only probed is put to sleep, and who is used is not.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    bed::{Bed, PATIENCE, condition},
    client,
    echo::Echo,
    objects::Kind,
};

/// Longer than a kubelet lets pass between two looks at a pod's counters, usually.
const COOLDOWN: Duration = Duration::from_secs(20);
/// How long somebody uses it, once that was noticed.
const USED: Duration = Duration::from_secs(70);
const PAUSE: Duration = Duration::from_millis(100);
/// With a pause in between more than the default threshold by far, less than a busy machine takes.
const BODY: usize = 4096;

/// An ElastiService that goes by traffic.
fn by_traffic(echo: &Echo) -> Value {
    let mut elasti = echo.elasti();
    elasti["spec"]["cooldownPeriod"] = COOLDOWN.as_secs().into();
    elasti["spec"]["triggers"] = json!([{"type": "network"}]);
    elasti
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_is_only_probed_is_put_to_sleep_and_again_after_a_wake() {
    let bed = Bed::new("traffic-idle").await;
    // Its readiness is probed every second.
    let echo = Echo::new("echo");
    bed.serve(&echo).await;
    bed.apply_elasti(&echo, &by_traffic(&echo)).await;
    bed.falls_asleep(&echo).await;
    assert_eq!(bed.replicas(&echo).await, 0);
    let status = bed.status(&echo).await;
    let failing = condition(&status, "TriggerFailing");
    assert!(failing.is_none_or(|it| it["status"] == "False"), "{status}");

    let answer = client::get(bed.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    bed.is_in_phase(&echo, "Serving").await;
    bed.is_in_phase(&echo, "Asleep").await;
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_is_used_stays_awake_until_it_is_not() {
    let bed = Bed::new("traffic-busy").await;
    let echo = Echo::new("echo");
    bed.serve(&echo).await;
    bed.apply_elasti(&echo, &by_traffic(&echo)).await;
    bed.is_in(&echo, "serve").await;
    bed.is_out_of_the_path(&echo).await;
    let address = bed.address(&echo).await;
    let began = Instant::now();
    // Since when the operator knows that it is used: it notes down each time that it sees it.
    let mut noticed: Option<Instant> = None;
    while noticed.is_none_or(|noticed| noticed.elapsed() < USED) {
        let answer = client::post(address, "/echo", vec![b'x'; BODY]).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let status = bed.status(&echo).await;
        assert_eq!(status["phase"], "Serving", "{status}");
        if !status["lastScaledUpTime"].is_null() {
            noticed.get_or_insert_with(Instant::now);
        }
        assert!(noticed.is_some() || began.elapsed() < PATIENCE, "{status}");
        sleep(PAUSE).await;
    }
    assert_eq!(bed.replicas(&echo).await, 1);
    bed.falls_asleep(&echo).await;
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_on_the_network_of_their_node_cannot_be_told_from_it() {
    let bed = Bed::new("traffic-host").await;
    let echo = Echo::new("echo");
    let mut workload = echo.workload();
    workload["spec"]["template"]["spec"]["hostNetwork"] = true.into();
    // It need not run for this.
    workload["spec"]["template"]["spec"]["nodeSelector"] =
        json!({"kubernetes.io/hostname": "none"});
    let objects = &bed.objects;
    objects
        .apply(Kind::Service, echo.name, &echo.service())
        .await;
    objects.apply(echo.kind, echo.name, &workload).await;
    bed.apply_elasti(&echo, &by_traffic(&echo)).await;
    let told = bed.is_told(&echo, "TriggerNotUsable").await;
    assert!(told.contains("hostNetwork"), "{told}");
    bed.end().await;
}
