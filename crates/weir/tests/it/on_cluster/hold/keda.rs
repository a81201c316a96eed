//! A target that KEDA scales: at zero its ScaledObject is paused, and a wake resumes it.

use serde_json::{Value, json};
use weir_api::hold::names;
use weir_lab::cluster::{add_on::prometheus, layout};

use super::{bed::Bed, client, echo::Echo, objects::Kind, triggers};

/// For KEDA it is as idle as for us: below one replica is not its business.
pub(super) fn scaled_object(echo: &Echo) -> Value {
    let server = format!("http://{}:{}", layout::CONTROL_PLANE, prometheus::PORT);
    json!({"spec": {
        "scaleTargetRef": {"name": echo.name},
        "pollingInterval": 1,
        "minReplicaCount": 1,
        "maxReplicaCount": 3,
        "triggers": [{
            "type": "prometheus",
            "metadata": {"serverAddress": server, "query": "vector(0)", "threshold": "1"},
        }],
    }})
}

pub(super) fn held(echo: &Echo, query: &str) -> Value {
    let mut elasti = triggers::with_query(echo, query);
    elasti["spec"]["autoscaler"] = json!({"type": "keda", "name": echo.name});
    elasti
}

/// The annotations by which KEDA is told, and ours.
pub(super) async fn pause(bed: &Bed, echo: &Echo) -> [Option<String>; 3] {
    let object = bed.objects.get(Kind::ScaledObject, echo.name).await;
    [
        names::KEDA_PAUSED_ANNOTATION,
        names::KEDA_PAUSED_REPLICAS_ANNOTATION,
        names::PAUSED_BY_ANNOTATION,
    ]
    .map(|name| {
        object["metadata"]["annotations"][name]
            .as_str()
            .map(str::to_owned)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scaled_object_is_paused_at_zero_and_resumed_by_a_wake() {
    let bed = Bed::new("keda").await;
    let echo = Echo::new("echo");
    bed.serve(&echo).await;
    bed.objects
        .apply(Kind::ScaledObject, echo.name, &scaled_object(&echo))
        .await;
    bed.apply_elasti(&echo, &held(&echo, "vector(0)")).await;
    bed.falls_asleep(&echo).await;
    assert_eq!(bed.replicas(&echo).await, 0);
    let ours = ["true", "0", echo.name].map(|it| Some(it.to_owned()));
    assert_eq!(pause(&bed, &echo).await, ours);

    // From now on it is needed, so that it does not go to sleep again at once.
    bed.apply_elasti(&echo, &echo_without_triggers(&echo)).await;
    let answer = client::get(bed.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(pause(&bed, &echo).await, [None, None, None]);
    bed.is_in(&echo, "serve").await;
    bed.is_out_of_the_path(&echo).await;
    assert_eq!(bed.replicas(&echo).await, 1);

    // A user's own pause is not ours to take away.
    let change = json!({"metadata": {"annotations": {names::KEDA_PAUSED_ANNOTATION: "true"}}});
    bed.objects
        .patch(Kind::ScaledObject, echo.name, &change)
        .await;
    bed.objects.delete(Kind::ElastiService, echo.name).await;
    bed.until("the ElastiService is gone", || async {
        match bed.objects.find(Kind::ElastiService, echo.name).await {
            None => Ok(()),
            Some(left) => Err(left.to_string()),
        }
    })
    .await;
    assert_eq!(
        pause(&bed, &echo).await,
        [Some("true".to_owned()), None, None]
    );
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scaled_object_whose_status_is_written_each_second_lets_it_sleep() {
    let bed = Bed::new("keda-active").await;
    let echo = Echo::new("echo");
    bed.serve(&echo).await;
    // Active for KEDA, which writes down when that was, and not enough for a second replica.
    let mut active = scaled_object(&echo);
    let metadata = &mut active["spec"]["triggers"][0]["metadata"];
    metadata["query"] = "vector(5)".into();
    metadata["threshold"] = "10".into();
    bed.objects
        .apply(Kind::ScaledObject, echo.name, &active)
        .await;
    let mut last = Value::Null;
    for _ in 0..3 {
        last = is_written_after(&bed, &echo, &last).await;
    }

    bed.apply_elasti(&echo, &held(&echo, "vector(0)")).await;
    bed.falls_asleep(&echo).await;
    assert_eq!(bed.replicas(&echo).await, 0);
    bed.apply_elasti(&echo, &echo_without_triggers(&echo)).await;
    let answer = client::get(bed.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(pause(&bed, &echo).await, [None, None, None]);
    bed.is_in(&echo, "serve").await;
    bed.end().await;
}

/// Waits until KEDA says that it was active at another time than this; returns that time.
async fn is_written_after(bed: &Bed, echo: &Echo, last: &Value) -> Value {
    bed.until("KEDA writes its status", || async {
        let object = bed.objects.get(Kind::ScaledObject, echo.name).await;
        match &object["status"]["lastActiveTime"] {
            time if time.is_string() && time != last => Ok(time.clone()),
            _ => Err(object["status"].to_string()),
        }
    })
    .await
}

pub(super) fn echo_without_triggers(echo: &Echo) -> Value {
    let mut elasti = held(echo, "vector(0)");
    elasti["spec"]["triggers"] = json!([]);
    elasti
}
