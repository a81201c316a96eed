//! Several Services on one target, of one name in two namespaces, and with two ports.

use std::net::SocketAddr;

use serde_json::json;

use super::{
    bed::Bed,
    client,
    echo::{Echo, PORT},
    objects::Kind,
    triggers,
};

#[tokio::test(flavor = "multi_thread")]
async fn two_services_of_one_target_sleep_and_wake_together() {
    let bed = Bed::new("group").await;
    let echo = Echo::new("echo");
    let other = Echo::new("other");
    bed.serve(&echo).await;
    bed.objects
        .apply(Kind::Service, other.name, &echo.service())
        .await;
    let query = |name: &str, query: &str| {
        let mut elasti = triggers::with_query(&echo, query);
        elasti["spec"]["service"] = name.into();
        elasti
    };
    // The one is idle and the other is not: the target stays.
    bed.apply_elasti(&echo, &query("echo", "vector(0)")).await;
    bed.apply_elasti(&other, &query("other", "vector(5)")).await;
    bed.is_in(&echo, "serve").await;
    bed.is_in(&other, "serve").await;
    bed.apply_elasti(&other, &query("other", "vector(0)")).await;
    for one in [&echo, &other] {
        bed.is_in_phase(one, "Asleep").await;
        bed.leads_to_all_resolvers(one).await;
    }
    bed.leads_to_resolvers(&echo).await;
    bed.leads_to_resolvers(&other).await;
    assert_eq!(bed.replicas(&echo).await, 0);

    let answer = client::get(bed.address(&other).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = client::get(bed.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    for one in [&echo, &other] {
        bed.is_in_phase(one, "Serving").await;
    }
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn services_of_one_name_in_two_namespaces_do_not_meet() {
    let here = Bed::new("here").await;
    let there = Bed::new("there").await;
    let echo = Echo::new("echo");
    here.at_zero(&echo).await;
    there.at_zero(&echo).await;
    let answer = client::get(there.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    there.is_in(&echo, "serve").await;
    assert_eq!(here.replicas(&echo).await, 0, "nobody asked for this one");
    assert_eq!(here.status(&echo).await["phase"], "Asleep");

    // Their servers are told apart by their pods.
    let pod_there = answer.json()["pod"].clone();
    let answer = client::get(here.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_ne!(answer.json()["pod"], pod_there);
    here.end().await;
    there.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_two_ports_leads_to_its_own() {
    let bed = Bed::new("ports").await;
    let echo = Echo::new("echo");
    bed.hold(&echo).await;
    // The second leads to a server that is none: what comes there must not be answered by the first.
    let change = json!({"spec": {"ports": [
        {"name": "http", "port": 80, "targetPort": PORT},
        {"name": "web", "port": 81, "targetPort": PORT},
    ]}});
    bed.objects.patch(Kind::Service, echo.name, &change).await;
    bed.until("both ports have one of the resolvers'", || async {
        let status = bed.status(&echo).await;
        match status["ports"].as_array() {
            Some(ports) if ports.len() == 2 => Ok(()),
            _ => Err(status.to_string()),
        }
    })
    .await;
    bed.put_to_zero(&echo).await;
    let first = bed.address(&echo).await;
    let second = SocketAddr::new(first.ip(), 81);
    let (one, two) = tokio::join!(client::get(first, "/echo"), client::get(second, "/echo"));
    assert_eq!((one.status.as_u16(), two.status.as_u16()), (200, 200));
    bed.is_in(&echo, "serve").await;
    bed.end().await;
}
