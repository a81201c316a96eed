//! A trigger says that nobody needs the target, or that somebody does.

use serde_json::{Value, json};
use weir_lab::cluster::{add_on::prometheus, layout};

use super::{bed::Bed, client, echo::Echo};

/// An ElastiService whose trigger says this.
pub(super) fn with_query(echo: &Echo, query: &str) -> Value {
    let server = format!("http://{}:{}", layout::CONTROL_PLANE, prometheus::PORT);
    let mut elasti = echo.elasti();
    elasti["spec"]["cooldownPeriod"] = 3.into();
    elasti["spec"]["triggers"] = json!([{"type": "prometheus", "metadata": {
        "serverAddress": server,
        "query": query,
        "threshold": "1",
        // Prometheus is no pod here, but scrapes some: they show that it is up.
        "uptimeFilter": "job=\"pods\"",
    }}]);
    elasti
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_says_zero_and_it_is_put_to_sleep() {
    let bed = Bed::new("prometheus").await;
    let echo = Echo::new("echo");
    bed.serve(&echo).await;
    bed.apply_elasti(&echo, &with_query(&echo, "vector(0)"))
        .await;
    bed.falls_asleep(&echo).await;
    assert_eq!(bed.replicas(&echo).await, 0);

    // A request wakes it, and after the cooldown it sleeps again.
    let answer = client::get(bed.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    bed.is_in_phase(&echo, "Serving").await;
    bed.is_in_phase(&echo, "Asleep").await;

    // Prometheus says that it is needed, which wakes it without a request.
    bed.apply_elasti(&echo, &with_query(&echo, "vector(5)"))
        .await;
    bed.is_in(&echo, "serve").await;
    assert_eq!(bed.replicas(&echo).await, 1);
    bed.is_out_of_the_path(&echo).await;
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_cannot_be_answered_puts_nothing_to_sleep() {
    let bed = Bed::new("no-answer").await;
    let echo = Echo::new("echo");
    bed.serve(&echo).await;
    bed.apply_elasti(&echo, &with_query(&echo, "no_such_metric"))
        .await;
    bed.is_told(&echo, "TriggerFailing").await;
    assert_eq!(bed.replicas(&echo).await, 1);
    bed.is_in(&echo, "serve").await;
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_puts_it_to_sleep_and_wakes_it_when_the_window_is_over() {
    let bed = Bed::new("schedule").await;
    let echo = Echo::new("echo");
    bed.serve(&echo).await;
    let scheduled = |cron: &str| {
        let mut elasti = echo.elasti();
        elasti["spec"]["cooldownPeriod"] = 3.into();
        elasti["spec"]["triggers"] = json!([{"type": "schedule", "metadata": {
            "schedule": cron, "duration": "1m", "timeZone": "Europe/Berlin",
        }}]);
        elasti
    };
    // Each minute opens a window of a minute: it is always in one.
    bed.apply_elasti(&echo, &scheduled("* * * * *")).await;
    bed.falls_asleep(&echo).await;
    assert_eq!(bed.replicas(&echo).await, 0);

    // Only every other minute: within one it is outside, and is woken without a request.
    bed.apply_elasti(&echo, &scheduled("*/2 * * * *")).await;
    bed.is_in_phase(&echo, "Serving").await;
    assert_eq!(bed.replicas(&echo).await, 1);
    bed.end().await;
}
