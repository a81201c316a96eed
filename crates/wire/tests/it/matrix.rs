//! The protocol matrix: each protocol × held or direct × small or large × slow reader, slow writer or neither, as one table,
//! with real clients: curl, tonic for gRPC, tungstenite for WebSocket. Only pipelining is done by hand, since no client
//! does it any more.
//!
//! *Held* is a backend that has no endpoint when the request comes, and gets one when it is seen waiting.

mod curl;
mod grpc;
mod websocket;

use std::{
    fmt::{self, Write},
    sync::Arc,
    time::Duration,
};

use sha2::{Digest, Sha256};
use tokio::{sync::Semaphore, task::JoinSet, time::timeout};

use crate::bed::{Bed, Note, Way, app};

/// As many cases at a time.
const AT_ONCE: usize = 8;
/// No case may take longer.
const PATIENCE: Duration = Duration::from_mins(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Get,
    PostWithLength,
    PostInChunks,
    Expect,
    Head,
    Pipelined,
    Trailers,
    Events,
    WebSocket,
    Http2Get,
    Http2Post,
    GrpcUnary,
    GrpcServerStream,
    GrpcClientStream,
    GrpcBidi,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Small,
    Large,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    Quick,
    SlowReader,
    SlowWriter,
}

use Pace::{Quick, SlowReader, SlowWriter};

/// Each protocol, and the paces that make sense for it.
const TABLE: &[(Protocol, &[Pace])] = &[
    (Protocol::Get, &[Quick, SlowReader]),
    (Protocol::PostWithLength, &[Quick, SlowReader, SlowWriter]),
    (Protocol::PostInChunks, &[Quick, SlowReader, SlowWriter]),
    (Protocol::Expect, &[Quick, SlowReader, SlowWriter]),
    (Protocol::Head, &[Quick]),
    (Protocol::Pipelined, &[Quick, SlowReader]),
    (Protocol::Trailers, &[Quick, SlowReader]),
    (Protocol::Events, &[Quick, SlowReader]),
    (Protocol::WebSocket, &[Quick, SlowReader, SlowWriter]),
    (Protocol::Http2Get, &[Quick, SlowReader]),
    (Protocol::Http2Post, &[Quick, SlowReader, SlowWriter]),
    (Protocol::GrpcUnary, &[Quick]),
    (Protocol::GrpcServerStream, &[Quick, SlowReader]),
    (Protocol::GrpcClientStream, &[Quick, SlowWriter]),
    (Protocol::GrpcBidi, &[Quick, SlowReader, SlowWriter]),
];

/// One cell of the matrix.
#[derive(Clone)]
struct Case {
    protocol: Protocol,
    is_held: bool,
    size: Size,
    pace: Pace,
    way: Way,
}

impl Size {
    /// A body of this size, in bytes.
    fn bytes(self) -> usize {
        match self {
            Self::Small => 1000,
            Self::Large => 5 * 1024 * 1024 + 123,
        }
    }

    /// The same in messages: how many, and how long each.
    fn messages(self) -> (usize, usize) {
        match self {
            Self::Small => (3, 100),
            Self::Large => (40, 128 * 1024),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = if self.is_held { "held" } else { "direct" };
        write!(
            formatter,
            "{:?}, {held}, {:?}, {:?}",
            self.protocol, self.size, self.pace
        )
    }
}

impl Case {
    async fn run(&self) {
        match self.protocol {
            Protocol::Get => curl::get(self).await,
            Protocol::PostWithLength => curl::post(self, &["-H", "Expect:"]).await,
            Protocol::PostInChunks => {
                curl::post(self, &["-H", "Expect:", "-H", "Transfer-Encoding: chunked"]).await;
            }
            Protocol::Expect => {
                let expects = [
                    "-H",
                    "Expect: 100-continue",
                    "--expect100-timeout",
                    curl::MOST_SECONDS,
                ];
                curl::post(self, &expects).await;
            }
            Protocol::Head => curl::head(self).await,
            Protocol::Pipelined => pipelined(self).await,
            Protocol::Trailers => curl::trailers(self).await,
            Protocol::Events => curl::events(self).await,
            Protocol::WebSocket => websocket::echo(self).await,
            Protocol::Http2Get => curl::get_http2(self).await,
            Protocol::Http2Post => curl::post(self, &["--http2-prior-knowledge"]).await,
            Protocol::GrpcUnary => grpc::unary(self).await,
            Protocol::GrpcServerStream => grpc::server_stream(self).await,
            Protocol::GrpcClientStream => grpc::client_stream(self).await,
            Protocol::GrpcBidi => grpc::bidi(self).await,
        }
    }

