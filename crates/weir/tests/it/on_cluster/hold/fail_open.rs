//! All resolvers are gone: what sleeps is woken, and may sleep again when they are back.

use serde_json::json;

use super::{
    bed::{self, Bed},
    client,
    echo::Echo,
    objects::Kind,
    second::Settings,
    triggers,
};

async fn scale_resolvers(bed: &Bed, replicas: usize) {
    let change = json!({"spec": {"replicas": replicas}});
    bed.weir
        .patch(Kind::Deployment, "weir-resolver", &change)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_resolvers_it_is_woken_and_with_them_it_sleeps_again() {
    let settings = Settings {
        operator: &["--fail-open-after=5s"],
        ..Settings::default()
    };
    let bed = Bed::with_second("fail-open", settings).await;
    let echo = Echo::new("echo");
    bed.serve(&echo).await;
    let idle = triggers::with_query(&echo, "vector(0)");
    bed.apply_elasti(&echo, &idle).await;
    bed.falls_asleep(&echo).await;

    scale_resolvers(&bed, 0).await;
    // Nobody asked for it, and it is as idle as before.
    bed.is_in(&echo, "serve").await;
    assert_eq!(bed.replicas(&echo).await, 1);
    let address = bed.address(&echo).await;
    bed.until("connections are accepted", || bed::connects(address))
        .await;
    bed.is_out_of_the_path(&echo).await;
    bed.until("it says that it is not held", || async {
        let status = bed.status(&echo).await;
        match bed::condition(&status, "Ready") {
            Some(it) if it["status"] == "False" => Ok(()),
            _ => Err(status.to_string()),
        }
    })
    .await;

    scale_resolvers(&bed, 1).await;
    bed.falls_asleep(&echo).await;
    bed.leads_to_all_resolvers(&echo).await;
    let answer = client::get(address, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_ne!(answer.header("x-weir-via"), "-", "it was held");
    bed.end().await;
}
