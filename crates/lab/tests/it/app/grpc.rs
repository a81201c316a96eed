//! gRPC's four kinds of calls, framed by hand on both sides.

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream;
use http::{Request, Version};
use http_body::Frame;
use http_body_util::StreamBody;
use weir_lab::app::{App, Settings};

use super::start;
use crate::client::{Answer, send};

fn framed(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap());
    framed.put_slice(message);
    framed.freeze()
}

fn messages(mut body: &[u8]) -> Vec<String> {
    let mut messages = Vec::new();
    while let [0, a, b, c, d, rest @ ..] = body {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        messages.push(String::from_utf8(rest[..length].to_vec()).unwrap());
        body = &rest[length..];
    }
    assert!(body.is_empty());
    messages
}

async fn call(app: &App, method: &str, sent: &[&str]) -> Answer {
    let frames: Vec<_> = sent
        .iter()
        .map(|message| Ok::<_, std::io::Error>(Frame::data(framed(message.as_bytes()))))
        .collect();
    let request = Request::post(format!("/weir.lab.Echo/{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("x-weir-count", "4")
        .body(StreamBody::new(stream::iter(frames)))
        .unwrap();
    send(app.http(), Version::HTTP_2, request).await.unwrap()
}

#[tokio::test]
async fn all_four_kinds_of_calls_give_their_messages_back() {
    let app = start(Settings::default()).await;
    for (method, sent, expected) in [
        ("Unary", &["one"][..], vec!["one"]),
        ("ServerStream", &["one"], vec!["one"; 4]),
        (
            "ClientStream",
            &["one", "two", "three"],
            vec!["onetwothree"],
        ),
        ("Bidi", &["one", "", "three"], vec!["one", "", "three"]),
    ] {
        let answer = call(&app, method, sent).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), "application/grpc");
        assert_eq!(messages(&answer.body), expected, "{method}");
        assert_eq!(answer.trailers["grpc-status"], "0", "{method}");
    }
}

#[tokio::test]
async fn an_unknown_call_is_told_so_without_a_body() {
    let app = start(Settings::default()).await;
    let answer = call(&app, "Nothing", &["one"]).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("grpc-status"), "12");
    assert!(answer.body.is_empty());
}
