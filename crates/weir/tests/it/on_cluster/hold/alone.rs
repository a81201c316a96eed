//! No operator is there: resolvers that may wake what sleeps, and the operator that comes back goes on from there.

use serde_json::{Value, json};

use super::{bed::Bed, client, echo::Echo, keda, objects::Kind, second::Settings};

const MAY: Settings = Settings {
    operator: &[],
    resolver: &[],
    manifests: &["--resolver-may-scale"],
};

/// So many operators are there, and no others.
async fn operators(bed: &Bed, replicas: usize) {
    let change = json!({"spec": {"replicas": replicas}});
    bed.weir
        .patch(Kind::Deployment, "weir-operator", &change)
        .await;
    bed.until(&format!("{replicas} operators are there"), || async {
        let labels = "app.kubernetes.io/component=operator";
        let pods: Vec<Value> = bed.weir.list(Kind::Pod, labels).await;
        match pods.len() {
            found if found == replicas => Ok(()),
            found => Err(found.to_string()),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_operators_a_request_at_zero_is_answered_and_the_next_operator_goes_on() {
    let bed = Bed::with_second("alone", MAY).await;
    let echo = Echo::new("echo");
    bed.at_zero(&echo).await;
    operators(&bed, 0).await;
    let answer = client::get(bed.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_ne!(answer.header("x-weir-via"), "-", "it was held");
    assert_eq!(bed.replicas(&echo).await, 1);
    assert_eq!(bed.status(&echo).await["phase"], "Asleep", "nobody wrote");

    operators(&bed, 1).await;
    bed.is_in_phase(&echo, "Serving").await;
    bed.is_out_of_the_path(&echo).await;
    assert_eq!(bed.replicas(&echo).await, 1);
    // And all is as ever.
    bed.put_to_zero(&echo).await;
    let answer = client::get(bed.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    bed.is_in(&echo, "serve").await;
    bed.end().await;
}

/// KEDA takes every replica away again as long as it is paused.
#[tokio::test(flavor = "multi_thread")]
async fn without_operators_a_paused_scaled_object_is_resumed() {
    let bed = Bed::with_second("alone-keda", MAY).await;
    let echo = Echo::new("echo");
    bed.serve(&echo).await;
    bed.objects
        .apply(Kind::ScaledObject, echo.name, &keda::scaled_object(&echo))
        .await;
    let idle = keda::held(&echo, "vector(0)");
    bed.apply_elasti(&echo, &idle).await;
    bed.falls_asleep(&echo).await;
    operators(&bed, 0).await;
    // From now on it is needed, so that it does not go to sleep again at once.
    bed.apply_elasti(&echo, &keda::echo_without_triggers(&echo))
        .await;
    let answer = client::get(bed.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(keda::pause(&bed, &echo).await, [None, None, None]);
    operators(&bed, 1).await;
    bed.is_in_phase(&echo, "Serving").await;
    assert_eq!(bed.replicas(&echo).await, 1);
    bed.end().await;
}
