//! Each kind of fault, made by a server that knows nothing but how to fail.

use std::{
    future::{Future, pending},
    net::SocketAddr,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use weir_lab::{
    app::{App, Settings},
    eventually,
    load::{Check, Counts, Link, Load, Protocol, Report},
};

use super::{ALL_PROTOCOLS, is_perfect};

/// A server that treats each connection so, once a request has come.
struct Faulty {
    address: SocketAddr,
    server: JoinHandle<()>,
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn faulty<F>(treat: impl Fn(TcpStream) -> F + Send + 'static) -> Faulty
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            if matches!(stream.read(&mut request).await, Ok(1..)) {
                tokio::spawn(treat(stream));
            }
        }
    });
    Faulty { address, server }
}

/// A server that writes this and closes.
async fn saying(answer: &'static str) -> Faulty {
    faulty(move |mut stream| async move {
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await
}

/// 50 requests, which must all be counted.
async fn fifty(address: SocketAddr, change: impl FnOnce(Load) -> Load) -> Report {
    let load = Load::new(format!("http://{address}/"))
        .rate(500)
        .duration(Duration::from_millis(100))
        .connections(10);
    let report = change(load).run().await.unwrap();
    assert!(report.adds_up(), "{report:?}");
    assert_eq!((report.sent, report.unsent), (50, 0), "{report}");
    report
}

async fn outcomes(address: SocketAddr) -> Counts {
    fifty(address, |load| load).await.outcomes
}

#[tokio::test]
async fn nobody_listens() {
    let address = SocketAddr::from(([127, 0, 0, 1], weir_lab::ports::free()));
    for protocol in ALL_PROTOCOLS {
        let report = fifty(address, |load| load.protocol(protocol)).await;
        assert_eq!(report.outcomes.refused, 50, "{protocol:?}: {report}");
    }
}

#[tokio::test]
async fn reset_before_and_after_the_head() {
    for head in ["", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"] {
        let server = faulty(move |mut stream| async move {
            stream.write_all(head.as_bytes()).await.unwrap();
            // Closing with nothing to linger for is a reset.
            stream.set_zero_linger().unwrap();
        })
        .await;
        assert_eq!(outcomes(server.address).await.reset, 50, "after {head:?}");
    }
}

#[tokio::test]
async fn closed_before_the_answer_is_whole() {
    for answer in [
        "HTTP/1.1 200 OK\r\nconte",
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nwhole\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nha",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx-trailer: y\r\n",
    ] {
        let server = saying(answer).await;
        assert_eq!(outcomes(server.address).await.cut, 50, "{answer:?}");
    }
}

#[tokio::test]
async fn whole_answers_of_every_framing() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwhole",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nwho\r\n2;x=y\r\nle\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\nx-trailer: y\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nwhole",
        "HTTP/1.0 200 OK\r\n\r\nwhole",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwhole",
    ] {
        let server = saying(answer).await;
        let report = fifty(server.address, |load| load).await;
        assert!(is_perfect(&report), "{answer:?}: {report}");
        assert_eq!(report.bytes_received, 250, "{answer:?}");
    }
    let server = saying("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(outcomes(server.address).await.ok, 50);
}

#[tokio::test]
async fn never_answered() {
    let server = faulty(|stream| async move {
        pending::<()>().await;
        drop(stream);
    })
    .await;
    // Long enough for all to be sent, also on a machine that stalls. Did it not stop by itself, neither would this test.
    let report = fifty(server.address, |load| {
        load.connections(50).time_out(Duration::from_secs(5))
    })
    .await;
    assert_eq!(report.outcomes.time_out, 50, "{report}");
}

#[tokio::test]
async fn with_too_few_connections_what_was_not_sent_is_told() {
    let server = faulty(|stream| async move {
        tokio::time::sleep(Duration::from_mins(1)).await;
        drop(stream);
    })
    .await;
    let report = Load::new(format!("http://{}/", server.address))
        // Ten are due in each millisecond, and timers are no finer: one connection cannot give all of them up.
        .rate(10_000)
        .duration(Duration::from_millis(200))
        .connections(1)
        .time_out(Duration::from_millis(100))
        .run()
        .await
        .unwrap();
    assert!(report.adds_up(), "{report:?}");
    assert!(
        report.unsent > 0 && report.outcomes.time_out == report.sent,
        "{report}"
    );
    assert!(report.to_string().contains("NOT SENT"));
}

#[tokio::test]
async fn other_bytes_than_those_that_were_sent() {
    let server = saying("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong").await;
    let report = fifty(server.address, |load| load.body_bytes(5)).await;
    assert_eq!(report.outcomes.wrong_body, 50, "{report}");
}

#[tokio::test]
async fn the_answer_to_another_request() {
    let answer = "HTTP/1.1 200 OK\r\nX-Weir-Request-Id: another\r\ncontent-length: 0\r\n\r\n";
    let server = saying(answer).await;
    assert_eq!(outcomes(server.address).await.wrong_body, 50);
}

#[tokio::test]
async fn a_status_counts_as_such_even_if_its_body_is_cut() {
    for answer in [
        "HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy",
        "HTTP/1.1 503 Busy\r\ncontent-length: 100\r\n\r\nbusy",
    ] {
        let server = saying(answer).await;
        let counts = outcomes(server.address).await;
        assert_eq!(counts.status.get(&503), Some(&50), "{answer:?}: {counts}");
    }
    let app = App::start(Settings::default()).await.unwrap();
    for protocol in ALL_PROTOCOLS {
        let load = Load::new(app.url("/status/429"))
            .rate(100)
            .protocol(protocol);
        let report = load
            .duration(Duration::from_millis(200))
            .run()
            .await
            .unwrap();
        assert!(report.adds_up());
        assert_eq!(report.outcomes.status.get(&429), Some(&20), "{report}");
    }
}

#[tokio::test]
async fn no_http_at_all() {
    let server = saying("SSH-2.0-OpenSSH_9.2\r\n").await;
    let counts = outcomes(server.address).await;
    assert_eq!(counts.other.values().sum::<u64>(), 50, "{counts}");
}

#[tokio::test]
async fn a_server_that_dies_in_the_middle_is_no_reason_to_lose_count() {
    for protocol in ALL_PROTOCOLS {
        let app = App::start(Settings::default()).await.unwrap();
        let load = Load::new(app.url("/delay/0.05"))
            .rate(200)
            .protocol(protocol);
        let load = tokio::spawn(load.duration(Duration::from_secs(1)).run());
        // Some are answered, and most are still to come.
        eventually(Duration::from_mins(1), "some are answered", || async {
            let seen = crate::client::get(app.http(), "/metrics").await.text();
            let line = "lab_requests_total{path=\"delay\",status=\"200\"} ";
            if seen.contains(line) {
                Ok(())
            } else {
                Err(seen)
            }
        })
        .await;
        app.crash().await;
        let report = load.await.unwrap().unwrap();
        assert!(report.adds_up(), "{report:?}");
        let counts = &report.outcomes;
        assert!(
            counts.ok > 0 && counts.refused > 0,
            "{protocol:?}: {report}"
        );
        assert_eq!(counts.other.len(), 0, "{protocol:?}: {report}");
    }
}

#[tokio::test]
async fn right_answers_are_right_in_every_protocol_and_the_server_agrees() {
    let app = App::start(Settings::default()).await.unwrap();
    let mut sent = 0;
    for protocol in ALL_PROTOCOLS {
        for bytes in [1, 1000, 300_000] {
            let load = Load::new(app.url("/mirror")).rate(100).body_bytes(bytes);
            let load = load.duration(Duration::from_millis(300)).protocol(protocol);
            let report = load.run().await.unwrap();
            assert!(is_perfect(&report), "{protocol:?}, {bytes} bytes: {report}");
            assert_eq!(report.bytes_received, report.sent * bytes as u64);
            sent += report.sent;
        }
    }
    let load = Load::new(app.url("/bytes/10000"))
        .check(Check::Declared)
        .rate(100);
    let report = load
        .duration(Duration::from_millis(300))
        .run()
        .await
        .unwrap();
    assert!(is_perfect(&report), "{report}");
    sent += report.sent;

    let seen = crate::client::get(app.http(), "/metrics").await.text();
    let line = format!("lab_request_ids_distinct {sent}\n");
    assert!(seen.contains(&line), "no {line:?} in\n{seen}");
    assert!(
        seen.contains("lab_request_ids_repeated_total 0\n"),
        "{seen}"
    );
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_with_a_reason() {
    for (load, reason) in [
        (Load::new("https://x/"), "http://host:port/path"),
        (Load::new("nonsense"), "http://host:port/path"),
        (Load::new("http://127.0.0.1:1/").rate(0), "1 or more"),
        (Load::new("http://127.0.0.1:1/").header("a b", "c"), "a b"),
        (
            Load::new("http://127.0.0.1:1/").protocol(Protocol::H2c { streams: 0 }),
            "1 or more",
        ),
        (
            Load::new("http://no-such-host.invalid/"),
            "no-such-host.invalid",
        ),
    ] {
        let error = load.run().await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

/// Gives the first request on each connection a whole answer with this header, and closes on the second.
async fn closing_on_the_second(via: &'static str) -> Faulty {
    faulty(move |mut stream| async move {
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n{via}\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await;
    })
    .await
}

#[tokio::test]
async fn who_cut_a_kept_connection_is_told() {
    for (via, link) in [
        ("x-weir-via: -\r\n", Link::KeptToServer),
        ("x-weir-via: 1.1 proxy\r\n", Link::KeptToProxy),
        ("", Link::KeptToProxy),
    ] {
        let server = closing_on_the_second(via).await;
        let report = fifty(server.address, |load| load).await;
        let failed = report.outcomes.failed();
        assert!(failed > 0 && failed < 50, "{report}");
        let by_server = if link == Link::KeptToServer {
            failed
        } else {
            0
        };
        assert_eq!(report.cut_by_server, by_server, "{via:?}: {report}");
        assert_eq!(report.failures.len() as u64, failed);
        assert!(
            report.failures.iter().all(|it| it.link == link),
            "{report:?}"
        );
        let age = std::time::SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap()
            .as_secs_f64()
            - report.started_unix_seconds;
        assert!((0.1..60.0).contains(&age), "{age}");
    }
}
