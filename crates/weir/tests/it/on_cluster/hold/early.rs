//! A pod that is ready long before the kubelet asks again: its requests do not wait for that.

use std::time::{Duration, Instant};

use super::{bed::Bed, client, echo::Echo};

/// The kubelet asks when the container starts, and is told that it is not ready; then a minute later.
const PERIOD: Duration = Duration::from_mins(1);
/// Longer than a kubelet on a busy machine takes to ask for the first time.
const READY_AFTER: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_request_does_not_wait_until_the_kubelet_asks_again() {
    let bed = Bed::new("early").await;
    let mut echo = Echo::new("echo");
    bed.at_zero(&echo).await;
    // Changed while it sleeps, so that only the wake is like this.
    echo.arguments = vec!["--ready-delay", "10s"];
    let mut late = echo.workload();
    late["spec"]["replicas"] = 0.into();
    let container = &mut late["spec"]["template"]["spec"]["containers"][0];
    container["readinessProbe"]["periodSeconds"] = PERIOD.as_secs().into();
    bed.objects.apply(echo.kind, echo.name, &late).await;

    let began = Instant::now();
    let answer = client::get(bed.address(&echo).await, "/echo").await;
    let took = began.elapsed();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(took >= READY_AFTER, "it was not ready: {took:?}");
    assert!(took < PERIOD, "the kubelet was waited for: {took:?}");
    // Who leads clients to the pods goes by the kubelet's word, and that has not come.
    assert_eq!(bed.status(&echo).await["mode"], "proxy");
    bed.end().await;
}
