//! What users are told when resolvers cannot connect to a ready pod, for as long as one says so.

use std::{
    future::pending,
    sync::{Arc, Mutex},
};

use axum::{Json, Router, routing::get};
use k8s_openapi::api::{discovery::v1::EndpointSlice, events::v1::Event};
use kube::{
    Api,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use weir_api::hold::names::SERVICE_NAME_LABEL;
use weir_lab::Namespace;
use weir_role::internal_port;

use super::{
    PATIENCE,
    controller::{Operator, condition, make, until},
    resolvers::own_address,
};

const CONDITION: &str = "TargetUnreachable";

/// A resolver's internal port, which knows the Service `web` and says this of pods.
async fn resolver(namespace: &Namespace, unreachable: Arc<Mutex<Value>>) -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let namespace = namespace.name().to_owned();
    let status = async move || {
        let unreachable = unreachable.lock().unwrap().clone();
        Json(json!({
            "generation": 1, "synced": true, "draining": false, "count": 1,
            "services": [{"namespace": namespace, "service": "web", "ports": []}],
            "unreachable": unreachable,
        }))
    };
    let router = Router::new().route("/crd-cache-status", get(status));
    tokio::spawn(internal_port::serve(listener, router, pending()));
    port
}

async fn place_resolver(namespace: &Namespace) {
    let slice: EndpointSlice = serde_json::from_value(json!({
        "metadata": {"name": "resolvers", "labels": {SERVICE_NAME_LABEL: "weir-resolver"}},
        "addressType": "IPv4",
        "endpoints": [{
            "addresses": [own_address().to_string()],
            "conditions": {"ready": true, "serving": true},
        }],
        "ports": [{"name": "http", "port": 8012}],
    }))
    .unwrap();
    let slices: Api<EndpointSlice> = namespace.api();
    let created = slices.create(&PostParams::default(), &slice).await;
    created.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_resolvers_cannot_reach_is_told_of_as_long_as_one_says_so() {
    let server = weir_lab::api_server().await;
    let namespace = server.namespace("unreachable").await;
    let unreachable = Arc::new(Mutex::new(json!([])));
    let port = resolver(&namespace, Arc::clone(&unreachable)).await;
    place_resolver(&namespace).await;
    let flags = ["--resolver-port", &port.to_string()];
    let operator = Operator::start_with(&server, &namespace, &flags).await;
    make(&namespace, "web", 1).await;
    make(&namespace, "other", 1).await;
    for name in ["web", "other"] {
        until(&namespace, name, "it is looked after", |object| {
            condition(object, "PreStopMissing").is_some()
        })
        .await;
    }

    *unreachable.lock().unwrap() = json!([{
        "namespace": namespace.name(), "service": "web", "endpoint": "192.0.2.7:8080",
    }]);
    // The resolvers' namespace is this one.
    let rule = format!("kubernetes.io/metadata.name: {}", namespace.name());
    until(&namespace, "web", "it is told", |object| {
        condition(object, CONDITION).is_some_and(|(status, message)| {
            status == "True" && message.contains("192.0.2.7:8080") && message.contains(&rule)
        })
    })
    .await;
    let events: Api<Event> = namespace.api();
    namespace
        .eventually(PATIENCE, "there is an Event", async || {
            let all = events.list(&ListParams::default()).await.unwrap();
            let mut all = all.iter();
            let found = all.find(|event| event.reason.as_deref() == Some(CONDITION));
            let note = found.and_then(|event| event.note.clone());
            let has_rule = note.as_ref().is_some_and(|note| note.contains(&rule));
            has_rule.then_some(()).ok_or(format!("{note:?}"))
        })
        .await;

    *unreachable.lock().unwrap() = json!([]);
    until(&namespace, "web", "it is over", |object| {
        condition(object, CONDITION).is_some_and(|(status, _)| status == "False")
    })
    .await;
    until(&namespace, "other", "nobody else was told", |object| {
        condition(object, CONDITION).is_none()
    })
    .await;
    operator.stop().await;
}