    fn needs_curl(&self) -> bool {
        !matches!(
            self.protocol,
            Protocol::Pipelined
                | Protocol::WebSocket
                | Protocol::GrpcUnary
                | Protocol::GrpcServerStream
                | Protocol::GrpcClientStream
                | Protocol::GrpcBidi
        )
    }

    /// Between two messages, for one that is slow at this.
    async fn dawdle(&self, at: Pace) {
        if self.pace == at {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Also looks whether it was held, so that no cell tries the same as its neighbour.
    async fn try_it(self, endpoint: std::net::SocketAddr) {
        let wakes = async {
            if self.is_held {
                self.way.waiting(1).await;
            }
            self.way.backend.set_endpoints(&[endpoint]);
        };
        if self.is_held {
            tokio::join!(wakes, self.run());
        } else {
            wakes.await;
            self.run().await;
        }
        let notes = self.way.notes.all();
        let waited = notes
            .iter()
            .filter(|note| matches!(note, Note::Waits(_)))
            .count();
        assert_eq!(waited, usize::from(self.is_held), "{self}: {notes:?}");
        self.way.notes.has(&Note::FirstByte, waited).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_protocol_held_and_direct_small_and_large_slow_and_quick() {
    let app = app().await;
    let bed = Bed::new();
    let has_curl = curl::is_there().await;
    let mut cases = JoinSet::new();
    let gate = Arc::new(Semaphore::new(AT_ONCE));
    let mut tried = 0;
    for (protocol, paces) in TABLE {
        for is_held in [false, true] {
            for size in [Size::Small, Size::Large] {
                for pace in *paces {
                    let case = Case {
                        protocol: *protocol,
                        is_held,
                        size,
                        pace: *pace,
                        way: bed.add(&format!("case-{tried}"), tried),
                    };
                    if case.needs_curl() && !has_curl {
                        continue;
                    }
                    tried += 1;
                    let gate = Arc::clone(&gate);
                    let endpoint = app.http();
                    cases.spawn(async move {
                        let _turn = gate.acquire_owned().await.unwrap();
                        let name = case.to_string();
                        match timeout(PATIENCE, tokio::spawn(case.try_it(endpoint))).await {
                            Ok(Ok(())) => None,
                            Ok(Err(panic)) => Some(format!("{name}: {panic}")),
                            Err(_) => Some(format!("{name}: not done after {PATIENCE:?}")),
                        }
                    });
                }
            }
        }
    }
    let failed: Vec<String> = cases.join_all().await.into_iter().flatten().collect();
    assert!(
        failed.is_empty(),
        "{} of {tried}:\n{}",
        failed.len(),
        failed.join("\n")
    );
    assert!(!has_curl || tried > 120, "only {tried} cases");
}

/// Three requests in one breath; the answers must come in their order.
async fn pipelined(case: &Case) {
    let lengths = [case.size.bytes(), 10, case.size.bytes() / 2];
    let requests = lengths.map(|length| format!("GET /bytes/{length} HTTP/1.1\r\nhost: a\r\n\r\n"));
    let mut client = case.way.client().await;
    client.send(requests.concat()).await;
    for length in lengths {
        case.dawdle(SlowReader).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 200, "{case}");
        assert_eq!(sum(&answer.body), sum(&pattern(length)), "{case}");
    }
}

/// What the lab's server gives for `/bytes/<n>`.
fn pattern(length: usize) -> Vec<u8> {
    let byte = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[5];
    (0..length as u64).map(byte).collect()
}

/// Length and hash.
fn sum(bytes: &[u8]) -> (usize, String) {
    let mut hash = String::new();
    for byte in Sha256::digest(bytes) {
        write!(hash, "{byte:02x}").unwrap();
    }
    (bytes.len(), hash)
}
