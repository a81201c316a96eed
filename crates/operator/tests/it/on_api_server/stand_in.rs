//! What an operator does that does not lead, while the one that leads is silent.

use std::{future::pending, net::IpAddr};

use axum::{Json, Router, routing::get};
use k8s_openapi::api::{coordination::v1::Lease, discovery::v1::EndpointSlice};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use weir_api::hold::{
    ElastiService,
    names::{
        AddressFamily, SERVICE_NAME_LABEL, SLICE_MANAGED_BY, SLICE_MANAGED_BY_LABEL, resolver_slice,
    },
};
use weir_lab::Namespace;
use weir_role::internal_port;

use super::{
    PATIENCE,
    controller::{Operator, make},
    resolvers::own_address,
};

/// Nobody answers there.
const LOST: &str = "192.0.2.251";
const LOST_LATER: &str = "192.0.2.252";

/// A resolver's internal port, which knows the Service `web`.
async fn resolver(namespace: &Namespace) -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let known = json!({
        "generation": 1, "synced": true, "draining": false, "count": 1,
        "services": [{"namespace": namespace.name(), "service": "web", "ports": []}],
    });
    let router = Router::new().route("/crd-cache-status", get(async || Json(known)));
    tokio::spawn(internal_port::serve(listener, router, pending()));
    port
}

/// The one that answers, and this one.
fn endpoints(lost: &str) -> Value {
    let endpoint = |address: &str| json!({"addresses": [address], "conditions": {"ready": true, "serving": true}});
    json!([endpoint(&own_address().to_string()), endpoint(lost)])
}

fn slice(name: &str, service: &str, is_ours: bool) -> EndpointSlice {
    let by = if is_ours { SLICE_MANAGED_BY } else { "test" };
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {SERVICE_NAME_LABEL: service, SLICE_MANAGED_BY_LABEL: by}},
        "addressType": "IPv4",
        "endpoints": endpoints(LOST),
        "ports": [{"name": "http", "port": 8012}],
    }))
    .unwrap()
}

fn addresses(slice: &EndpointSlice) -> Vec<IpAddr> {
    let endpoints = slice.endpoints.iter();
    let parsed = endpoints.flat_map(|endpoint| endpoint.addresses.iter().map(|it| it.parse()));
    parsed.collect::<Result<_, _>>().unwrap()
}

/// A node is lost with the leader and a resolver on it: connections must not go there until the Lease has run out.
#[tokio::test(flavor = "multi_thread")]
async fn resolvers_that_do_not_answer_are_taken_out_while_the_leader_is_silent() {
    let server = weir_lab::api_server().await;
    let namespace = server.namespace("stand-in").await;
    let params = PostParams::default();
    // It lasts an hour, so nobody else leads in this test.
    let lease: Lease = serde_json::from_value(json!({
        "metadata": {"name": "weir-operator"},
        "spec": {
            "holderIdentity": "lost", "leaseDurationSeconds": 3600,
            "renewTime": "2026-01-01T00:00:00.000000Z",
        },
    }))
    .unwrap();
    let leases: Api<Lease> = namespace.api();
    leases.create(&params, &lease).await.unwrap();
    let slices: Api<EndpointSlice> = namespace.api();
    let ours = resolver_slice("web", AddressFamily::V4);
    for (name, service, is_ours) in [
        ("resolvers", "weir-resolver", false),
        (&*ours, "web", true),
        ("theirs", "web", false),
    ] {
        let created = slices.create(&params, &slice(name, service, is_ours)).await;
        created.unwrap();
    }
    let port = resolver(&namespace).await.to_string();
    let flags = ["--resolver-port", &port];
    let operator = Operator::start_with(&server, &namespace, &flags).await;
    make(&namespace, "web", 0).await;

    let is_taken_out = async |what: &str| {
        namespace
            .eventually(PATIENCE, what, async || {
                let found = addresses(&slices.get(&ours).await.unwrap());
                let is_so = found == [own_address()];
                is_so.then_some(()).ok_or(format!("{found:?}"))
            })
            .await;
    };
    is_taken_out("the lost one is taken out").await;
    // Another one, of which nothing is heard any more once it is there.
    for name in ["resolvers", &ours] {
        let patch = json!({"endpoints": endpoints(LOST_LATER)});
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        slices.patch(name, &params, &patch).await.unwrap();
    }
    is_taken_out("one that is lost later is taken out, too").await;
    // That is all: whose slice is not ours, and what a leader would do, is left alone.
    assert_eq!(addresses(&slices.get("theirs").await.unwrap()).len(), 2);
    let object: ElastiService = namespace.api().get("web").await.unwrap();
    assert!(object.status.is_none() && object.finalizers().is_empty());
    operator.stop().await;
}
