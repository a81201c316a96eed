//! Traffic for its own sake: what is sent arrives, and not faster than told.

use std::time::{Duration, Instant};

use weir_lab::{
    app::traffic::{Over, Sink, Traffic, pace::Rate},
    eventually,
};

const PATIENCE: Duration = Duration::from_secs(20);

fn traffic(sink: &Sink, over: Over) -> Traffic {
    Traffic {
        to: sink.address().to_string(),
        over,
        rate: Rate::bits_per_second(16e6),
        connections: 3,
        duration: Some(Duration::from_millis(700)),
    }
}

async fn sink() -> Sink {
    Sink::start(([127, 0, 0, 1], 0).into()).await.unwrap()
}

#[tokio::test]
async fn every_byte_over_tcp_arrives_and_the_rate_is_not_exceeded() {
    let sink = sink().await;
    let began = Instant::now();
    let sent = traffic(&sink, Over::Tcp).send().await.unwrap();
    // What is caught up at most, and a portion of each connection.
    let longest = began.elapsed() + Duration::from_millis(150);
    #[allow(clippy::cast_precision_loss, reason = "some megabytes")]
    let rate = sent as f64 * 8.0 / longest.as_secs_f64();
    assert!(sent > 0 && rate <= 16e6, "{sent} bytes, {rate} bit/s");
    eventually(PATIENCE, "all of it has come", || async {
        let received = sink.received();
        (received == sent).then_some(()).ok_or(received)
    })
    .await;
}

#[tokio::test]
async fn datagrams_go_out_whether_anybody_takes_them_or_not() {
    let taken = sink().await;
    let sent = traffic(&taken, Over::Udp).send().await.unwrap();
    eventually(PATIENCE, "some of it has come", || async {
        let received = taken.received();
        (received > 0 && received <= sent)
            .then_some(())
            .ok_or(received)
    })
    .await;
    let nobody = traffic(&taken, Over::Udp);
    drop(taken);
    assert!(nobody.send().await.unwrap() > 0);
}

#[tokio::test]
async fn who_receives_may_come_later() {
    let early = sink().await;
    let address = early.address();
    let traffic = Traffic {
        duration: None,
        ..traffic(&early, Over::Tcp)
    };
    drop(early);
    let sending = tokio::spawn(async move { traffic.send().await });
    let late = eventually(PATIENCE, "the port is free", || Sink::start(address)).await;
    eventually(PATIENCE, "it is found", || async {
        (late.received() > 0).then_some(()).ok_or("nothing yet")
    })
    .await;
    sending.abort();
}

#[tokio::test]
async fn connections_are_bounded() {
    let sink = sink().await;
    for connections in [0, 1001] {
        let traffic = Traffic {
            connections,
            ..traffic(&sink, Over::Tcp)
        };
        assert!(traffic.send().await.is_err(), "{connections}");
    }
}
