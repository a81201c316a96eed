//! What is not held: too much, too long, and what nobody waits for any more.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use super::{bed::Bed, client, echo::Echo, second::Settings};

/// Where a resolver tells of itself.
const INTERNAL_PORT: u16 = 8013;

/// How many requests the resolver holds for it.
async fn held(bed: &Bed, echo: &Echo) -> u64 {
    let resolvers = bed.resolvers().await;
    let [resolver] = &resolvers[..] else {
        panic!("one resolver is expected: {resolvers:?}");
    };
    let internal = SocketAddr::new(resolver.parse().expect("an address"), INTERNAL_PORT);
    let all = client::get(internal, "/debug/held").await.json();
    let service = format!("{}/{}", bed.namespace.name(), echo.name);
    let ours = all.as_array().into_iter().flatten();
    let ours = ours.filter(|it| it["service"] == *service);
    ours.filter_map(|it| it["requests"].as_u64()).sum()
}

async fn holds(bed: &Bed, echo: &Echo, count: u64) {
    bed.until(&format!("{count} are held"), || async {
        let held = held(bed, echo).await;
        if held == count { Ok(()) } else { Err(held) }
    })
    .await;
}

/// Slow enough that requests can be counted while they are held.
fn slow() -> Echo {
    let mut echo = Echo::new("echo");
    echo.arguments = vec!["--start-delay", "10s"];
    echo
}

fn is_full(answer: &client::Answer) {
    assert_eq!(answer.status, 503, "{answer:?}");
    let seconds = answer.header("retry-after").parse::<u64>();
    assert!(seconds.is_ok_and(|seconds| seconds > 0), "{answer:?}");
    assert_eq!(answer.json()["reason"], "full_requests");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_too_many_is_refused_at_once_and_the_others_are_served() {
    let settings = Settings {
        resolver: &["--max-held-per-service=2"],
        ..Settings::default()
    };
    let bed = Bed::with_second("overflow", settings).await;
    let echo = slow();
    bed.at_zero(&echo).await;
    let address = bed.address(&echo).await;
    let first = [(); 2].map(|()| tokio::spawn(client::get(address, "/echo")));
    holds(&bed, &echo, 2).await;
    for _ in 0..3 {
        is_full(&client::get(address, "/echo").await);
    }
    assert!(
        first.iter().all(|it| !it.is_finished()),
        "those that are held still wait"
    );
    for answer in first {
        let answer = answer.await.expect("an answer");
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    bed.is_in(&echo, "serve").await;
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_leaves_its_place_to_the_next() {
    let settings = Settings {
        resolver: &["--max-held-per-service=1"],
        ..Settings::default()
    };
    let bed = Bed::with_second("gone", settings).await;
    let echo = slow();
    bed.at_zero(&echo).await;
    let address = bed.address(&echo).await;
    let first = tokio::spawn(client::get(address, "/echo"));
    holds(&bed, &echo, 1).await;
    is_full(&client::get(address, "/echo").await);
    first.abort();
    holds(&bed, &echo, 0).await;
    let next = tokio::spawn(client::get(address, "/echo"));
    holds(&bed, &echo, 1).await;
    let next = next.await.expect("an answer");
    assert_eq!(next.status, 200, "{next:?}");
    bed.is_in(&echo, "serve").await;
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_too_long_is_told_so() {
    let settings = Settings {
        resolver: &["--hold-timeout=3s"],
        ..Settings::default()
    };
    let bed = Bed::with_second("time-out", settings).await;
    let mut echo = Echo::new("echo");
    bed.at_zero(&echo).await;
    // Changed while it sleeps, so that the test waits for it only once.
    echo.arguments = vec!["--start-delay", "15s"];
    let mut slower = echo.workload();
    slower["spec"]["replicas"] = 0.into();
    bed.objects.apply(echo.kind, echo.name, &slower).await;

    let address = bed.address(&echo).await;
    let began = Instant::now();
    let answer = client::get(address, "/echo").await;
    assert_eq!(answer.status, 504, "{answer:?}");
    assert_eq!(answer.json()["reason"], "time_up");
    assert!(began.elapsed() >= Duration::from_secs(3), "it was held");
    assert_eq!(held(&bed, &echo).await, 0);
    // It was woken nevertheless, for those who come later.
    bed.is_in(&echo, "serve").await;
    let answer = client::get(address, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    bed.end().await;
}
