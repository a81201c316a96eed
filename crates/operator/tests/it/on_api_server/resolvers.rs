//! Resolvers are followed by the EndpointSlices of their Service. What stands in for one is a server at this machine's
//! own address, since an EndpointSlice may not lead to loopback.

use std::{
    future::pending,
    net::{IpAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Json, Router, http::StatusCode, response::IntoResponse, routing::get};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify, time::timeout};
use weir_api::hold::PortAllotment;
use weir_hold::facts::Knows;
use weir_operator::resolvers::{Resolver, ResolverSettings, Resolvers};
use weir_role::{cluster::ObjectId, internal_port};

/// Pauses between attempts grow to half a minute; usual is a tenth of a second.
const PATIENCE: Duration = Duration::from_mins(2);

/// An address of this machine that others could use. Nothing is sent for it.
pub(super) fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    socket
        .connect("198.51.100.1:9")
        .expect("a network interface beside loopback");
    socket.local_addr().expect("an address").ip()
}

/// Starts a resolver's internal port on all addresses, which answers while it is told to.
async fn stand_in(answers: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let status = move || async move {
        if !answers.load(Ordering::Relaxed) {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        let services = json!([{
            "namespace": "shop",
            "service": "web",
            "ports": [{"name": "http", "resolverPort": 10240}],
        }]);
        let body = json!({
            "generation": 7,
            "synced": true,
            "draining": false,
            "count": 1,
            "services": services,
        });
        Json(body).into_response()
    };
    let router = Router::new().route("/crd-cache-status", get(status));
    tokio::spawn(internal_port::serve(listener, router, pending()));
    port
}

fn slice(name: &str, service: &str, endpoints: &[Value]) -> EndpointSlice {
    let slice = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "http", "port": 8012}],
    });
    serde_json::from_value(slice).expect("a slice")
}

fn endpoint(address: &str, ready: bool) -> Value {
    json!({
        "addresses": [address],
        "conditions": {"ready": ready, "serving": ready},
        "nodeName": "node-1",
        "zone": "zone-a",
    })
}

#[tokio::test]
async fn the_slices_say_who_is_there_and_each_says_what_it_knows() {
    let k8s = weir_lab::api_server().await;
    let namespace = k8s.namespace("resolvers").await;
    let slices: Api<EndpointSlice> = namespace.api();
    let answers = Arc::new(AtomicBool::new(true));
    let port = stand_in(Arc::clone(&answers)).await;
    let own = own_address();
    let own_text = own.to_string();

    // Before the watch begins: of another Service, not ready, and one where nobody answers.
    let create = |slice: EndpointSlice| {
        let slices = slices.clone();
        async move {
            let created = slices.create(&PostParams::default(), &slice).await;
            created.expect("the API server takes it")
        }
    };
    create(slice("others", "others", &[endpoint(&own_text, true)])).await;
    let unready = [endpoint(&own_text, false), endpoint("192.0.2.251", true)];
    create(slice("first", "resolvers", &unready)).await;

    let settings = ResolverSettings {
        namespace: namespace.name().to_owned(),
        service: "resolvers".to_owned(),
        internal_port: port,
        // It has so long to answer, too: three times in a row no machine stalls for that.
        interval: Duration::from_secs(1),
        misses: 3,
    };
    let news = Arc::new(Notify::new());
    let tell = {
        let news = Arc::clone(&news);
        Arc::new(move |_| news.notify_one())
    };
    let (resolvers, run) = Resolvers::start(namespace.client(), settings, tell);
    let run = tokio::spawn(run);
    let until = async |what: &str, is_so: &(dyn Fn(&Resolvers) -> bool + Sync)| {
        let listen = async {
            while !is_so(&resolvers) {
                news.notified().await;
            }
        };
        let heard = timeout(PATIENCE, listen).await;
        let web = ObjectId::new("shop", "web");
        let there = resolvers.for_service(&web, &[]);
        assert!(heard.is_ok(), "not in time: {what}; {there:?}");
    };
    let web = ObjectId::new("shop", "web");
    let http = [PortAllotment {
        name: "http".to_owned(),
        resolver_port: 10240,
    }];
    let there = |now: &Resolvers| now.for_service(&web, &http);

    until("synced", &Resolvers::is_synced).await;
    assert_eq!(
        there(&resolvers),
        [],
        "one is not ready, one does not answer"
    );

    let ready = json!({"endpoints": [endpoint(&own_text, true)]});
    let patch = Patch::Merge(&ready);
    let patched = slices.patch("first", &PatchParams::default(), &patch).await;
    patched.expect("changed");
    let expected = Resolver {
        address: own,
        node: Some("node-1".to_owned()),
        zone: Some("zone-a".to_owned()),
    };
    let other = ObjectId::new("shop", "other");
    until("it is ready, and says what it knows", &|now| {
        there(now) == [(expected.clone(), Knows::Yes)]
            && now.for_service(&other, &[]) == [(expected.clone(), Knows::NotYet)]
    })
    .await;

    answers.store(false, Ordering::Relaxed);
    until("it does not answer", &|now| there(now).is_empty()).await;
    answers.store(true, Ordering::Relaxed);
    until("it does", &|now| there(now).len() == 1).await;

    // It stands in two slices while it moves from one to the other.
    create(slice("second", "resolvers", &[endpoint(&own_text, true)])).await;
    let delete = DeleteParams::default();
    slices.delete("first", &delete).await.expect("deleted");
    slices.delete("second", &delete).await.expect("deleted");
    until("it is gone", &|now| there(now).is_empty()).await;
    run.abort();
}
