//! Clients that stay behind resolvers: their requests keep the target awake, health checks do not, and nobody is sent away.

use std::{net::SocketAddr, time::Duration};

use http::Request;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    bed::{Bed, PATIENCE},
    client::{self, Answer, Connection},
    echo::Echo,
    objects::Kind,
};

/// Some rounds of the operator's questions.
const COOLDOWN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(500);
const HEALTH: &str = "/ready";

/// An ElastiService that goes by what comes through resolvers.
fn by_requests(echo: &Echo) -> Value {
    let mut elasti = echo.elasti();
    elasti["spec"]["cooldownPeriod"] = COOLDOWN.as_secs().into();
    elasti["spec"]["triggers"] =
        json!([{"type": "resolver", "metadata": {"behindResolver": true}}]);
    elasti["spec"]["probeResponse"] = json!([
        {"path": {"value": HEALTH}, "response": {"status": 200, "body": "asleep"}},
    ]);
    elasti
}

/// Where all resolvers are reached, as a gateway does it.
async fn resolvers(bed: &Bed) -> SocketAddr {
    let service = bed.weir.get(Kind::Service, "weir-resolver").await;
    let address = service["spec"]["clusterIP"].as_str().expect("an address");
    SocketAddr::new(address.parse().expect("an address"), 8012)
}

fn request(bed: &Bed, echo: &Echo, path: &str) -> Request<client::Body> {
    let host = format!("{}.{}", echo.name, bed.namespace.name());
    let request = Request::get(path).header("host", host);
    request.body(client::empty()).expect("a request")
}

fn is_served_behind(answer: &Answer) {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("connection"), "", "nobody is sent away");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_keep_it_awake_and_health_checks_do_not() {
    let bed = Bed::new("behind").await;
    let echo = Echo::new("echo");
    bed.serve(&echo).await;
    bed.apply_elasti(&echo, &by_requests(&echo)).await;
    bed.is_in(&echo, "serve").await;
    let resolvers = resolvers(&bed).await;

    let mut gateway = Connection::open(resolvers).await;
    // The resolver may hear of it a moment after the operator has.
    let deadline = Instant::now() + PATIENCE;
    while gateway.send(request(&bed, &echo, "/echo")).await.status == 404 {
        assert!(
            Instant::now() < deadline,
            "the resolver knows {}",
            echo.name
        );
        sleep(PAUSE).await;
    }
    let until = Instant::now() + COOLDOWN * 3;
    while Instant::now() < until {
        let answer = gateway.send(request(&bed, &echo, "/echo")).await;
        is_served_behind(&answer);
        sleep(PAUSE).await;
    }
    let status = bed.status(&echo).await;
    assert_eq!(status["phase"], "Serving", "{status}");
    assert!(!status["lastScaledUpTime"].is_null(), "{status}");

    // One request for longer than a cooldown.
    let path = format!("/drip?bytes=100&seconds={}", (COOLDOWN * 3).as_secs());
    is_served_behind(&gateway.send(request(&bed, &echo, &path)).await);
    assert_eq!(bed.replicas(&echo).await, 1);

    let asleep = bed.falls_asleep(&echo);
    let health = async {
        loop {
            let answer = client::send(resolvers, request(&bed, &echo, HEALTH)).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            sleep(PAUSE).await;
        }
    };
    tokio::select! {
        () = asleep => {}
        () = health => {}
    }
    assert_eq!(bed.replicas(&echo).await, 0);

    is_served_behind(&gateway.send(request(&bed, &echo, "/echo")).await);
    bed.is_in_phase(&echo, "Serving").await;
    bed.is_in_phase(&echo, "Asleep").await;
    bed.end().await;
}
