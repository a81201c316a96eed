//! HTTP/2 connections to endpoints: how long they live, and what becomes of streams that one side gives up.

use std::time::Duration;

use bytes::Bytes;
use h2::{
    Reason, RecvStream,
    client::{ResponseFuture, SendRequest},
    server::SendResponse,
};
use http::{Request, Response};
use tokio::{net::TcpStream, sync::mpsc};

use crate::{
    bed::{Bed, Way, in_time},
    endpoint::Endpoint,
};

/// What comes from the endpoint's side: each request, and the end of each connection.
enum Heard {
    Request(Box<(Request<RecvStream>, SendResponse<Bytes>)>),
    End,
}

/// An endpoint whose answers the test gives.
async fn endpoint() -> (Endpoint, mpsc::Receiver<Heard>) {
    let (tell, heard) = mpsc::channel(100);
    let endpoint = Endpoint::start(move |stream, _| listen(stream, tell.clone())).await;
    (endpoint, heard)
}

async fn listen(stream: TcpStream, tell: mpsc::Sender<Heard>) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, respond))) = connection.accept().await {
        let asked = Box::new((request, respond));
        tell.send(Heard::Request(asked)).await.unwrap();
    }
    // The test may be over.
    let _ = tell.send(Heard::End).await;
}

async fn request(heard: &mut mpsc::Receiver<Heard>) -> (Request<RecvStream>, SendResponse<Bytes>) {
    match in_time("a request", heard.recv()).await {
        Some(Heard::Request(asked)) => *asked,
        _ => panic!("the connection has ended"),
    }
}

async fn end(heard: &mut mpsc::Receiver<Heard>) {
    let heard = in_time("the end of a connection", heard.recv()).await;
    assert!(matches!(heard, Some(Heard::End)), "a request");
}

async fn connect(way: &Way) -> SendRequest<Bytes> {
    let stream = way.client().await.stream;
    let (send, connection) = h2::client::handshake(stream).await.unwrap();
    // It ends with its client.
    tokio::spawn(connection);
    send
}

fn ask(send: &mut SendRequest<Bytes>, method: &str) -> ResponseFuture {
    let request = Request::builder().method(method).uri("http://a.example/");
    let (answer, _) = send.send_request(request.body(()).unwrap(), true).unwrap();
    answer
}

