//! Connections that are held before they are passed through: who wakes, who waits, who is refused, and what is tried again.

use std::{
    io::ErrorKind,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Semaphore,
    time::{Instant, sleep},
};
use weir_wire::{
    backend::{Backend, End},
    hold::Owner,
    life::Open,
    sniff::{self, Spoken},
};

use crate::{
    bed::{Bed, Note, Way, in_time, is_so},
    endpoint::Endpoint,
    tunnel::{NOT_HTTP, bed, bytes, connect, echo, greeter, is_reset, reset, within},
};

const HELLO: &[u8] = b"\x16\x03\x01\x02\x00\x01 and the rest of it";

/// A connection that has said this, and waits.
async fn held(way: &Way, said: &[u8]) -> TcpStream {
    let before = way.backend.line_state().waiting;
    let mut client = connect(way).await;
    client.write_all(said).await.unwrap();
    way.waiting(before + 1).await;
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_health_check_wakes_nobody() {
    let bed = Bed::new();
    for spoken in [Spoken::Http, Spoken::Unknown, Spoken::Tcp, Spoken::Tls] {
        for (pause, resets) in [(0, false), (0, true), (1, false), (50, false), (50, true)] {
            let way = within(sniff::PATIENCE, async || {
                let way = bed.add("checked", 1);
                bed.speaks(&way, spoken);
                let client = connect(&way).await;
                sleep(Duration::from_millis(pause)).await;
                if resets {
                    reset(client);
                } else {
                    drop(client);
                }
                way
            })
            .await;
            bed.open(Open::Connection, 0).await;
            assert_eq!(way.notes.all(), [], "{spoken:?} {pause} {resets}");
        }
    }
}

/// Where the client always speaks first its silence means nothing, however long it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_wakes_only_where_the_server_may_speak_first() {
    let bed = bed(Spoken::Tls);
    let tcp = bed.add("tcp", 1);
    bed.speaks(&tcp, Spoken::Tcp);
    let mut clients = Vec::new();
    let began = Instant::now();
    for way in [&bed.main, &tcp] {
        clients.push(connect(way).await);
    }
    tcp.waiting(1).await;
    assert!(began.elapsed() >= sniff::PATIENCE, "it was waited for");
    sleep(sniff::PATIENCE).await;
    assert_eq!(bed.main.notes.all(), []);
    clients[0].write_all(HELLO).await.unwrap();
    bed.main.waiting(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_asked_for_is_reported_and_wakes_nobody_for_a_while() {
    let bed = Bed::new();
    let reported = |peer: SocketAddr| {
        let silent = bed.wire.silent(peer.port());
        let found = silent.iter().find(|one| one.peer == peer);
        found.map(|one| one.port).ok_or("unknown")
    };
    for spoken in NOT_HTTP {
        let (found, way) = within(sniff::PATIENCE_WITH_PROBES, async || {
            let (client, way) = within(sniff::PATIENCE, async || {
                let way = bed.add("probed", 1);
                bed.speaks(&way, spoken);
                let client = connect(&way).await;
                let peer = client.local_addr().unwrap();
                is_so("it is reported", || reported(peer).map(drop)).await;
                (client, way)
            })
            .await;
            // As long as the operator's connection is open at most.
            sleep(Duration::from_millis(550)).await;
            (reported(client.local_addr().unwrap()), way)
        })
        .await;
        assert_eq!(found, Ok(way.port), "{spoken:?}");
        bed.open(Open::Connection, 0).await;
        assert_eq!(way.notes.all(), [], "{spoken:?}");
    }
}

/// While pods are still there it may reach one, and still is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_passed_through_is_reported_as_long_as_it_is_silent() {
    let greeter = greeter().await;
    for spoken in [Spoken::Unknown, Spoken::Tcp] {
        let bed = bed(spoken);
        bed.main.backend.set_endpoints(&[greeter.address]);
        let mut client = connect(&bed.main).await;
        let port = client.local_addr().unwrap().port();
        let mut hello = [0; 6];
        let read = in_time("hello", client.read_exact(&mut hello)).await;
        read.unwrap();
        assert_eq!(bed.wire.silent(port).len(), 1, "{spoken:?}");
        client.write_all(b"a word").await.unwrap();
        is_so("it has spoken", || match bed.wire.silent(port).len() {
            0 => Ok(()),
            some => Err(some),
        })
        .await;
    }
}

/// It may only have been slow to say its first word, or the question for it was somebody else's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_asked_for_and_stays_is_served_in_the_end() {
    let greeter = greeter().await;
    let bed = bed(Spoken::Tcp);
    let mut client = connect(&bed.main).await;
    let port = client.local_addr().unwrap().port();
    is_so("it is reported", || match bed.wire.silent(port).len() {
        1 => Ok(()),
        other => Err(other),
    })
    .await;
    bed.main.waiting(1).await;
    bed.main.backend.set_endpoints(&[greeter.address]);
    let mut hello = [0; 6];
    let read = in_time("hello", client.read_exact(&mut hello)).await;
    read.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_while_it_waits_is_kept_up_to_a_limit() {
    let echo = echo().await;
    let bed = Bed::planned(|plan| plan.settings.max_replay = 256 * 1024);
    bed.speaks(&bed.main, Spoken::Tcp);
    let all = bytes(2 << 20);
    let client = held(&bed.main, &all[..10]).await;
    let (mut read, mut write) = client.into_split();
    let writes = async {
        write.write_all(&all[10..]).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let reads = async {
        is_so("some of it is kept", || {
            let held = bed.room.held().bytes;
            if held > 100_000 { Ok(()) } else { Err(held) }
        })
        .await;
        assert!(bed.room.held().bytes < 300_000, "and not too much");
        bed.main.backend.set_endpoints(&[echo.address]);
        let mut back = Vec::new();
        read.read_to_end(&mut back).await.unwrap();
        back
    };
    let ((), back) = in_time("all", async { tokio::join!(writes, reads) }).await;
    assert!(back == all, "all of it, in order");
    bed.holds_nothing("all of it was passed on").await;
}

/// An endpoint that takes connections and does not read is given one after another; what it has not taken still counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_endpoint_has_not_taken_counts_until_it_does() {
    // More than the kernel takes on behalf of somebody who does not read.
    const SAID: usize = 12 << 20;
    let may_read = Arc::new(Semaphore::new(0));
    let permits = Arc::clone(&may_read);
    let endpoint = Endpoint::start(move |mut stream, _| {
        let permits = Arc::clone(&permits);
        async move {
            permits.acquire().await.unwrap().forget();
            let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        }
    })
    .await;
    let bed = Bed::planned(|plan| plan.settings.max_replay = 2 * SAID);
    bed.speaks(&bed.main, Spoken::Tcp);
    let _client = held(&bed.main, &bytes(SAID)).await;
    is_so("it is kept", || match bed.room.held().bytes {
        few @ 0..SAID => Err(few),
        _ => Ok(()),
    })
    .await;
    let counts = async |what: &str, wanted: std::ops::Range<usize>| {
        is_so(what, || {
            let line = bed.main.backend.line_state();
            let held = bed.room.held();
            let lingers = line.waiting + line.released == 0 && held.requests == 0;
            if lingers && wanted.contains(&held.bytes) {
                Ok(())
            } else {
                Err((line, held))
            }
        })
        .await;
    };
    bed.main.backend.set_endpoints(&[endpoint.address]);
    counts("it lingers", SAID..2 * SAID).await;
    may_read.add_permits(1);
    counts("it was taken", 0..1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_goes_first() {
    const COUNT: u8 = 32;
    let (arrived, may_answer) = (
        Arc::new(Mutex::new(Vec::new())),
        Arc::new(Semaphore::new(0)),
    );
    let (noted, permits) = (Arc::clone(&arrived), Arc::clone(&may_answer));
    let endpoint = Endpoint::start(move |mut stream, _| {
        let (noted, permits) = (Arc::clone(&noted), Arc::clone(&permits));
        async move {
            let number = stream.read_u8().await.unwrap();
            noted.lock().unwrap().push(number);
            permits.acquire().await.unwrap().forget();
            stream.write_u8(number).await.unwrap();
            let _ = stream.read_u8().await;
        }
    })
    .await;
    let bed = Bed::planned(|plan| plan.settings.shards = 1);
    bed.speaks(&bed.main, Spoken::Tcp);
    let mut clients = Vec::new();
    for number in 0..COUNT {
        clients.push(held(&bed.main, &[number]).await);
    }
    bed.main.backend.set_endpoints(&[endpoint.address]);
    // With each answer some more are let go. Which of them connects first the threads decide, but none is there before all
    // that are older.
    for answers in 0..COUNT {
        is_so("the oldest are there", || {
            let mut there = arrived.lock().unwrap().clone();
            there.sort_unstable();
            let is_so =
                there.len() > usize::from(answers) && (0..).zip(&there).all(|(a, b)| a == *b);
            if is_so { Ok(()) } else { Err(there) }
        })
        .await;
        may_answer.add_permits(1);
    }
    for (client, number) in clients.iter_mut().zip(0..) {
        let answer = in_time("an answer", client.read_u8()).await.unwrap();
        assert_eq!(answer, number);
    }
    bed.main
        .notes
        .has(&Note::FirstByte, usize::from(COUNT))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_goes_away_frees_his_place_at_once() {
    for (spoken, said, resets) in [
        (Spoken::Unknown, &b""[..], false),
        (Spoken::Tcp, b"", false),
        (Spoken::Tcp, b"", true),
        (Spoken::Tcp, b"some words", true),
        (Spoken::Unknown, b"some words", true),
        (Spoken::Unknown, HELLO, false),
        (Spoken::Tls, HELLO, false),
        (Spoken::Tls, HELLO, true),
    ] {
        let bed = bed(spoken);
        let client = held(&bed.main, said).await;
        if resets {
            reset(client);
        } else {
            drop(client);
        }
        bed.main.waiting(0).await;
        let end = Note::Carried(End::ClientGone);
        bed.main.notes.has(&end, 1).await;
        bed.holds_nothing(&format!("{spoken:?} {said:?}")).await;
        bed.open(Open::Connection, 0).await;
        bed.open(Open::Request, 0).await;
    }
}

/// Also when there is no room to read its last words.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_goes_away_is_missed_also_when_he_is_not_read() {
    for (spoken, resets) in [
        (Spoken::Tcp, true),
        (Spoken::Tls, true),
        (Spoken::Tls, false),
    ] {
        let bed = Bed::planned(|plan| plan.settings.max_replay = 0);
        bed.speaks(&bed.main, spoken);
        let mut client = held(&bed.main, &[0; 24]).await;
        client.write_all(&[0; 1000]).await.unwrap();
        if resets {
            reset(client);
        } else {
            drop(client);
        }
        bed.main.waiting(0).await;
        bed.holds_nothing("its client has gone").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_much_is_reset() {
    let echo = echo().await;
    for said in [&b""[..], b"word"] {
        let bed = Bed::planned(|plan| plan.limits.each.requests = 2);
        bed.speaks(&bed.main, Spoken::Tcp);
        let mut first = held(&bed.main, b"first").await;
        let _second = held(&bed.main, b"second").await;
        let mut third = connect(&bed.main).await;
        third.write_all(said).await.unwrap();
        is_reset(&mut third).await;
        let refused = Note::Refused("full_requests");
        bed.main.notes.has(&refused, 1).await;
        bed.main.notes.has(&Note::Carried(End::Refused), 1).await;
        bed.main.backend.set_endpoints(&[echo.address]);
        let mut back = [0; 5];
        let read = in_time("an echo", first.read_exact(&mut back)).await;
        read.unwrap();
        assert_eq!(&back, b"first");
    }
    let bed = Bed::planned(|plan| plan.limits.each.bytes = 500);
    bed.speaks(&bed.main, Spoken::Tls);
    let mut client = connect(&bed.main).await;
    client.write_all(HELLO).await.unwrap();
    is_reset(&mut client).await;
    bed.main.notes.has(&Note::Refused("full_bytes"), 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_waited_long_enough_is_reset() {
    let bed = Bed::planned(|plan| plan.settings.hold_time = Duration::from_millis(400));
    bed.speaks(&bed.main, Spoken::Tcp);
    for said in [&b""[..], b"word"] {
        let mut client = held(&bed.main, said).await;
        is_reset(&mut client).await;
    }
    bed.main.notes.has(&Note::Refused("time_up"), 2).await;
    bed.main.backend.set_endpoints(&[Endpoint::nowhere()]);
    let mut client = connect(&bed.main).await;
    is_reset(&mut client).await;
    bed.main.notes.has(&Note::Refused("time_up"), 3).await;
    bed.holds_nothing("all were reset").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_that_is_never_there_is_tried_again_and_again() {
    let bed = bed(Spoken::Tcp);
    bed.main.backend.set_endpoints(&[Endpoint::nowhere()]);
    let _client = connect(&bed.main).await;
    is_so("it is tried again", || {
        match bed.main.notes.count(&Note::Retried("refused")) {
            few @ 0..3 => Err(few),
            _ => Ok(()),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_backend_that_is_no_more_is_reset() {
    let bed = bed(Spoken::Tcp);
    let mut client = held(&bed.main, b"word").await;
    Backend::close(&bed.main.backend);
    is_reset(&mut client).await;
    let mut late = connect(&bed.main).await;
    late.write_all(b"word").await.unwrap();
    is_reset(&mut late).await;
    bed.main.notes.has(&Note::Refused("gone"), 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_silent_connections_stays_within_the_limits() {
    let bed = Bed::planned(|plan| {
        plan.limits.total.requests = 100;
        plan.limits.each.requests = 100;
    });
    bed.speaks(&bed.main, Spoken::Unknown);
    let mut flood = Vec::new();
    for _ in 0..200 {
        flood.push(connect(&bed.main).await);
    }
    let full = Note::Refused("full_requests_total");
    bed.main.notes.has(&full, 150).await;
    assert_eq!(bed.room.held_by(Owner(0)).requests, 50, "half of the room");

    let quiet = bed.add("quiet", 1);
    bed.speaks(&quiet, Spoken::Tcp);
    let echo = echo().await;
    let mut client = held(&quiet, b"word").await;
    quiet.backend.set_endpoints(&[echo.address]);
    let mut back = [0; 4];
    let read = in_time("an echo", client.read_exact(&mut back)).await;
    read.unwrap();
    drop(flood);
    bed.main.waiting(0).await;
    drop(client);
    bed.open(Open::Connection, 0).await;
    bed.holds_nothing("all have gone").await;
}

/// At the limit of connections, one that does nothing yet makes room, and one that waits does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tunnels_count_once_among_the_connections() {
    let greeter = greeter().await;
    let bed = Bed::planned(|plan| plan.settings.max_connections = 4);
    bed.speaks(&bed.main, Spoken::Tcp);
    bed.main.backend.set_endpoints(&[greeter.address]);
    let mut clients = Vec::new();
    for _ in 0..4 {
        let mut client = connect(&bed.main).await;
        let mut hello = [0; 6];
        let read = in_time("hello", client.read_exact(&mut hello)).await;
        read.unwrap();
        clients.push(client);
    }
    bed.open(Open::Tunnel, 4).await;
    // Perhaps before it is known to be connected.
    let one_more = TcpStream::connect(bed.main.address()).await;
    match one_more {
        Ok(mut one_more) => is_reset(&mut one_more).await,
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    drop(clients.pop());
    bed.open(Open::Connection, 3).await;
    let mut client = connect(&bed.main).await;
    let mut hello = [0; 6];
    let read = in_time("hello", client.read_exact(&mut hello)).await;
    read.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_that_lets_it_down_at_once_is_passed_over() {
    let (tcp, tls) = (Spoken::Tcp, Spoken::Tls);
    for (spoken, is_held, said) in [
        (tcp, true, &b""[..]),
        (tcp, false, b""),
        (tls, true, b"word"),
        (tls, false, b"word"),
    ] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        // Reads what it is told and resets, three times.
        let endpoint = Endpoint::start(move |mut stream, number| {
            let noted = Arc::clone(&noted);
            async move {
                let mut word = vec![0; said.len()];
                stream.read_exact(&mut word).await.unwrap();
                noted.lock().unwrap().push(word);
                if number < 3 {
                    reset(stream);
                    return;
                }
                stream.write_all(b"here").await.unwrap();
                let _ = stream.read_u8().await;
            }
        })
        .await;
        let bed = bed(spoken);
        let both = [Endpoint::nowhere(), endpoint.address];
        let mut client = if is_held {
            let client = held(&bed.main, said).await;
            bed.main.backend.set_endpoints(&both);
            client
        } else {
            bed.main.backend.set_endpoints(&both);
            let mut client = connect(&bed.main).await;
            client.write_all(said).await.unwrap();
            client
        };
        let mut here = [0; 4];
        let read = in_time("an answer", client.read_exact(&mut here)).await;
        read.unwrap();
        let told = bed.main.notes.all();
        let broken = told.iter().filter(|note| {
            // The reset may come before the connection is known to be there.
            matches!(note, Note::Retried("broken" | "unreachable"))
        });
        assert_eq!(broken.count(), 3, "{told:?}");
        let seen = seen.lock().unwrap().clone();
        assert_eq!(seen, vec![said.to_vec(); 4], "held: {is_held}");
    }
}

/// Nobody knows what the word was, so nobody says it twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_told_is_not_told_to_another() {
    let endpoint = Endpoint::start(move |mut stream, _| async move {
        let mut word = [0; 4];
        stream.read_exact(&mut word).await.unwrap();
        reset(stream);
    })
    .await;
    let bed = bed(Spoken::Tcp);
    let mut client = held(&bed.main, b"word").await;
    let both = [Endpoint::nowhere(), endpoint.address];
    bed.main.backend.set_endpoints(&both);
    is_reset(&mut client).await;
    assert_eq!(endpoint.connections(), 1);
    bed.main.notes.has(&Note::Carried(End::Broken), 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_or_has_gone_on_is_not_told_to_another() {
    // Hears the word, says `and?` or nothing, hears another, and resets.
    for speaks in [true, false] {
        let endpoint = Endpoint::start(move |mut stream, _| async move {
            let mut word = [0; 4];
            stream.read_exact(&mut word).await.unwrap();
            if speaks {
                stream.write_all(b"and?").await.unwrap();
            }
            stream.read_exact(&mut word).await.unwrap();
            reset(stream);
        })
        .await;
        let bed = bed(Spoken::Tcp);
        let mut client = held(&bed.main, b"word").await;
        bed.main.backend.set_endpoints(&[endpoint.address]);
        if speaks {
            let mut and = [0; 4];
            let read = in_time("and?", client.read_exact(&mut and)).await;
            read.unwrap();
        } else {
            bed.open(Open::Tunnel, 1).await;
        }
        client.write_all(b"more").await.unwrap();
        is_reset(&mut client).await;
        assert_eq!(endpoint.connections(), 1);
        bed.main.notes.has(&Note::Carried(End::Broken), 1).await;
    }
}

/// A pool's idle connection must not wake what goes to sleep.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_tunnel_whose_endpoint_goes_wakes_nobody() {
    let (go, goes) = tokio::sync::watch::channel(false);
    let endpoint = Endpoint::start(move |stream, _| {
        let mut goes = goes.clone();
        async move {
            let _ = goes.wait_for(|goes| *goes).await;
            reset(stream);
        }
    })
    .await;
    let bed = bed(Spoken::Tcp);
    bed.main.backend.set_endpoints(&[endpoint.address]);
    let mut client = connect(&bed.main).await;
    bed.open(Open::Tunnel, 1).await;
    // Until it counts as taken, after 250 ms, which nobody is told of.
    sleep(Duration::from_secs(1)).await;
    bed.main.backend.set_endpoints(&[]);
    go.send(true).unwrap();
    is_reset(&mut client).await;
    assert_eq!(bed.main.notes.all(), [Note::Carried(End::Broken)]);
}
