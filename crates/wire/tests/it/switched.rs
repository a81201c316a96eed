//! After the switch: clients are served on, and asked to go elsewhere.

use std::io::ErrorKind;

use http::Request;
use weir_wire::life::Open;

use crate::bed::{Bed, app, in_time};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_requests_on_one_connection_across_the_switch() {
    let app = app().await;
    let bed = Bed::new();
    let mut client = bed.main.client().await;
    client.get("/bytes/1").await;
    bed.main.waiting(1).await;
    bed.main.backend.set_endpoints(&[app.http()]);
    let answer = client.answer().await;
    assert_eq!(answer.body.len(), 1);
    assert_eq!(answer.header("connection"), None);
    // And back to sleep, and awake again.
    bed.main.backend.set_endpoints(&[]);
    client.get("/bytes/2").await;
    bed.main.waiting(1).await;
    bed.main.backend.set_endpoints(&[app.http()]);
    assert_eq!(client.answer().await.body.len(), 2);
    bed.main.backend.set_switched(true);
    client.get("/bytes/3").await;
    let answer = client.answer().await;
    assert_eq!(answer.body.len(), 3);
    assert_eq!(answer.header("connection"), Some("close"));
    client.closed().await;
    bed.main.backend.set_switched(false);
    let mut client = bed.main.client().await;
    client.get("/bytes/4").await;
    assert_eq!(client.answer().await.header("connection"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_http2_connection_is_asked_to_end_when_its_streams_have() {
    let app = app().await;
    let bed = Bed::leading_to(app.http());
    let stream = bed.main.client().await.stream;
    let (mut send, connection) = h2::client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    let get = |path: &str| {
        let request = Request::get(format!("http://a.example{path}"));
        request.body(()).unwrap()
    };
    // One that is under way stays: it is answered when its body has ended, which is for us to say.
    let upload = Request::post("http://a.example/upload").body(()).unwrap();
    let (slow, mut body) = send.send_request(upload, false).unwrap();
    bed.open(Open::Request, 1).await;
    bed.main.backend.set_switched(true);
    let (quick, _) = send.send_request(get("/bytes/1"), true).unwrap();
    let quick = in_time("an answer", quick).await.unwrap();
    assert_eq!(quick.headers().get("connection"), None);
    body.send_data("water".into(), true).unwrap();
    let slow = in_time("the slow answer", slow).await.unwrap();
    assert_eq!(slow.status(), 200);
    drop((quick, slow));
    let end = in_time("the connection ends", driver).await.unwrap();
    // In order. What the client says after that, such as that it has read the last answer, finds nobody.
    let is_late_word = |error: &h2::Error| {
        let io = error.get_io();
        let late = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
        io.is_some_and(|error| late.contains(&error.kind()))
    };
    assert!(end.as_ref().err().is_none_or(is_late_word), "{end:?}");
    assert!(send.ready().await.is_err(), "it takes no more");
}