/// Asks, and answers.
async fn exchange(send: &mut SendRequest<Bytes>, method: &str, heard: &mut mpsc::Receiver<Heard>) {
    let answer = ask(send, method);
    let (_, mut respond) = request(heard).await;
    respond.send_response(Response::new(()), true).unwrap();
    assert_eq!(in_time("an answer", answer).await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_nobody_uses_is_closed_and_one_that_brings_an_answer_is_not() {
    let bed = Bed::planned(|plan| {
        plan.settings.shards = 1;
        plan.settings.pool.idle_for = Duration::from_secs(1);
    });
    let other = bed.add("other", 1);
    let (busy, mut at_busy) = endpoint().await;
    let (idle, mut at_idle) = endpoint().await;
    bed.main.backend.set_endpoints(&[busy.address]);
    other.backend.set_endpoints(&[idle.address]);
    let mut to_busy = connect(&bed.main).await;
    let mut to_idle = connect(&other).await;

    let answer = ask(&mut to_busy, "GET");
    let (_, mut respond) = request(&mut at_busy).await;
    let mut body = respond.send_response(Response::new(()), false).unwrap();
    let mut answer = in_time("an answer", answer).await.unwrap().into_body();

    // Both are looked at together, so the other one has not been used for as long.
    exchange(&mut to_idle, "GET", &mut at_idle).await;
    end(&mut at_idle).await;
    body.send_data("late".into(), true).unwrap();
    let late = in_time("the rest of the answer", answer.data()).await;
    assert_eq!(late.unwrap().unwrap(), "late");

    exchange(&mut to_idle, "POST", &mut at_idle).await;
    assert_eq!(idle.connections(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_client_gives_up_ends_at_the_endpoint() {
    for has_answer in [false, true] {
        let (endpoint, mut heard) = endpoint().await;
        let bed = Bed::leading_to(endpoint.address);
        let mut send = connect(&bed.main).await;
        let upload = Request::post("http://a.example/").body(()).unwrap();
        let (answer, mut upload) = send.send_request(upload, false).unwrap();
        upload.send_data("some".into(), false).unwrap();
        let (mut asked, mut respond) = request(&mut heard).await;
        let some = in_time("the first part", asked.body_mut().data()).await;
        assert_eq!(some.unwrap().unwrap(), "some");
        let mut answer = Some(answer);
        let mut body = None;
        if has_answer {
            body = Some(respond.send_response(Response::new(()), false).unwrap());
            let answer = answer.take().unwrap();
            assert_eq!(in_time("an answer", answer).await.unwrap().status(), 200);
        }
        upload.send_reset(Reason::CANCEL);
        let broken = in_time("the end", asked.body_mut().data()).await;
        let broken = broken.unwrap().unwrap_err();
        assert!(broken.is_reset() && broken.is_remote(), "{broken:?}");
        drop(body);
        // Only the stream has ended.
        exchange(&mut send, "GET", &mut heard).await;
        assert_eq!(endpoint.connections(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_endpoint_ends_ends_at_the_client_with_the_same_reason() {
    let (endpoint, mut heard) = endpoint().await;
    let bed = Bed::leading_to(endpoint.address);
    let mut send = connect(&bed.main).await;
    let answer = ask(&mut send, "GET");
    let (_, mut respond) = request(&mut heard).await;
    let mut body = respond.send_response(Response::new(()), false).unwrap();
    body.send_data("some".into(), false).unwrap();
    let mut answer = in_time("an answer", answer).await.unwrap().into_body();
    let some = in_time("the first part", answer.data()).await;
    assert_eq!(some.unwrap().unwrap(), "some");
    body.send_reset(Reason::ENHANCE_YOUR_CALM);
    let broken = in_time("the end", answer.data()).await.unwrap();
    assert_eq!(
        broken.unwrap_err().reason(),
        Some(Reason::ENHANCE_YOUR_CALM)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_goes_on_after_its_answer_has_ended() {
    let (endpoint, mut heard) = endpoint().await;
    let bed = Bed::leading_to(endpoint.address);
    let mut send = connect(&bed.main).await;
    let upload = Request::post("http://a.example/").body(()).unwrap();
    let (answer, mut upload) = send.send_request(upload, false).unwrap();
    upload.send_data("some, ".into(), false).unwrap();
    let (asked, mut respond) = request(&mut heard).await;
    let mut body = respond.send_response(Response::new(()), false).unwrap();
    body.send_data("enough".into(), true).unwrap();
    let mut answer = in_time("an answer", answer).await.unwrap().into_body();
    let whole = in_time("the answer", answer.data()).await;
    assert_eq!(whole.unwrap().unwrap(), "enough");
    assert!(in_time("its end", answer.data()).await.is_none());

    // More than fits on its way at once.
    let rest = Bytes::from(vec![b'w'; 1 << 20]);
    upload.reserve_capacity(rest.len());
    upload.send_data(rest.clone(), false).unwrap();
    let mut trailers = http::HeaderMap::new();
    trailers.insert("sum", "1".parse().unwrap());
    upload.send_trailers(trailers.clone()).unwrap();
    let mut asked = asked.into_body();
    let mut read = Vec::new();
    while let Some(data) = in_time("the upload", asked.data()).await {
        let data = data.unwrap();
        asked.flow_control().release_capacity(data.len()).unwrap();
        read.extend_from_slice(&data);
    }
    assert_eq!(read.len(), "some, ".len() + rest.len());
    let seen = in_time("trailers", asked.trailers()).await.unwrap();
    assert_eq!(seen, Some(trailers));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_an_endpoint_ends_in_order_costs_no_request() {
    let (tell, mut heard) = mpsc::channel(100);
    let endpoint = Endpoint::start(move |stream, _| {
        let tell = tell.clone();
        async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                // As servers do that let a connection have so many requests.
                connection.graceful_shutdown();
                respond.send_response(Response::new(()), true).unwrap();
            }
            drop(connection);
            let _ = tell.send(()).await;
        }
    })
    .await;
    let bed = Bed::leading_to(endpoint.address);
    let mut send = connect(&bed.main).await;
    for round in 1..=5 {
        let answer = ask(&mut send, "POST");
        assert_eq!(in_time("an answer", answer).await.unwrap().status(), 200);
        in_time("the end", heard.recv()).await;
        assert_eq!(endpoint.connections(), round);
    }
}
