//! Services that are not ordinary: held with care, held in part, or not at all. `local` has those that keep to their node.

use serde_json::{Value, json};
use weir_api::hold::names;

use super::{
    bed::{self, Bed},
    client,
    echo::{Echo, PORT},
    objects::Kind,
    triggers,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_service_with_session_affinity_sleeps_and_wakes() {
    let bed = Bed::new("affinity").await;
    let echo = Echo::new("echo");
    bed.serve(&echo).await;
    let change = json!({"spec": {"sessionAffinity": "ClientIP"}});
    bed.objects.patch(Kind::Service, echo.name, &change).await;
    // From now on this client has an endpoint that it keeps.
    let address = bed.address(&echo).await;
    bed.until("connections are accepted", || bed::connects(address))
        .await;
    for _ in 0..2 {
        let idle = triggers::with_query(&echo, "vector(0)");
        bed.apply_elasti(&echo, &idle).await;
        bed.falls_asleep(&echo).await;
        assert_eq!(bed.replicas(&echo).await, 0);

        // Without triggers it does not sleep again at once.
        bed.apply_elasti(&echo, &echo.elasti()).await;
        let answer = client::get(address, "/echo").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_ne!(answer.header("x-weir-via"), "-", "it was held");
        bed.is_in(&echo, "serve").await;
        bed.is_out_of_the_path(&echo).await;
    }
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_udp_port_beside_tcp_is_not_held_and_that_is_said() {
    let bed = Bed::new("udp").await;
    let echo = Echo::new("echo");
    bed.serve(&echo).await;
    // As HTTP/3 has it: one number, twice.
    let change = json!({"spec": {"ports": [
        {"name": "http", "port": 80, "targetPort": PORT, "protocol": "TCP"},
        {"name": "http3", "port": 80, "targetPort": PORT, "protocol": "UDP"},
    ]}});
    bed.objects.patch(Kind::Service, echo.name, &change).await;
    bed.apply_elasti(&echo, &echo.elasti()).await;
    let message = bed.is_told(&echo, "PortsNotHeld").await;
    assert!(message.contains("80/UDP"), "{message}");
    bed.is_in(&echo, "serve").await;
    bed.put_to_zero(&echo).await;

    let status = bed.status(&echo).await;
    let ports = status["ports"].as_array().expect("ports");
    let held: Vec<&Value> = ports.iter().map(|port| &port["name"]).collect();
    assert_eq!(held, ["http"]);
    let slice = names::resolver_slice(echo.name, names::AddressFamily::V4);
    let slice = bed.objects.get(Kind::EndpointSlice, &slice).await;
    let ports = slice["ports"].as_array().expect("ports");
    let led: Vec<(&Value, &Value)> = ports
        .iter()
        .map(|port| (&port["name"], &port["protocol"]))
        .collect();
    assert_eq!(led, [(&json!("http"), &json!("TCP"))]);

    let answer = client::get(bed.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    bed.is_in(&echo, "serve").await;
    bed.is_out_of_the_path(&echo).await;
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn services_that_lead_past_their_address_are_refused_and_left_alone() {
    let bed = Bed::new("refused").await;
    let target = Echo::new("target");
    bed.serve(&target).await;
    let ports = json!([{"name": "http", "port": 80, "targetPort": PORT}]);
    let selector = json!({"app": target.name});
    let all = [
        (
            Echo::new("headless"),
            json!({"clusterIP": "None", "selector": selector, "ports": ports}),
            "headless",
        ),
        (
            Echo::new("no-selector"),
            json!({"ports": ports}),
            "no selector",
        ),
        (
            Echo::new("external"),
            json!({"type": "ExternalName", "externalName": "shop.example.com"}),
            "ExternalName",
        ),
    ];
    for (echo, spec, _) in &all {
        let service = json!({"spec": spec});
        bed.objects.apply(Kind::Service, echo.name, &service).await;
        let mut idle = triggers::with_query(&target, "vector(0)");
        idle["spec"]["service"] = echo.name.into();
        bed.apply_elasti(echo, &idle).await;
    }
    for (echo, _, why) in &all {
        let message = bed.is_told(echo, "ServiceCannotBeHeld").await;
        assert!(message.contains(why), "{message}");
    }
    for kind in [Kind::Service, Kind::EndpointSlice] {
        let derived = bed.objects.list(kind, names::UID_LABEL).await;
        assert!(derived.is_empty(), "{derived:?}");
    }
    assert_eq!(bed.replicas(&target).await, 1);
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_loses_its_selector_while_it_sleeps_is_woken() {
    let bed = Bed::new("selector").await;
    let echo = Echo::new("echo");
    bed.at_zero(&echo).await;
    let change = json!({"spec": {"selector": null}});
    bed.objects.patch(Kind::Service, echo.name, &change).await;
    bed.is_told(&echo, "ServiceCannotBeHeld").await;
    bed.has_a_pod(&echo).await;
    assert_eq!(bed.replicas(&echo).await, 1);
    bed.end().await;
}
