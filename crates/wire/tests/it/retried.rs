//! Endpoints that fail, and what is sent again because of it.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use socket2::SockRef;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{Notify, mpsc},
};
use weir_wire::hold::Room;

use crate::{
    bed::{Bed, Note, app, in_time, is_so},
    endpoint::{Endpoint, Recorder, Seen, read_request},
};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// How an endpoint lets a request down.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Resets the connection before it has read anything.
    ResetsAtOnce,
    /// Reads the request and closes.
    ClosesAfterwards,
    /// Reads the request and resets.
    ResetsAfterwards,
    /// Says something that is no answer.
    Babbles,
}

/// An endpoint that lets its first `bad` connections down, and what it saw.
async fn failing(fault: Fault, bad: usize) -> (Endpoint, Arc<Mutex<Vec<Seen>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let endpoint = Endpoint::start(move |mut stream, number| {
        let noted = Arc::clone(&noted);
        async move {
            if number < bad && matches!(fault, Fault::ResetsAtOnce) {
                reset(stream);
                return;
            }
            let mut buffer = Vec::new();
            while let Ok(Some(request)) = read_request(&mut stream, &mut buffer).await {
                noted.lock().unwrap().push(request);
                if number >= bad {
                    stream.write_all(OK).await.unwrap();
                    continue;
                }
                match fault {
                    Fault::ResetsAfterwards => reset(stream),
                    Fault::Babbles => stream.write_all(b"SSH-2.0-hello\r\n\r\n").await.unwrap(),
                    Fault::ClosesAfterwards | Fault::ResetsAtOnce => {}
                }
                return;
            }
        }
    })
    .await;
    (endpoint, seen)
}

fn reset(stream: TcpStream) {
    SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    drop(stream);
}

/// Waits until the kernel knows of none that is open: on a busy machine that takes a moment also on loopback, and what is sent
/// before it knows is lost.
async fn no_connection_to(address: SocketAddr) {
    const ESTABLISHED: &str = "01";
    let SocketAddr::V4(address) = address else {
        panic!("{address} is not IPv4");
    };
    let ip = u32::from_ne_bytes(address.ip().octets());
    let wanted = format!("{ip:08X}:{:04X}", address.port());
    is_so("the end has come through", || {
        let all = std::fs::read_to_string("/proc/self/net/tcp").map_err(|it| it.to_string())?;
        let mut lines = all.lines().map(str::split_whitespace);
        let open = lines.find(|fields| {
            let mut fields = fields.clone().skip(2);
            fields.next() == Some(&*wanted) && fields.next() == Some(ESTABLISHED)
        });
        open.map_or(Ok(()), |_| Err(format!("open to {wanted}")))
    })
    .await;
}

