//! A target that a HorizontalPodAutoscaler scales: it has nothing to do at zero, and goes on after a wake.

use serde_json::{Value, json};

use super::{
    bed::{self, Bed},
    client,
    echo::Echo,
    objects::Kind,
    triggers,
};

/// Nobody tells it of CPU time here, so all that it does is to keep the target within its bounds.
fn autoscaler(echo: &Echo, least: i32) -> Value {
    json!({"spec": {
        "scaleTargetRef": {
            "apiVersion": echo.kind.api_version(), "kind": echo.kind.name(), "name": echo.name,
        },
        "minReplicas": least,
        "maxReplicas": 3,
        "metrics": [{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
        }}],
    }})
}

fn with_hpa(echo: &Echo, mut elasti: Value) -> Value {
    elasti["spec"]["autoscaler"] = json!({"type": "hpa", "name": echo.name});
    elasti
}

/// Waits until it has looked, and found that a target at zero is not its business.
async fn stands_back(bed: &Bed, echo: &Echo) {
    bed.until("the autoscaler stands back", || async {
        let kind = Kind::HorizontalPodAutoscaler;
        let status = bed.objects.get(kind, echo.name).await["status"].take();
        match bed::condition(&status, "ScalingActive") {
            Some(it) if it["reason"] == "ScalingDisabled" => Ok(()),
            _ => Err(status.to_string()),
        }
    })
    .await;
}

async fn has_replicas(bed: &Bed, echo: &Echo, count: i64) {
    bed.until(&format!("it has {count} replicas"), || async {
        let replicas = bed.replicas(echo).await;
        if replicas == count {
            Ok(())
        } else {
            Err(replicas)
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_autoscaler_with_two_at_least_lets_it_sleep_and_makes_two_of_a_wake() {
    let bed = Bed::new("hpa").await;
    let echo = Echo::new("echo");
    bed.serve(&echo).await;
    bed.objects
        .apply(
            Kind::HorizontalPodAutoscaler,
            echo.name,
            &autoscaler(&echo, 2),
        )
        .await;
    has_replicas(&bed, &echo, 2).await;
    let idle = with_hpa(&echo, triggers::with_query(&echo, "vector(0)"));
    let without = with_hpa(&echo, echo.elasti());
    for _ in 0..2 {
        bed.apply_elasti(&echo, &idle).await;
        bed.falls_asleep(&echo).await;
        stands_back(&bed, &echo).await;
        assert_eq!(bed.replicas(&echo).await, 0);

        // Without triggers it does not sleep again at once.
        bed.apply_elasti(&echo, &without).await;
        let answer = client::get(bed.address(&echo).await, "/echo").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_ne!(answer.header("x-weir-via"), "-", "it was held");
        has_replicas(&bed, &echo, 2).await;
        bed.is_in(&echo, "serve").await;
        bed.is_out_of_the_path(&echo).await;
    }
    bed.end().await;
}
