//! The rate is kept whatever the server does, and a stall shows in every request that was meant for it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use weir_lab::{
    app::{App, Settings},
    load::{Load, Protocol, allow_many_connections},
};

use super::is_perfect;

/// The longest time for which this machine kept a thread waiting that was due, while something ran.
struct Machine {
    stop: Arc<AtomicBool>,
    watching: JoinHandle<Duration>,
}

impl Machine {
    fn watch() -> Self {
        const NAP: Duration = Duration::from_millis(5);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let watching = thread::spawn(move || {
            let mut worst = Duration::ZERO;
            while !stopped.load(Ordering::Relaxed) {
                let began = Instant::now();
                thread::sleep(NAP);
                worst = worst.max(began.elapsed().saturating_sub(NAP));
            }
            worst
        });
        Self { stop, watching }
    }

    fn worst_milliseconds(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let worst = self.watching.join().unwrap();
        u64::try_from(worst.as_millis()).unwrap()
    }
}

/// A server that answers at once, but for one second in which it answers nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stall_of_a_second_shows_in_all_requests_meant_for_it() {
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    const RATE: u32 = 100;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let mut answered = 0;
        while matches!(stream.read(&mut request).await, Ok(1..)) {
            // The first that is meant for the second second.
            if answered == RATE {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            answered += 1;
            if stream.write_all(ANSWER).await.is_err() {
                break;
            }
        }
    });
    let machine = Machine::watch();
    // One connection: a closed loop would send one request in the stall and find only that one slow.
    let load = Load::new(format!("http://{address}/")).rate(RATE);
    let load = load.connections(1).duration(Duration::from_secs(3));
    let report = load.run().await.unwrap();
    let machine = machine.worst_milliseconds();
    server.abort();

    assert!(is_perfect(&report), "{report}");
    assert_eq!(report.sent, 300);
    // A third of the requests was meant for the stall, and waited for half a second on average: a third of
    // them below 0.33 s, and so on. So a ninth of all waited for longer than 0.67 s, and a tenth for 0.7 s.
    let ms = |microseconds: u64| microseconds / 1000;
    assert!(ms(report.latency.max) > 900, "{report}");
    assert!(
        ms(report.latency.p90) > 500,
        "the stall is not in all of its requests: {report}"
    );
    // But for what the machine itself stalls.
    assert!(
        ms(report.latency.p50) < 300 + machine,
        "the stall is in requests before it: {report}, and {machine} ms of the machine"
    );
    let slowest = report.timeline.iter().map(|s| ms(s.slowest_microseconds));
    let slowest: Vec<_> = slowest.collect();
    assert!(
        slowest[1] > 900 && slowest[1] + machine > slowest[2],
        "{slowest:?}, and {machine} ms of the machine"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rate_is_kept_and_every_second_has_its_share() {
    let app = App::start(Settings::default()).await.unwrap();
    let load = Load::new(app.url("/healthz")).rate(250);
    let report = load
        .duration(Duration::from_millis(2500))
        .run()
        .await
        .unwrap();
    assert!(is_perfect(&report), "{report}");
    let sent: Vec<u64> = report.timeline.iter().map(|second| second.sent).collect();
    assert_eq!(sent, [250, 250, 125]);
    assert!(report.took_seconds >= 2.4, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_connections_at_once() {
    allow_many_connections().unwrap();
    let app = App::start(Settings::default()).await.unwrap();
    // Each is held for a second, and they come within one.
    let load = Load::new(app.url("/delay/1")).rate(2000).connections(2000);
    let load = load
        .protocol(Protocol::NewConnections)
        .time_out(Duration::from_mins(1));
    let report = load.duration(Duration::from_secs(1)).run().await.unwrap();
    assert!(is_perfect(&report), "{report}");
    assert_eq!(report.sent, 2000);
}

#[tokio::test]
async fn a_run_that_is_given_up_stops() {
    let app = App::start(Settings::default()).await.unwrap();
    let load = Load::new(app.url("/healthz"))
        .rate(10)
        .duration(Duration::from_hours(1));
    let run = tokio::time::timeout(Duration::from_millis(200), load.run());
    assert!(run.await.is_err());
    // Were its thread still running, the runtime would wait for it at the end of this test.
}
