//! Requests that wait: in order, within limits, and no longer than their clients do.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use socket2::SockRef;
use tokio::{io::AsyncWriteExt, time::timeout};
use weir_wire::{
    backend::Backend,
    hold::{Owner, Room},
    life::Open,
};

use crate::{
    bed::{Bed, Note, app, is_so},
    client::Client,
    endpoint::{Endpoint, read_request},
};

/// Puts a request in line, and is sure that it is there.
async fn wait_in_line(bed: &Bed, path: &str) -> Client {
    let before = bed.main.backend.line_state().waiting;
    let mut client = bed.main.client().await;
    client.get(path).await;
    bed.main.waiting(before + 1).await;
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_go_in_the_order_in_which_they_came() {
    const COUNT: usize = 32;
    let order = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&order);
    let endpoint = Endpoint::start(move |mut stream, number| {
        let noted = Arc::clone(&noted);
        async move {
            let seen = read_request(&mut stream, &mut Vec::new()).await;
            noted
                .lock()
                .unwrap()
                .push((number, seen.unwrap().unwrap().path));
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        }
    })
    .await;
    // With one shard connections are made in the order in which requests are let go.
    let bed = Bed::planned(|plan| plan.settings.shards = 1);
    let mut clients = Vec::new();
    // As many as are let go at once: of later ones the threads decide.
    for number in 0..COUNT {
        clients.push(wait_in_line(&bed, &format!("/{number}")).await);
    }
    bed.main.backend.set_endpoints(&[endpoint.address]);
    for client in &mut clients {
        assert_eq!(client.answer().await.status, 200);
    }
    let mut order = order.lock().unwrap().clone();
    order.sort();
    let expected: Vec<_> = (0..COUNT)
        .map(|number| (number, format!("/{number}")))
        .collect();
    assert_eq!(order, expected);
    bed.holds_nothing("all were answered").await;
    let told = bed.main.notes.all();
    let waits: Vec<_> = told
        .iter()
        .filter(|it| matches!(it, Note::Waits(_)))
        .collect();
    let counted: Vec<_> = (1..=COUNT).map(Note::Waits).collect();
    assert_eq!(waits, counted.iter().collect::<Vec<_>>());
    bed.main.notes.has(&Note::FirstByte, COUNT).await;
    bed.main.notes.has(&Note::Finished(200), COUNT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_away_frees_its_place() {
    let bed = Bed::new();
    let part = vec![b'x'; 500_000];
    let chunk = [b"7a120\r\n".as_slice(), &part].concat();
    for (what, head, body) in [
        ("no body", "GET / HTTP/1.1\r\nhost: a\r\n\r\n", &b""[..]),
        (
            "a small body, all of it there",
            "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n",
            b"12345",
        ),
        (
            "a large body that is under way",
            "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 900000\r\n\r\n",
            &part,
        ),
        (
            "a body without a length",
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n",
            &chunk,
        ),
    ] {
        let mut client = bed.main.client().await;
        client.send(head).await;
        client.send(body).await;
        bed.main.waiting(1).await;
        is_so(what, || {
            let held = bed.room.held();
            if held.bytes > body.len() {
                Ok(())
            } else {
                Err(held)
            }
        })
        .await;
        drop(client);
        bed.main.waiting(0).await;
        bed.holds_nothing(what).await;
        bed.open(Open::Connection, 0).await;
    }
    bed.open(Open::Request, 0).await;
}

/// What is not read says nothing; the socket does, and is asked once a second. Only a client whose last word does not
/// fit into the socket's buffer cannot be heard by anybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_away_is_missed_also_when_its_body_is_not_read() {
    const HEAD: &str = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000000\r\n\r\n";
    let bed = Bed::planned(|plan| plan.settings.max_replay = 256 * 1024);
    let mut client = bed.main.client().await;
    client.send(HEAD).await;
    bed.main.waiting(1).await;
    // Until a piece stays in the socket: then what is unread is less than the kernel takes, and the end comes through.
    let piece = vec![b'x'; 16 * 1024];
    let mut before = Room::default();
    while bed.room.held() != before {
        before = bed.room.held();
        client.send(piece.clone()).await;
        let read = async {
            while bed.room.held() == before {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let _ = timeout(Duration::from_millis(300), read).await;
    }
    drop(client);
    bed.main.waiting(0).await;
    bed.holds_nothing("its client has gone").await;
    bed.open(Open::Connection, 0).await;

    // With an endpoint that does not read, and a client that ends as one does that is killed.
    let deaf = Endpoint::start(|stream, _| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    bed.main.backend.set_endpoints(&[deaf.address]);
    let mut client = bed.main.client().await;
    client.send(HEAD).await;
    let piece = vec![b'x'; 64 * 1024];
    // Until no more is taken.
    while let Ok(sent) = timeout(Duration::from_secs(1), client.stream.write_all(&piece)).await {
        sent.unwrap();
    }
    bed.open(Open::Request, 1).await;
    SockRef::from(&client.stream)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    drop(client);
    bed.open(Open::Request, 0).await;
    bed.open(Open::Connection, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_when_the_last_has_gone() {
    let bed = Bed::new();
    let first = wait_in_line(&bed, "/").await;
    let second = wait_in_line(&bed, "/").await;
    assert!(bed.main.backend.waits_for().is_some());
    drop(first);
    bed.main.waiting(1).await;
    assert!(bed.main.backend.waits_for().is_some());
    drop(second);
    bed.main.waiting(0).await;
    // The next wake would seem to have begun then, and clients be told to stay away for as long.
    is_so("nobody waits", || match bed.main.backend.waits_for() {
        None => Ok(()),
        some => Err(some),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_much_is_told_when_to_come_again() {
    let bed = Bed::planned(|plan| plan.limits.each.requests = 2);
    let mut first = wait_in_line(&bed, "/bytes/1").await;
    let mut second = wait_in_line(&bed, "/bytes/2").await;
    let mut third = bed.main.client().await;
    third.get("/").await;
    let answer = third.answer().await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.reason(), "full_requests");
    let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=5).contains(&seconds), "{seconds}");

    third
        .send("POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/grpc\r\ncontent-length: 0\r\n\r\n")
        .await;
    let answer = third.answer().await;
    assert_eq!(
        answer.status, 200,
        "the only status that gRPC clients understand"
    );
    assert_eq!(answer.header("content-type"), Some("application/grpc"));
    assert_eq!(answer.header("grpc-status"), Some("14"));
    assert!(
        answer
            .header("grpc-message")
            .unwrap()
            .contains("main is not awake yet")
    );
    assert!(answer.header("retry-after").is_some());
    assert!(answer.body.is_empty());

    // Refused before it is read, so nobody is told to send it.
    third
        .send("POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 10\r\n\r\n")
        .await;
    assert_eq!(third.head().await.unwrap().status, 503);

    bed.main.notes.has(&Note::Refused("full_requests"), 3).await;
    let app = app().await;
    bed.main.backend.set_endpoints(&[app.http()]);
    assert_eq!(first.answer().await.body.len(), 1);
    assert_eq!(second.answer().await.body.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_are_limited_as_well() {
    let bed = Bed::planned(|plan| plan.limits.each.bytes = 10_000);
    let long = format!("/{}", "x".repeat(6000));
    let _first = wait_in_line(&bed, &long).await;
    let mut second = bed.main.client().await;
    second.get(&long).await;
    let answer = second.answer().await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.reason(), "full_bytes");
}

/// A backend that reads and does not answer is given one after another; what must be kept of them still counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_be_sent_again_counts_until_it_is_answered() {
    const BODY: usize = 700_000;
    let bed = Bed::planned(|plan| plan.limits.each.bytes = 3 * BODY);
    let silent = Endpoint::silent().await;
    let body = vec![b'x'; BODY];
    let head =
        |method: &str| format!("{method} / HTTP/1.1\r\nhost: a\r\ncontent-length: {BODY}\r\n\r\n");
    // One that is held, with what there is room for of its body, and then taken.
    let taken = async |method: &str| {
        bed.main.backend.set_endpoints(&[]);
        let mut client = bed.main.client().await;
        client.send(head(method)).await;
        bed.main.waiting(1).await;
        client.send(&body).await;
        client
    };
    // What is in memory, when nobody is in line or waited for any more.
    let remains = async |what: &str, wanted: std::ops::Range<usize>| {
        is_so(what, || {
            let line = bed.main.backend.line_state();
            let kept = bed.room.held();
            if line.waiting + line.released == 0
                && kept.requests == 0
                && wanted.contains(&kept.bytes)
            {
                Ok(())
            } else {
                Err((line, kept))
            }
        })
        .await;
    };

    let is_read = async |least: usize| {
        is_so("it is read", || match bed.room.held().bytes {
            enough if enough >= least => Ok(()),
            few => Err(few),
        })
        .await;
        bed.main.backend.set_endpoints(&[silent.address]);
    };

    let put = taken("PUT").await;
    is_read(BODY).await;
    remains("one lingers, and is kept", BODY..BODY + 100_000).await;

    let post = taken("POST").await;
    is_read(2 * BODY).await;
    remains(
        "what was sent and is not sent again is not kept",
        BODY..BODY + 100_000,
    )
    .await;

    // However many come, they take no more than they may.
    let mut others = Vec::new();
    for _ in 0..5 {
        others.push(taken("PUT").await);
        bed.main.backend.set_endpoints(&[silent.address]);
        remains("more linger", BODY..3 * BODY + 1).await;
    }
    drop((put, post, others));
    remains("their clients have gone", 0..1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_waited_long_enough_is_told_so() {
    let bed = Bed::planned(|plan| plan.settings.hold_time = Duration::from_millis(300));
    let mut client = bed.main.client().await;
    for _ in 0..2 {
        client.get("/").await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 504);
        assert_eq!(answer.reason(), "time_up");
    }
    // Also with an endpoint that is never there.
    bed.main.backend.set_endpoints(&[Endpoint::nowhere()]);
    client.get("/").await;
    let answer = client.answer().await;
    assert_eq!(answer.status, 504);
    bed.main.notes.has(&Note::Refused("time_up"), 3).await;
    bed.holds_nothing("all were told").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_that_is_never_there_is_tried_again_and_again() {
    let bed = Bed::leading_to(Endpoint::nowhere());
    let mut client = bed.main.client().await;
    client.get("/").await;
    is_so("it is tried again", || {
        match bed.main.notes.count(&Note::Retried("refused")) {
            few @ 0..3 => Err(few),
            _ => Ok(()),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_backend_that_is_no_more_is_told_so() {
    let bed = Bed::new();
    let mut client = wait_in_line(&bed, "/").await;
    Backend::close(&bed.main.backend);
    for _ in 0..2 {
        let answer = client.answer().await;
        assert_eq!(answer.status, 503);
        assert_eq!(answer.reason(), "gone");
        assert_eq!(answer.header("retry-after"), Some("1"));
        client.get("/").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_leaves_room_for_others() {
    let bed = Bed::planned(|plan| {
        plan.limits.total.requests = 100;
        plan.limits.each.requests = 100;
    });
    let mut flood = Vec::new();
    for _ in 0..150 {
        let mut client = bed.main.client().await;
        client.get("/").await;
        flood.push(client);
    }
    bed.main
        .notes
        .has(&Note::Refused("full_requests_total"), 100)
        .await;
    assert_eq!(bed.room.held_by(Owner(0)).requests, 50, "half of the room");

    let quiet = bed.add("quiet", 1);
    let mut clients = Vec::new();
    for number in 0..10 {
        let mut client = quiet.client().await;
        client.get(&format!("/bytes/{number}")).await;
        clients.push(client);
    }
    quiet.waiting(10).await;
    let app = app().await;
    quiet.backend.set_endpoints(&[app.http()]);
    for (number, client) in clients.iter_mut().enumerate() {
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.body.len()), (200, number));
    }
    assert_eq!(bed.main.backend.line_state().waiting, 50, "they still wait");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_that_takes_few_at_a_time_gets_all_in_the_end() {
    let app = weir_lab::app::App::start(weir_lab::app::Settings {
        tcp_listen: None,
        max_concurrent: Some(5),
        ..weir_lab::app::Settings::default()
    })
    .await
    .unwrap();
    let bed = Bed::new();
    let mut clients = Vec::new();
    for _ in 0..100 {
        let mut client = bed.main.client().await;
        client.get("/delay/0.01").await;
        clients.push(client);
    }
    bed.main.waiting(100).await;
    bed.main.backend.set_endpoints(&[app.http()]);
    for client in &mut clients {
        assert_eq!(client.answer().await.status, 200);
    }
}
