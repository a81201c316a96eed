//! What requests meet at zero, and that they arrive as they were sent.

use http::Request;
use serde_json::{Value, json};

use super::{
    bed::Bed,
    client::{self, Connection},
    echo::Echo,
};

#[tokio::test(flavor = "multi_thread")]
async fn headers_and_host_arrive_unchanged() {
    let bed = Bed::new("headers").await;
    let echo = Echo::new("echo");
    bed.at_zero(&echo).await;
    let sent = [
        ("host", "shop.example.com"),
        ("x-custom", "one"),
        ("x-custom", "two"),
        ("x-envoy-decorator-operation", "elsewhere.nowhere.svc"),
        ("authorization", "Bearer secret"),
        ("cookie", "a=b; c=d"),
        ("user-agent", "a test"),
        ("x-forwarded-for", "192.0.2.7"),
        ("x-forwarded-proto", "https"),
    ];
    let mut request = Request::get("/echo?q=%20x&q=y");
    for (name, value) in sent {
        request = request.header(name, value);
    }
    let request = request.body(client::empty()).expect("a request");
    let answer = client::send(bed.address(&echo).await, request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = answer.json();
    assert_eq!(seen["query"], "q=%20x&q=y");
    let arrived: Vec<(&str, &str)> = seen["headers"]
        .as_array()
        .expect("headers")
        .iter()
        .map(|pair| {
            let text = |index: usize| pair[index].as_str().expect("text");
            (text(0), text(1))
        })
        .collect();
    for (name, value) in sent {
        if name == "x-forwarded-for" {
            // Ours comes after those that were there.
            let all: Vec<&str> = arrived
                .iter()
                .filter(|it| it.0 == name)
                .map(|it| it.1)
                .collect();
            assert!(all.join(", ").starts_with("192.0.2.7, "), "{arrived:?}");
        } else {
            assert!(
                arrived.contains(&(name, value)),
                "{name}: {value} is not in {arrived:?}"
            );
        }
    }
    assert!(
        arrived.contains(&("x-forwarded-host", "shop.example.com")),
        "{arrived:?}"
    );
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_host_is_named_it_is_served() {
    let bed = Bed::new("hosts").await;
    let echo = Echo::new("echo");
    bed.at_zero(&echo).await;
    let address = bed.address(&echo).await;
    // Some look like names in the cluster, and name nothing there or something else.
    let hosts = [
        "shop.example.com",
        "shop.example.com:8443",
        "203.0.113.7",
        "[2001:db8::7]:80",
        "localhost",
        "nothing.nowhere.svc.cluster.local",
        "weir-operator.weir.svc:8013",
    ];
    let answers = hosts.map(|host| {
        let request = Request::get("/echo").header("host", host);
        let request = request.body(client::empty()).expect("a request");
        tokio::spawn(client::send(address, request))
    });
    for (host, answer) in hosts.into_iter().zip(answers) {
        let answer = answer.await.expect("an answer");
        assert_eq!(answer.status, 200, "{host}: {answer:?}");
        assert_ne!(answer.header("x-weir-via"), "-", "it was held");
        let headers = &answer.json()["headers"];
        let arrived = headers.as_array().into_iter().flatten();
        let arrived = arrived.filter(|pair| pair[0] == "host");
        let arrived: Vec<&Value> = arrived.map(|pair| &pair[1]).collect();
        assert_eq!(arrived, [host]);
    }
    bed.is_in(&echo, "serve").await;
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_is_answered_and_wakes_nobody() {
    let bed = Bed::new("probe").await;
    let echo = Echo::new("echo");
    bed.serve(&echo).await;
    let mut elasti = echo.elasti();
    elasti["spec"]["probeResponse"] = json!([{
        "path": {"type": "Exact", "value": "/healthz"},
        "method": "GET",
        "response": {"status": 200, "body": "asleep, but well"},
    }]);
    bed.apply_elasti(&echo, &elasti).await;
    bed.is_in(&echo, "serve").await;
    bed.put_to_zero(&echo).await;
    let address = bed.address(&echo).await;
    for _ in 0..20 {
        let answer = client::get(address, "/healthz").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(&answer.body[..], b"asleep, but well");
    }
    // A wake would have been asked for before the answer to a later request.
    assert_eq!(bed.replicas(&echo).await, 0);
    assert_eq!(bed.status(&echo).await["phase"], "Asleep");
    // Whatever else comes does wake it.
    let answer = client::get(address, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    bed.is_in(&echo, "serve").await;
    bed.is_out_of_the_path(&echo).await;
    let answer = client::get(address, "/healthz").await;
    assert_eq!(&answer.body[..], b"well\n", "the server's own answer");
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_requests_on_one_connection_across_the_switch() {
    let bed = Bed::new("switch").await;
    let echo = Echo::new("echo");
    bed.at_zero(&echo).await;
    let mut connection = Connection::open(bed.address(&echo).await).await;
    let request = || {
        Request::get("/echo")
            .body(client::empty())
            .expect("a request")
    };
    let first = connection.send(request()).await;
    assert_eq!(first.status, 200, "{first:?}");
    assert_ne!(first.header("x-weir-via"), "-", "it was held");

    bed.is_in(&echo, "serve").await;
    bed.is_out_of_the_path(&echo).await;
    let second = connection.send(request()).await;
    assert_eq!(second.status, 200, "{second:?}");
    let pod = |answer: &client::Answer| -> Value { answer.json()["pod"].clone() };
    assert_eq!(pod(&first), pod(&second));
    assert_eq!(
        second.header("connection"),
        "close",
        "the next one is to go straight to the pod"
    );
    bed.end().await;
}
