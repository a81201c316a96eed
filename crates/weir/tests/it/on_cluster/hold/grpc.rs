//! gRPC at zero, with tonic, on messages that are bytes and nothing else.

use bytes::{Buf, BufMut, Bytes};
use futures_util::stream;
use http::uri::PathAndQuery;
use tonic::{
    Request, Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::{Channel, Endpoint},
};

use super::{bed::Bed, echo::Echo};

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

async fn client(bed: &Bed, echo: &Echo) -> Grpc<Channel> {
    let url = format!("http://{}", bed.address(echo).await);
    let channel = Endpoint::from_shared(url).expect("a URL").connect_lazy();
    let mut client = Grpc::new(channel);
    client.ready().await.expect("ready");
    client
}

fn method(name: &str) -> PathAndQuery {
    format!("/weir.lab.Echo/{name}").parse().expect("a path")
}

async fn at_zero(name: &str) -> (Bed, Echo) {
    let bed = Bed::new(name).await;
    let echo = Echo::new("echo");
    bed.at_zero(&echo).await;
    (bed, echo)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unary_call_at_zero_is_answered() {
    let (bed, echo) = at_zero("grpc").await;
    let message = Bytes::from_static(b"water");
    let mut client = client(&bed, &echo).await;
    let answer = client.unary(Request::new(message.clone()), method("Unary"), Raw);
    let answer = answer.await.expect("an answer");
    assert_ne!(answer.metadata().get("x-weir-via").expect("via"), "-");
    assert_eq!(answer.into_inner(), message);
    bed.is_in(&echo, "serve").await;
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_both_ways_at_zero_is_whole() {
    let (bed, echo) = at_zero("grpc-stream").await;
    let message = |number: u8| Bytes::from(vec![number; 1000 + usize::from(number)]);
    let messages: Vec<Bytes> = (0..50).map(message).collect();
    let mut client = client(&bed, &echo).await;
    let request = Request::new(stream::iter(messages.clone()));
    let answer = client.streaming(request, method("Bidi"), Raw);
    let mut answer = answer.await.expect("an answer").into_inner();
    let mut received = Vec::new();
    while let Some(message) = answer.message().await.expect("a message") {
        received.push(message);
    }
    assert_eq!(received, messages);
    let trailers = answer.trailers().await.expect("an end");
    let trailers = trailers.expect("trailers");
    assert_eq!(trailers.get("grpc-status").expect("a status"), "0");
    bed.is_in(&echo, "serve").await;
    bed.end().await;
}
