//! What others have in the cluster: exporters behind a Service of theirs, and what the original operator left.

use std::{future::pending, net::SocketAddr};

use axum::{Router, routing::get};
use k8s_openapi::api::{apps::v1::DaemonSet, discovery::v1::EndpointSlice};
use kube::{Api, api::PostParams};
use serde_json::json;
use tokio::net::TcpListener;
use weir_role::internal_port;

use super::{super::resolvers::own_address, key, lab::Lab};

/// An exporter on this machine's own address: an EndpointSlice may not lead to loopback.
async fn exporter() -> SocketAddr {
    let listener = TcpListener::bind((own_address(), 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let body = "node_network_transmit_bytes_total{device=\"eth0\"} 7\nnode_network_speed_bytes{device=\"eth0\"} 1000\n";
    let router = Router::new().route("/metrics", get(async move || body));
    tokio::spawn(internal_port::serve(listener, router, pending()));
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn exporters_behind_a_service_of_somebody_else_are_asked() {
    let lab = Lab::new("place-others").await;
    let a = lab.node("a").await;
    let exporter = exporter().await;
    let slice: EndpointSlice = serde_json::from_value(json!({
        "metadata": {
            "name": "exporters-x1", "labels": { "kubernetes.io/service-name": "exporters" },
        },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [exporter.ip()], "nodeName": a.name }],
        "ports": [
            { "name": "other", "port": 1 },
            { "name": "metrics", "port": exporter.port() },
        ],
    }))
    .unwrap();
    let slices: Api<EndpointSlice> = lab.namespace.api();
    slices.create(&PostParams::default(), &slice).await.unwrap();
    let service = format!(
        "--node-exporter-service={}/exporters:metrics",
        lab.namespace.name()
    );
    let operator = lab.operator(&[&service]);
    lab.create("web", &json!({})).await;
    lab.until_label(&a, &key("web"), Some("false"), "it is measured")
        .await;
    assert_eq!(a.requests(), 0, "nobody asks on the node itself");
    operator.stop().await;
    lab.clean_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_originals_exporter_is_named_with_the_command_that_deletes_it() {
    let lab = Lab::new("place-left-over").await;
    let _a = lab.node("a").await;
    let left: DaemonSet = serde_json::from_value(json!({
        "metadata": { "name": "traffic-operator-node-exporter" },
        "spec": {
            "selector": { "matchLabels": { "app": "exporter" } },
            "template": {
                "metadata": { "labels": { "app": "exporter" } },
                "spec": {
                    // It need not run.
                    "nodeSelector": { "there-is": "none" },
                    "containers": [{ "name": "exporter", "image": "none" }],
                },
            },
        },
    }))
    .unwrap();
    let sets: Api<DaemonSet> = lab.namespace.api();
    sets.create(&PostParams::default(), &left).await.unwrap();
    let operator = lab.operator(&[]);
    lab.create("web", &json!({})).await;
    let command = "kubectl delete daemonset,service traffic-operator-node-exporter --namespace";
    lab.until_condition("web", "Alone", "OriginalExporter", command)
        .await;
    operator.stop().await;
    lab.clean_up().await;
}
