//! What is passed through: which connections are, and that every byte and every end arrives.

use std::{io, time::Duration};

use sha2::{Digest, Sha256};
use socket2::SockRef;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};
use weir_wire::{
    backend::End,
    life::Open,
    sniff::{self, Spoken},
};

use crate::{
    bed::{Bed, Note, PATIENCE, Way, app, in_time},
    client::Client,
    endpoint::Endpoint,
};

/// Where it may be spoken without HTTP.
pub(crate) const NOT_HTTP: [Spoken; 3] = [Spoken::Unknown, Spoken::Tcp, Spoken::Tls];

/// A bed with one way that speaks this, and sleeps.
pub(crate) fn bed(spoken: Spoken) -> Bed {
    let bed = Bed::new();
    bed.speaks(&bed.main, spoken);
    bed
}

/// A server that sends back what it hears, and ends when it has heard all.
pub(crate) async fn echo() -> Endpoint {
    Endpoint::start(|mut stream, _| async move {
        let (mut read, mut write) = stream.split();
        let _ = tokio::io::copy(&mut read, &mut write).await;
        let _ = write.shutdown().await;
    })
    .await
}

/// A server that speaks first, and then sends back what it hears.
pub(crate) async fn greeter() -> Endpoint {
    Endpoint::start(|mut stream, _| async move {
        if stream.write_all(b"hello ").await.is_ok() {
            let (mut read, mut write) = stream.split();
            let _ = tokio::io::copy(&mut read, &mut write).await;
        }
    })
    .await
}

/// Does this, which must be done within so long to mean anything: again, should the machine have been too slow.
pub(crate) async fn within<T>(limit: Duration, mut act: impl AsyncFnMut() -> T) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let began = Instant::now();
        let outcome = act().await;
        if began.elapsed() < limit {
            return outcome;
        }
        assert!(Instant::now() < deadline, "this machine is too slow");
    }
}

/// A connection, as raw as can be.
pub(crate) async fn connect(way: &Way) -> TcpStream {
    in_time("a connection", TcpStream::connect(way.address()))
        .await
        .unwrap()
}

pub(crate) fn reset(stream: TcpStream) {
    let linger = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    linger.unwrap();
    drop(stream);
}

/// Waits until the other side resets the connection, and has said nothing before.
pub(crate) async fn is_reset(stream: &mut TcpStream) {
    let mut byte = [0];
    let end = in_time("it is reset", stream.read(&mut byte)).await;
    let kind = end.map_err(|error| error.kind());
    assert_eq!(kind, Err(io::ErrorKind::ConnectionReset));
}

async fn exactly(stream: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let read = in_time("so many bytes", stream.read_exact(&mut bytes)).await;
    read.unwrap();
    bytes
}

async fn to_the_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = in_time("the end", stream.read_to_end(&mut bytes)).await;
    read.unwrap();
    bytes
}

