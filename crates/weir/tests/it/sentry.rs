//! Errors told to Sentry: a role that cannot start says so, in the form of an envelope, and a Sentry that does not answer
//! holds nobody up.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    process::{Command, Output},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// Some seconds are usual; the machine may be busy.
const PATIENCE: Duration = Duration::from_mins(1);

/// What was posted.
struct Posted {
    head: String,
    body: String,
}

/// A server that takes envelopes, or only connections.
fn sentry(answers: bool) -> (u16, mpsc::Receiver<Posted>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("no trouble with a socket");
    let port = listener
        .local_addr()
        .expect("no trouble with a socket")
        .port();
    let (tell, posted) = mpsc::channel();
    thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.expect("no trouble with a socket");
            if !answers {
                kept.push(stream);
                continue;
            }
            let mut reader = BufReader::new(stream.try_clone().expect("no trouble with a socket"));
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                reader
                    .read_line(&mut head)
                    .expect("no trouble with a socket");
            }
            let length = head.lines().find_map(|line| {
                line.to_lowercase()
                    .strip_prefix("content-length: ")?
                    .parse()
                    .ok()
            });
            let mut body = vec![0; length.expect("no trouble with a socket")];
            reader
                .read_exact(&mut body)
                .expect("no trouble with a socket");
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            stream.write_all(answer).expect("no trouble with a socket");
            let body = String::from_utf8(body).expect("no trouble with a socket");
            if tell.send(Posted { head, body }).is_err() {
                return;
            }
        }
    });
    (port, posted)
}

/// An operator that cannot start.
fn operator(dsn: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args([
            "operator",
            "--kubeconfig",
            "/nowhere",
            "--leader-elect=false",
        ])
        .args(["--internal-port=0", "--health-probe-bind-address=0"])
        .env("SENTRY_DSN", dsn)
        .env("SENTRY_ENVIRONMENT", "staging")
        .env("POD_NAME", "weir-operator-1")
        .output()
        .expect("weir runs")
}

#[test]
fn why_a_role_ends_is_told() {
    let (port, posted) = sentry(true);
    let output = operator(&format!("http://abc@127.0.0.1:{port}/42"));
    assert!(!output.status.success());
    let Posted { head, body } = posted.recv_timeout(PATIENCE).expect("an envelope");
    assert!(
        head.starts_with("POST /api/42/envelope/ HTTP/1.1\r\n"),
        "{head}"
    );
    let head = head.to_lowercase();
    assert!(
        head.contains("content-type: application/x-sentry-envelope\r\n"),
        "{head}"
    );
    assert!(
        head.contains("sentry_version=7") && head.contains("sentry_key=abc"),
        "{head}"
    );
    let lines: Vec<Value> = body
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let [envelope, item, event] = &lines[..] else {
        panic!("{body}");
    };
    assert_eq!(envelope["event_id"], event["event_id"]);
    assert_eq!(item["type"], "event");
    assert_eq!(event["level"], "fatal");
    assert_eq!(event["environment"], "staging");
    assert_eq!(event["server_name"], "weir-operator-1");
    assert_eq!(event["tags"]["role"], "operator");
    let message = event["message"]["formatted"].as_str().expect("text");
    assert!(message.contains("/nowhere"), "{message}");
    // The log says the same.
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(log.contains(message), "{log}");
}

#[test]
fn a_sentry_that_does_not_answer_holds_nobody_up() {
    let (port, _) = sentry(false);
    let began = Instant::now();
    let output = operator(&format!("http://abc@127.0.0.1:{port}/42"));
    assert!(!output.status.success());
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
}

#[test]
fn a_bad_address_is_refused_without_telling_the_key() {
    let output = operator("https://abc@sentry.example/web");
    assert!(!output.status.success());
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(
        log.contains("SENTRY_DSN") && log.contains("number of a project"),
        "{log}"
    );
    assert!(!log.contains("abc"), "{log}");
}

#[test]
fn commands_that_are_no_roles_do_not_look_at_it() {
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .arg("crds")
        .env("SENTRY_DSN", "nonsense")
        .output()
        .expect("weir runs");
    assert!(output.status.success());
}
