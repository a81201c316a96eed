//! What is tried with tonic, on messages that are bytes and nothing else.

use bytes::{Buf, BufMut, Bytes};
use futures_util::{Stream, StreamExt, stream};
use http::uri::PathAndQuery;
use tonic::{
    Request, Status, Streaming,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::{Channel, Endpoint},
};

use super::{Case, Pace, pattern, sum};
use crate::bed::Way;

/// Messages as they are.
#[derive(Clone, Copy, Debug)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

async fn client(way: &Way) -> Grpc<Channel> {
    let channel = Endpoint::from_shared(way.url("")).unwrap().connect_lazy();
    let mut client = Grpc::new(channel);
    client.ready().await.unwrap();
    client
}

fn call(method: &str) -> PathAndQuery {
    format!("/weir.lab.Echo/{method}").parse().unwrap()
}

fn messages(case: &Case, most: usize) -> Vec<Bytes> {
    let (count, length) = case.size.messages();
    let message = |number| Bytes::from(pattern(length + number));
    (0..count.min(most)).map(message).collect()
}

/// The messages one by one, as slowly as the case has it.
fn sent(case: &Case, messages: Vec<Bytes>) -> impl Stream<Item = Bytes> + Send + 'static {
    let case = case.clone();
    stream::iter(messages).then(move |message| {
        let case = case.clone();
        async move {
            case.dawdle(Pace::SlowWriter).await;
            message
        }
    })
}

/// All messages of an answer, whose trailers must say that all went well.
async fn received(case: &Case, mut answer: Streaming<Bytes>) -> Vec<Bytes> {
    let mut messages = Vec::new();
    while let Some(message) = answer.message().await.unwrap() {
        case.dawdle(Pace::SlowReader).await;
        messages.push(message);
    }
    let trailers = answer.trailers().await.unwrap().unwrap();
    assert_eq!(trailers.get("grpc-status").unwrap(), "0", "{case}");
    messages
}

fn same(case: &Case, got: &[Bytes], expected: &[Bytes]) {
    assert_eq!(got.len(), expected.len(), "{case}");
    assert_eq!(sum(&got.concat()), sum(&expected.concat()), "{case}");
}

pub(super) async fn unary(case: &Case) {
    // The server takes messages of up to 4 MiB.
    let message = Bytes::from(pattern(case.size.bytes() / 2));
    let request = Request::new(message.clone());
    let answer = client(&case.way)
        .await
        .unary(request, call("Unary"), Raw)
        .await;
    let answer = answer.unwrap().into_inner();
    same(case, &[answer], &[message]);
}

pub(super) async fn server_stream(case: &Case) {
    let (count, length) = case.size.messages();
    let message = Bytes::from(pattern(length));
    let mut request = Request::new(message.clone());
    request.metadata_mut().insert("x-weir-count", count.into());
    let answer = client(&case.way)
        .await
        .server_streaming(request, call("ServerStream"), Raw)
        .await;
    let got = received(case, answer.unwrap().into_inner()).await;
    same(case, &got, &vec![message; count]);
}

pub(super) async fn client_stream(case: &Case) {
    // Together they are one message of the answer.
    let messages = messages(case, 30);
    let request = Request::new(sent(case, messages.clone()));
    let answer = client(&case.way)
        .await
        .client_streaming(request, call("ClientStream"), Raw)
        .await;
    same(
        case,
        &[answer.unwrap().into_inner()],
        &[messages.concat().into()],
    );
}

pub(super) async fn bidi(case: &Case) {
    let messages = messages(case, usize::MAX);
    let request = Request::new(sent(case, messages.clone()));
    let answer = client(&case.way)
        .await
        .streaming(request, call("Bidi"), Raw)
        .await;
    let got = received(case, answer.unwrap().into_inner()).await;
    same(case, &got, &messages);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_own_errors_are_statuses_that_grpc_knows() {
    let bed = crate::bed::Bed::planned(|plan| plan.limits.each.requests = 0);
    let request = Request::new(Bytes::from_static(b"x"));
    let answer = client(&bed.main)
        .await
        .unary(request, call("Unary"), Raw)
        .await;
    let status = answer.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unavailable);
    assert!(
        status.message().contains("main is not awake yet"),
        "{status:?}"
    );
    assert!(status.metadata().get("retry-after").is_some(), "{status:?}");
}
