//! How it starts slowly, is overwhelmed, stops well and ends badly.

use std::{
    fs, io,
    process::Stdio,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
    time::timeout,
};
use weir_lab::{app::Settings, eventually, load::Load};

use super::start;
use crate::client::get;

/// What takes a moment may take longer on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn it_is_ready_only_when_it_says_so() {
    let after = async |ready_delay: Duration| {
        let settings = Settings {
            ready_delay,
            ..Settings::default()
        };
        start(settings).await
    };
    let slow = after(Duration::from_hours(1)).await;
    assert_eq!(get(slow.http(), "/ready").await.status, 503);
    assert_eq!(get(slow.http(), "/healthz").await.status, 200);
    let quick = after(Duration::from_millis(300)).await;
    eventually(PATIENCE, "it is ready", || async {
        match get(quick.http(), "/ready").await.status {
            status if status == 200 => Ok(()),
            status => Err(status),
        }
    })
    .await;
}

#[tokio::test]
async fn a_stopping_server_finishes_what_is_under_way_and_refuses_the_rest() {
    let app = start(Settings::default()).await;
    let address = app.http();
    // It is answered when all of its body is there, which is for us to say.
    let mut slow = TcpStream::connect(address).await.unwrap();
    let head = b"POST /mirror HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nhalf ";
    slow.write_all(head).await.unwrap();
    eventually(PATIENCE, "the request has come", || async {
        let text = get(address, "/metrics").await.text();
        if text.contains("lab_requests_in_flight 1\n") {
            Ok(())
        } else {
            Err(text)
        }
    })
    .await;
    let stop = tokio::spawn(app.stop());
    eventually(PATIENCE, "nobody else is let in", || async {
        match TcpStream::connect(address).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    assert!(!stop.is_finished(), "one is under way");
    slow.write_all(b"whole").await.unwrap();
    let mut got = String::new();
    slow.read_to_string(&mut got).await.unwrap();
    assert!(got.ends_with("half whole"), "{got}");
    timeout(PATIENCE, stop).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_stopping_server_that_lingers_answers_once_more_and_says_that_it_was_the_last() {
    let app = start(Settings {
        linger: Duration::from_secs(30),
        ..Settings::default()
    })
    .await;
    let mut kept = TcpStream::connect(app.http()).await.unwrap();
    let request = b"GET /bytes/3 HTTP/1.1\r\nhost: x\r\n\r\n";
    kept.write_all(request).await.unwrap();
    let mut first = [0; 1024];
    let read = kept.read(&mut first).await.unwrap();
    let first = String::from_utf8_lossy(&first[..read]).into_owned();
    assert!(!first.contains("connection: close"), "{first}");
    app.stopper()();
    eventually(Duration::from_secs(10), "its port is closed", || async {
        match TcpStream::connect(app.http()).await {
            Err(_) => Ok(()),
            Ok(_) => Err("somebody listens"),
        }
    })
    .await;
    kept.write_all(request).await.unwrap();
    let mut last = Vec::new();
    let reading = timeout(Duration::from_secs(10), kept.read_to_end(&mut last));
    reading.await.expect("it is closed").unwrap();
    let last = String::from_utf8_lossy(&last);
    assert!(last.starts_with("HTTP/1.1 200"), "{last}");
    assert!(last.contains("connection: close"), "{last}");
    assert_eq!(
        timeout(Duration::from_secs(10), app.ended()).await,
        Ok(None)
    );
}

#[tokio::test]
async fn a_crash_answers_nobody_and_says_why() {
    let app = start(Settings::default()).await;
    let mut other = TcpStream::connect(app.http()).await.unwrap();
    other
        .write_all(b"GET /delay/9 HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let mut crashing = TcpStream::connect(app.http()).await.unwrap();
    crashing
        .write_all(b"GET /crash HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(app.ended().await.unwrap(), "a request told it to");
    for mut stream in [other, crashing] {
        let mut got = Vec::new();
        // Closed or reset, but without a word.
        let _ = stream.read_to_end(&mut got).await;
        assert!(got.is_empty());
    }
}

#[tokio::test]
async fn with_few_places_requests_wait_for_each_other() {
    let app = start(Settings {
        max_concurrent: Some(2),
        ..Settings::default()
    })
    .await;
    let began = Instant::now();
    let load = Load::new(app.url("/delay/0.2")).rate(1000);
    let report = load.duration(Duration::from_millis(6)).run().await.unwrap();
    assert_eq!((report.outcomes.ok, report.intended), (6, 6), "{report}");
    assert!(
        began.elapsed() >= Duration::from_millis(600),
        "three pairs, one after another"
    );
}

#[tokio::test]
async fn too_many_at_once_bring_it_down() {
    let app = start(Settings {
        max_concurrent: Some(1),
        fall_over_at: Some(5),
        ..Settings::default()
    })
    .await;
    let load = Load::new(app.url("/delay/60")).rate(1000);
    let load = tokio::spawn(load.duration(Duration::from_millis(10)).run());
    assert_eq!(
        app.ended().await.unwrap(),
        "it fell over with 5 requests at once"
    );
    let report = load.await.unwrap().unwrap();
    assert_eq!((report.outcomes.ok, report.sent), (0, 10), "{report}");
    assert!(report.adds_up());
}

/// The program itself, on a free port, which it says.
async fn program(arguments: &[&str]) -> (Child, std::net::SocketAddr) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab-app"));
    command.args(["echo", "--listen=127.0.0.1:0", "--tcp-listen=127.0.0.1:0"]);
    command
        .args(arguments)
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).await.unwrap();
    // Kept open: it says more when it stops.
    child.stdout = Some(stdout.into_inner());
    let address = line.split(&[' ', ','][..]).nth(2).unwrap();
    (child, address.parse().unwrap())
}

fn terminate(child: &Child) {
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

#[tokio::test]
async fn on_sigterm_the_program_finishes_or_exits_at_once_if_so_told() {
    let (mut child, address) = program(&[]).await;
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET /drip?bytes=3&seconds=0.3 HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    slow.readable().await.unwrap();
    terminate(&child);
    let mut got = Vec::new();
    let reading = timeout(PATIENCE, slow.read_to_end(&mut got));
    reading.await.unwrap().unwrap();
    let got = String::from_utf8_lossy(&got);
    let (head, body) = got.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-length: 3"), "{got}");
    assert_eq!(body.chars().count(), 3, "{got}");
    let status = timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
    assert!(status.success(), "{status}");

    let (mut child, address) = program(&["--exit-at-once-on-sigterm"]).await;
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET /delay/60 HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    terminate(&child);
    let status = timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn when_the_program_crashes_its_status_says_so() {
    let (mut child, _) = program(&["--crash-after=50ms"]).await;
    let status = timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[tokio::test]
async fn pause_waits_until_it_is_told_to_end() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab-app"));
    let mut child = command.arg("pause").kill_on_drop(true).spawn().unwrap();
    let waited = timeout(Duration::from_millis(300), child.wait()).await;
    assert!(waited.is_err(), "it has ended by itself");
    // Before it listens for the signal, that would end it as any program.
    eventually(PATIENCE, "it listens for SIGTERM", || async {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id().unwrap())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
        let is_caught = caught & (1 << (rustix::process::Signal::TERM.as_raw() - 1)) != 0;
        if is_caught { Ok(()) } else { Err(status) }
    })
    .await;
    terminate(&child);
    let status = timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
    assert!(status.success(), "{status}");
}