fn request(method: &str) -> String {
    format!("{method} / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n12345")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_refuses_is_passed_over() {
    let app = app().await;
    let bed = Bed::new();
    bed.main
        .backend
        .set_endpoints(&[Endpoint::nowhere(), app.http(), Endpoint::nowhere()]);
    let mut client = bed.main.client().await;
    for _ in 0..20 {
        for method in ["GET", "POST"] {
            client.send(request(method).replace(" / ", " /echo ")).await;
            let answer = client.answer().await;
            assert_eq!(answer.status, 200);
            assert_eq!(answer.json()["body"]["bytes"], 5);
        }
    }
    assert!(bed.main.notes.count(&Note::Retried("refused")) > 0);
}

/// Or a flood of those that an endpoint has had for a while would go past the limits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_taken_and_waits_again_counts_with_its_body() {
    const BODY: usize = 200_000;
    let let_down = Arc::new(Notify::new());
    let told = Arc::clone(&let_down);
    let endpoint = Endpoint::start(move |mut stream, _| {
        let told = Arc::clone(&told);
        async move {
            let seen = read_request(&mut stream, &mut Vec::new()).await;
            assert_eq!(seen.unwrap().unwrap().body.len(), BODY);
            told.notified().await;
        }
    })
    .await;
    let bed = Bed::new();
    let mut client = bed.main.client().await;
    let start = format!("PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: {BODY}\r\n\r\n");
    client.send(start).await;
    client.send(vec![b'x'; BODY]).await;
    let held = |least: usize| {
        let held = bed.room.held().bytes;
        if held >= least { Ok(()) } else { Err(held) }
    };
    is_so("the body is read", || held(BODY)).await;
    bed.main.backend.set_endpoints(&[endpoint.address]);
    is_so("it is taken, and kept", || match bed.room.held() {
        Room { requests: 0, bytes } if bytes >= BODY => Ok(()),
        other => Err(other),
    })
    .await;
    bed.main.backend.set_endpoints(&[]);
    let_down.notify_one();
    bed.main.waiting(1).await;
    is_so("it counts with its body, once", || match bed.room.held() {
        Room { requests: 1, bytes } if (BODY..2 * BODY).contains(&bytes) => Ok(()),
        other => Err(other),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_safe_is_sent_again_and_what_is_not_is_not() {
    for fault in [
        Fault::ResetsAtOnce,
        Fault::ClosesAfterwards,
        Fault::ResetsAfterwards,
        Fault::Babbles,
    ] {
        for is_held in [false, true] {
            for method in ["GET", "PUT", "POST"] {
                let what = format!("{method}, {fault:?}, held: {is_held}");
                let (endpoint, seen) = failing(fault, 1).await;
                let bed = Bed::new();
                if !is_held {
                    bed.main.backend.set_endpoints(&[endpoint.address]);
                }
                let mut client = bed.main.client().await;
                client.send(request(method)).await;
                if is_held {
                    bed.main.waiting(1).await;
                    bed.main.backend.set_endpoints(&[endpoint.address]);
                }
                let answer = client.answer().await;
                let seen = seen.lock().unwrap().clone();
                assert!(seen.iter().all(|it| it.body == b"12345"), "{what}");
                // A body that was not kept cannot be sent twice, and a POST must not be.
                let may_repeat = match fault {
                    // Whether some of it was sent before is a matter of luck.
                    Fault::ResetsAtOnce => method == "GET" || method == "PUT",
                    Fault::Babbles => false,
                    _ => method != "POST",
                };
                let notes = bed.main.notes.all();
                let retried = notes
                    .iter()
                    .filter(|it| matches!(it, Note::Retried(_)))
                    .count();
                if answer.status == 200 {
                    assert!(may_repeat || matches!(fault, Fault::ResetsAtOnce), "{what}");
                    let times = if matches!(fault, Fault::ResetsAtOnce) {
                        1
                    } else {
                        2
                    };
                    assert_eq!(seen.len(), times, "{what}");
                    assert_eq!(retried, 1, "{what}");
                } else {
                    assert!(!(may_repeat && is_held), "{what}");
                    assert_eq!(answer.status, 502, "{what}");
                    assert_eq!(answer.reason(), "endpoint_failed", "{what}");
                    let times = usize::from(!matches!(fault, Fault::ResetsAtOnce));
                    assert_eq!(seen.len(), times, "{what}");
                    assert_eq!(retried, 0, "{what}: it was not");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_breaks_off_is_not_made_to_look_whole() {
    let endpoint = Endpoint::start(|mut stream, number| async move {
        let _ = read_request(&mut stream, &mut Vec::new()).await;
        let answer: &[u8] = match number {
            0 => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this",
            1 => b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nonly this\r\n",
            _ => OK,
        };
        stream.write_all(answer).await.unwrap();
    })
    .await;
    let bed = Bed::leading_to(endpoint.address);
    for _ in 0..2 {
        let mut client = bed.main.client().await;
        client.get("/").await;
        let text = String::from_utf8(in_time("the end", client.rest()).await).unwrap();
        assert!(text.is_empty() || text.contains("only this"), "{text}");
        assert!(!text.contains("\r\n0\r\n"), "{text}");
    }
    let mut client = bed.main.client().await;
    client.get("/").await;
    assert_eq!(client.answer().await.body, b"ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_connection_that_was_closed_meanwhile_costs_nothing() {
    let (closed, mut ends) = mpsc::channel(1);
    let seen = Arc::new(Mutex::new(0));
    let noted = Arc::clone(&seen);
    let endpoint = Endpoint::start(move |mut stream, number| {
        let closed = closed.clone();
        let noted = Arc::clone(&noted);
        async move {
            let _ = read_request(&mut stream, &mut Vec::new()).await;
            *noted.lock().unwrap() += 1;
            stream.write_all(OK).await.unwrap();
            // Once well, once badly.
            if number % 2 == 0 {
                drop(stream);
            } else {
                reset(stream);
            }
            closed.send(()).await.unwrap();
        }
    })
    .await;
    let bed = Bed::leading_to(endpoint.address);
    let mut client = bed.main.client().await;
    for round in 1..=10 {
        client.send(request("POST")).await;
        assert_eq!(client.answer().await.status, 200);
        in_time("it is closed", ends.recv()).await;
        no_connection_to(endpoint.address).await;
        assert_eq!(*seen.lock().unwrap(), round);
        assert_eq!(endpoint.connections(), round);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_connection_to_an_endpoint_that_died_is_passed_over() {
    let first = app().await;
    let second = app().await;
    let bed = Bed::leading_to(first.http());
    let mut client = bed.main.client().await;
    client.get("/bytes/1").await;
    assert_eq!(client.answer().await.status, 200);
    let addresses = [first.http(), second.http()];
    first.crash().await;
    bed.main.backend.set_endpoints(&addresses);
    for _ in 0..10 {
        client.get("/bytes/1").await;
        assert_eq!(client.answer().await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_http2_connection_to_an_endpoint_that_died_is_passed_over() {
    let first = app().await;
    let second = app().await;
    let bed = Bed::leading_to(first.http());
    let stream = bed.main.client().await.stream;
    let (mut send, connection) = h2::client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    let mut get = || {
        let request = http::Request::get("http://a.example/bytes/1").body(());
        let (answer, _) = send.send_request(request.unwrap(), true).unwrap();
        in_time("an answer", answer)
    };
    assert_eq!(get().await.unwrap().status(), 200);
    let addresses = [first.http(), second.http()];
    first.crash().await;
    bed.main.backend.set_endpoints(&addresses);
    for _ in 0..10 {
        assert_eq!(get().await.unwrap().status(), 200);
    }
    driver.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_kept_and_used_again() {
    let recorder = Recorder::start().await;
    let chunked = Endpoint::start(|mut stream, _| async move {
        let mut buffer = Vec::new();
        while let Ok(Some(_)) = read_request(&mut stream, &mut buffer).await {
            let answer =
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        }
    })
    .await;
    for endpoint in [&recorder.endpoint, &chunked] {
        let bed = Bed::leading_to(endpoint.address);
        let mut client = bed.main.client().await;
        for _ in 0..10 {
            client.get("/").await;
            assert_eq!(client.answer().await.body, b"ok");
        }
        assert_eq!(endpoint.connections(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_answers_early_and_reads_no_more_is_heard() {
    let endpoint = Endpoint::start(|mut stream, _| async move {
        let mut head = [0; 10];
        stream.read_exact(&mut head).await.unwrap();
        let answer = b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        // Reads on, so that the answer is not lost to a reset.
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    })
    .await;
    let bed = Bed::leading_to(endpoint.address);
    let mut client = bed.main.client().await;
    client
        .send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n12345")
        .await;
    assert_eq!(client.answer().await.status, 413);
}
