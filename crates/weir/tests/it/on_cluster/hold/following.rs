//! What users change: the Service, and what an ElastiService names.

use serde_json::{Value, json};
use weir_api::hold::names;

use super::{
    bed::Bed,
    client,
    echo::{Echo, PORT},
    objects::Kind,
};

/// Selector and ports, without what the API server adds.
fn shape(service: &Value) -> Value {
    let ports = service["spec"]["ports"].as_array().expect("ports").iter();
    let ports: Vec<Value> = ports
        .map(|port| {
            json!([
                port["name"],
                port["port"],
                port["targetPort"],
                port["protocol"]
            ])
        })
        .collect();
    json!([service["spec"]["selector"], ports])
}

async fn private_service_is_alike(bed: &Bed, echo: &Echo) {
    bed.until("the private Service is like the public one", || async {
        let name = names::private_service(echo.name);
        let public = shape(&bed.objects.get(Kind::Service, echo.name).await);
        let private = bed.objects.find(Kind::Service, &name).await;
        match private.as_ref().map(shape) {
            Some(private) if private == public => Ok(()),
            other => Err(format!("{public} is {other:?}")),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_private_service_follows_selector_and_port() {
    let bed = Bed::new("follow").await;
    let echo = Echo::new("echo");
    bed.hold(&echo).await;
    private_service_is_alike(&bed, &echo).await;

    let change = json!({"spec": {
        "selector": {"app": "echo", "tier": "front"},
        "ports": [{"name": "web", "port": 8000, "targetPort": PORT, "protocol": "TCP"}],
    }});
    bed.objects.patch(Kind::Service, echo.name, &change).await;
    private_service_is_alike(&bed, &echo).await;
    // Pods without the new label are none of the Service's any more.
    bed.is_in(&echo, "proxy").await;
    let change = json!({"spec": {"selector": {"tier": null}}});
    bed.objects.patch(Kind::Service, echo.name, &change).await;
    private_service_is_alike(&bed, &echo).await;
    bed.is_in(&echo, "serve").await;

    // The new port is held as the old one was.
    bed.put_to_zero(&echo).await;
    let address = bed.address(&echo).await;
    assert_eq!(address.port(), 8000);
    let answer = client::get(address, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_service_and_target_leave_nothing_of_the_first() {
    let bed = Bed::new("edit").await;
    let (first, second) = (Echo::new("first"), Echo::new("second"));
    bed.serve(&second).await;
    bed.at_zero(&first).await;

    // One object, which is called after the first.
    bed.apply_elasti(&first, &second.elasti()).await;
    // Nobody would wake the first target any more, so it is woken; and until it is up, its requests are held.
    let address = bed.address(&first).await;
    bed.until("the first Service is left alone", || async {
        let answer = client::get(address, "/echo").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let private = names::private_service(first.name);
        let private = bed.objects.find(Kind::Service, &private).await;
        let status = bed.status(&first).await;
        match (bed.slice(&first).await, private) {
            (None, None) if status["service"] == second.name => Ok(()),
            left => Err(format!("{left:?}, {status}")),
        }
    })
    .await;
    assert_eq!(bed.replicas(&first).await, 1);
    let marks = bed.objects.get(first.kind, first.name).await["metadata"].to_string();
    assert!(!marks.contains(names::GROUP), "{marks}");

    bed.is_in(&first, "serve").await;
    bed.scale(&second, 0).await;
    bed.is_in(&first, "proxy").await;
    bed.leads_to_resolvers(&second).await;
    let answer = client::get(bed.address(&second).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    bed.is_in(&first, "serve").await;
    bed.end().await;
}