/// Bytes of no pattern that a mistake could repeat.
pub(crate) fn bytes(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_speaks_first_is_woken_by_the_connection() {
    let greeter = greeter().await;
    for spoken in [Spoken::Unknown, Spoken::Tcp] {
        let bed = bed(spoken);
        let mut client = connect(&bed.main).await;
        bed.main.waiting(1).await;
        bed.main.notes.has(&Note::Waits(1), 1).await;
        bed.main.backend.set_endpoints(&[greeter.address]);
        assert_eq!(exactly(&mut client, 6).await, b"hello ", "{spoken:?}");
        bed.open(Open::Tunnel, 1).await;
        client.write_all(b"and how are you?").await.unwrap();
        assert_eq!(exactly(&mut client, 16).await, b"and how are you?");
        drop(client);
        bed.main.notes.has(&Note::Carried(End::Done), 1).await;
        bed.open(Open::Tunnel, 0).await;
        bed.open(Open::Connection, 0).await;

        // And now that it is awake.
        let mut client = connect(&bed.main).await;
        assert_eq!(exactly(&mut client, 6).await, b"hello ", "{spoken:?}");
        assert_eq!(bed.main.notes.count(&Note::Waits(1)), 1, "{spoken:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nothing_is_said_of_a_port_http_is_still_http() {
    let app = app().await;
    let bed = bed(Spoken::Unknown);
    // Who says nothing for a while is taken for one that waits for the server to speak.
    let mut client = within(sniff::PATIENCE, async || {
        let mut client = bed.main.client().await;
        client.get("/bytes/10").await;
        client
    })
    .await;
    bed.main.waiting(1).await;
    bed.main.backend.set_endpoints(&[app.http()]);
    assert_eq!(client.answer().await.body.len(), 10);
    client.get("/bytes/20").await;
    assert_eq!(client.answer().await.body.len(), 20);
    let stream = connect(&bed.main).await;
    let (mut send, connection) = h2::client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    let request = http::Request::get("http://a.example/bytes/10");
    let (answer, _) = send.send_request(request.body(()).unwrap(), true).unwrap();
    assert_eq!(in_time("an answer", answer).await.unwrap().status(), 200);
    driver.abort();
    bed.main.notes.has(&Note::Finished(200), 3).await;
    assert_eq!(bed.wire.life().count(Open::Tunnel), 0);
}

/// One byte after the other, with pauses that are longer than a packet takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_in_crumbs_arrives_whole() {
    let echo = echo().await;
    let app = app().await;
    let bed = bed(Spoken::Unknown);
    bed.main.backend.set_endpoints(&[echo.address]);
    let other = bed.add("other", 1);
    bed.speaks(&other, Spoken::Unknown);
    other.backend.set_endpoints(&[app.http()]);
    for said in [
        &b"\x16\x03\x01\x02\x00\x01 and so on"[..],
        b"*1\r\n$4\r\nPING\r\n",
    ] {
        let mut client = connect(&bed.main).await;
        client.set_nodelay(true).unwrap();
        for byte in said {
            client.write_all(&[*byte]).await.unwrap();
            sleep(Duration::from_millis(3)).await;
        }
        assert_eq!(exactly(&mut client, said.len()).await, said);
    }
    let crumbs = async |client: &mut Client, said: &[u8]| {
        for byte in said {
            client.send([*byte]).await;
            sleep(Duration::from_millis(3)).await;
        }
    };
    // So much shows what it is, if it comes in time.
    let mut client = within(sniff::PATIENCE, async || {
        let mut client = other.client().await;
        crumbs(&mut client, b"GET /").await;
        client
    })
    .await;
    crumbs(&mut client, b"bytes/7 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(client.answer().await.body.len(), 7);
    other.notes.has(&Note::Finished(200), 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_side_may_end_while_the_other_goes_on() {
    let echo = echo().await;
    for is_held in [true, false] {
        let bed = bed(Spoken::Tcp);
        if !is_held {
            bed.main.backend.set_endpoints(&[echo.address]);
        }
        let mut client = connect(&bed.main).await;
        client.write_all(b"that is all").await.unwrap();
        client.shutdown().await.unwrap();
        if is_held {
            bed.main.waiting(1).await;
            bed.main.backend.set_endpoints(&[echo.address]);
        }
        assert_eq!(to_the_end(&mut client).await, b"that is all", "{is_held}");
        bed.main.notes.has(&Note::Carried(End::Done), 1).await;
    }

    // The endpoint first: it says a word, ends, and hears the rest.
    let (heard, mut listener) = tokio::sync::mpsc::channel(1);
    let endpoint = Endpoint::start(move |mut stream, _| {
        let heard = heard.clone();
        async move {
            stream.write_all(b"last word").await.unwrap();
            stream.shutdown().await.unwrap();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.unwrap();
            heard.send(rest).await.unwrap();
        }
    })
    .await;
    let bed = bed(Spoken::Tcp);
    bed.main.backend.set_endpoints(&[endpoint.address]);
    let mut client = connect(&bed.main).await;
    assert_eq!(to_the_end(&mut client).await, b"last word");
    bed.open(Open::Tunnel, 1).await;
    client.write_all(b"but").await.unwrap();
    client.shutdown().await.unwrap();
    let rest = in_time("the rest", listener.recv()).await.unwrap();
    assert_eq!(rest, b"but");
    bed.main.notes.has(&Note::Carried(End::Done), 1).await;
    bed.open(Open::Tunnel, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_is_passed_on() {
    for is_of_client in [true, false] {
        let (met, mut meets) = tokio::sync::mpsc::channel(1);
        let endpoint = Endpoint::start(move |mut stream, _| {
            let met = met.clone();
            async move {
                let mut word = [0; 4];
                stream.read_exact(&mut word).await.unwrap();
                stream.write_all(&word).await.unwrap();
                let end = if is_of_client {
                    stream.read(&mut word).await.map_err(|error| error.kind())
                } else {
                    reset(stream);
                    Ok(0)
                };
                met.send(end).await.unwrap();
            }
        })
        .await;
        let bed = bed(Spoken::Tcp);
        bed.main.backend.set_endpoints(&[endpoint.address]);
        let mut client = connect(&bed.main).await;
        client.write_all(b"word").await.unwrap();
        assert_eq!(exactly(&mut client, 4).await, b"word");
        if is_of_client {
            reset(client);
            let end = in_time("it ends", meets.recv()).await.unwrap();
            assert_eq!(end, Err(io::ErrorKind::ConnectionReset));
        } else {
            is_reset(&mut client).await;
        }
        bed.main.notes.has(&Note::Carried(End::Broken), 1).await;
        assert_eq!(bed.main.notes.count(&Note::Retried("broken")), 0);
        bed.open(Open::Connection, 0).await;
    }
}

/// How fast a side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    Quick,
    SlowWriter,
    SlowReader,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn much_arrives_whole_at_any_pace() {
    const LENGTH: usize = 24 << 20;
    const PIECE: usize = 256 * 1024;
    let echo = echo().await;
    let all = bytes(LENGTH);
    for (pace, is_held) in [
        (Pace::Quick, false),
        (Pace::Quick, true),
        (Pace::SlowWriter, true),
        (Pace::SlowReader, false),
    ] {
        let bed = bed(Spoken::Tcp);
        if !is_held {
            bed.main.backend.set_endpoints(&[echo.address]);
        }
        let (mut read, mut write) = connect(&bed.main).await.into_split();
        let writes = async {
            for piece in all.chunks(PIECE) {
                if pace == Pace::SlowWriter {
                    sleep(Duration::from_millis(5)).await;
                }
                write.write_all(piece).await.unwrap();
            }
            write.shutdown().await.unwrap();
        };
        let reads = async {
            let mut sum = Sha256::new();
            let mut piece = vec![0; PIECE];
            loop {
                let length = read.read(&mut piece).await.unwrap();
                if length == 0 {
                    return sum.finalize();
                }
                sum.update(&piece[..length]);
                if pace == Pace::SlowReader {
                    sleep(Duration::from_millis(5)).await;
                }
            }
        };
        let wakes = async {
            if is_held {
                bed.main.waiting(1).await;
                sleep(Duration::from_millis(50)).await;
                bed.main.backend.set_endpoints(&[echo.address]);
            }
        };
        let ((), sum, ()) = in_time("all", async { tokio::join!(writes, reads, wakes) }).await;
        assert_eq!(sum, Sha256::digest(&all), "{pace:?}, held: {is_held}");
        bed.main.notes.has(&Note::Carried(End::Done), 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_is_taken_than_the_endpoint_takes() {
    let deaf = Endpoint::start(|stream, _| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let bed = bed(Spoken::Tcp);
    bed.main.backend.set_endpoints(&[deaf.address]);
    let mut client = connect(&bed.main).await;
    let piece = vec![0; 64 * 1024];
    let mut taken = 0;
    while let Ok(sent) = timeout(Duration::from_secs(1), client.write_all(&piece)).await {
        sent.unwrap();
        taken += piece.len();
        assert!(taken < 64 << 20, "{taken}: somebody keeps it");
    }
    // Nobody else waits for these two.
    let echo = echo().await;
    let other = bed.add("other", 1);
    bed.speaks(&other, Spoken::Tcp);
    other.backend.set_endpoints(&[echo.address]);
    for _ in 0..4 {
        let mut beside = connect(&other).await;
        beside.write_all(b"beside").await.unwrap();
        assert_eq!(exactly(&mut beside, 6).await, b"beside");
    }
    reset(client);
    bed.main.notes.has(&Note::Carried(End::Broken), 1).await;
}
