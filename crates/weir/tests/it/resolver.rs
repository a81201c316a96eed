//! `weir resolver` as a process: services from a file, requests held and forwarded, its end, and what it says to a
//! user who got something wrong.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use weir_lab::{
    app::{App, Settings},
    ports::free as free_port,
};

use crate::weir;

const PATIENCE: Duration = Duration::from_mins(1);

/// A resolver that runs, with its file of targets.
struct Resolver {
    process: Child,
    targets: PathBuf,
    proxy: SocketAddr,
    internal: SocketAddr,
    _directory: TempDir,
}

impl Resolver {
    fn start(services: &Value, more: &[&str]) -> Self {
        Self::start_with(services, 0, 0, more)
    }

    fn start_with(services: &Value, proxy: u16, internal: u16, more: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let targets = directory.path().join("targets.json");
        write(&targets, services);
        let file = targets.to_str().expect("text");
        let (proxy, internal) = (proxy.to_string(), internal.to_string());
        let mut arguments = vec!["--log-format", "json", "resolver", "--targets", file];
        arguments.extend([
            "--bind-address",
            "127.0.0.1",
            "--proxy-port",
            &proxy,
            "--internal-port",
            &internal,
        ]);
        arguments.extend(more);
        let mut process = weir(&arguments)
            .stderr(Stdio::piped())
            .spawn()
            .expect("weir runs");
        let log = process.stderr.take().expect("a pipe");
        let mut lines = BufReader::new(log).lines();
        let listens: Value = lines
            .by_ref()
            .map_while(Result::ok)
            .filter_map(|line| serde_json::from_str(&line).ok())
            .find(|line: &Value| line["message"] == "the resolver listens")
            .expect("it says where it listens");
        // Read on, or the pipe fills and the resolver stops.
        thread::spawn(move || lines.for_each(drop));
        let address = |name: &str| {
            let port = listens[name].as_u64().expect("a port");
            SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).expect("a port")))
        };
        let resolver = Self {
            proxy: address("proxy"),
            internal: address("internal"),
            process,
            targets,
            _directory: directory,
        };
        eventually("it is ready", || resolver.ask("/readyz").0 == 200);
        resolver
    }

    fn change(&self, services: &Value) {
        write(&self.targets, services);
        self.signal("HUP");
    }

    fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        let sent = std::process::Command::new("kill")
            .args(["-s", name, &pid])
            .status();
        assert!(sent.expect("kill runs").success());
    }

    /// Status and body from the internal port.
    fn ask(&self, path: &str) -> (u16, String) {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let answer = say(self.internal, &request);
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let body = answer
            .split_once("\r\n\r\n")
            .map(|(_, body)| body.to_owned());
        (status.unwrap_or(0), body.unwrap_or_default())
    }

    fn held(&self) -> u64 {
        let held: Value = serde_json::from_str(&self.ask("/debug/held").1).expect("JSON");
        held.as_array()
            .expect("a list")
            .iter()
            .filter_map(|it| it["requests"].as_u64())
            .sum()
    }

    fn ended(mut self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.process.try_wait().expect("a child") {
                return status.success();
            }
            thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn write(path: &Path, services: &Value) {
    fs::write(path, json!({ "services": services }).to_string()).expect("written");
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Sends this and reads until the other side closes. Empty if it does not listen.
fn say(to: SocketAddr, request: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(to) else {
        return String::new();
    };
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(path: &str, host: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")
}

fn web(port: u16, endpoints: &[SocketAddr]) -> Value {
    json!([{"namespace": "default", "name": "web",
        // Said, so that a client that takes its time on a busy machine is not taken for one that waits for the server.
        "ports": [{"number": 80, "resolverPort": port, "protocol": "http1", "endpoints": endpoints}],
        "probeResponse": [{"path": {"type": "Exact", "value": "/alive"}, "response": {"status": 200, "body": "yes"}}]}])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_too_early_is_held_and_served_when_the_endpoint_is_there() {
    let app = App::start(Settings::default()).await.expect("a server");
    let port = free_port();
    let resolver = Resolver::start(&web(port, &[]), &[]);
    let own_port = SocketAddr::from(([127, 0, 0, 1], port));
    // By the port, whatever the host; and by the host, on the shared port.
    let by_port = thread::spawn(move || say(own_port, &get("/bytes/5", "any.example")));
    let proxy = resolver.proxy;
    let by_host =
        thread::spawn(move || say(proxy, &get("/bytes/5", "web.default.svc.cluster.local:80")));
    eventually("both are held", || resolver.held() == 2);
    let (_, queue) = resolver.ask("/queue-status?namespace=default&service=web");
    assert_eq!(queue.trim(), r#"{"queueStatus":1}"#);
    // A probe is answered meanwhile, without waiting; the body only to who wants one.
    let probe = say(own_port, &get("/alive", "x"));
    assert!(
        probe.starts_with("HTTP/1.1 200") && probe.ends_with("yes"),
        "{probe}"
    );
    let head = say(own_port, &get("/alive", "x").replace("GET", "HEAD"));
    assert!(
        head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"),
        "{head}"
    );

    resolver.change(&web(port, &[app.http()]));
    for held in [by_port, by_host] {
        let answer = held.join().expect("answered");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    // It is counted when it is over, which its client may know first.
    let count = r#"elasti_resolver_incoming_requests_count{source="web",target="web",namespace="default",method="GET",status="OK"}"#;
    eventually("they are counted and held no more", || {
        resolver.held() == 0 && resolver.ask("/metrics").1.contains(count)
    });
    // Awake, the probe's path is the pod's own.
    assert!(say(own_port, &get("/alive", "x")).starts_with("HTTP/1.1 404"));
}

#[tokio::test(flavor = "multi_thread")]
async fn told_to_end_it_serves_what_it_holds_and_then_ends() {
    let app = App::start(Settings::default()).await.expect("a server");
    let port = free_port();
    let resolver = Resolver::start(&web(port, &[]), &["--sync-period", "300ms"]);
    let own_port = SocketAddr::from(([127, 0, 0, 1], port));
    let held = thread::spawn(move || say(own_port, &get("/bytes/5", "x")));
    eventually("it is held", || resolver.held() == 1);
    resolver.signal("TERM");
    eventually("it is not ready", || resolver.ask("/readyz").0 == 503);
    // Services are still followed: the endpoint comes after the signal.
    resolver.change(&web(port, &[app.http()]));
    let answer = held.join().expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    assert!(resolver.ended(), "it ends well, and in time");
}

#[test]
fn its_own_port_is_not_taken_for_a_services() {
    let resolver = Resolver::start(&json!([]), &[]);
    let proxy = resolver.proxy;
    resolver.change(&web(proxy.port(), &[]));
    eventually("it is not ready", || resolver.ask("/readyz").0 == 503);
    resolver.change(&json!([]));
    eventually("it is ready again", || resolver.ask("/readyz").0 == 200);
    let answer = say(proxy, &get("/", "web.default"));
    assert!(
        answer.starts_with("HTTP/1.1 404"),
        "it stays open: {answer}"
    );
}

/// Two resolvers as a pod has them.
fn siblings(services: &Value) -> (Resolver, Resolver) {
    let (proxy, one, other) = (free_port(), free_port(), free_port());
    let start = |internal: u16, sibling: u16| {
        let sibling = sibling.to_string();
        Resolver::start_with(services, proxy, internal, &["--sibling-port", &sibling])
    };
    (start(one, other), start(other, one))
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_refused_when_one_of_two_in_a_pod_is_killed() {
    let app = App::start(Settings::default()).await.expect("a server");
    let port = free_port();
    let (one, mut other) = siblings(&web(port, &[app.http()]));
    let own_port = SocketAddr::from(([127, 0, 0, 1], port));
    for to in [own_port, one.proxy] {
        let served = |resolver: &Resolver| {
            let metrics = resolver.ask("/metrics?alone=true").1;
            metrics.contains("elasti_resolver_incoming_requests_count")
        };
        eventually("both take connections", || {
            say(to, &get("/bytes/5", "web.default")).starts_with("HTTP/1.1 200")
                && served(&one)
                && served(&other)
        });
    }

    other.process.kill().expect("killed");
    other.process.wait().expect("gone");
    for _ in 0..200 {
        for to in [own_port, one.proxy] {
            let answer = say(to, &get("/bytes/5", "web.default"));
            assert!(answer.starts_with("HTTP/1.1 200"), "{to}: {answer:?}");
        }
    }
    let (status, known) = one.ask("/crd-cache-status");
    assert!(status == 200 && known.contains("\"web\""), "{known}");
}

#[test]
fn one_of_two_answers_for_both() {
    let port = free_port();
    let (one, other) = siblings(&web(port, &[]));
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    // Silent connections come to either; who asks for one is told by either.
    for _ in 0..32 {
        let silent = TcpStream::connect(to).expect("it listens");
        let peer = silent.local_addr().expect("an address");
        let path = format!("/silent-connections?peer={peer}");
        for resolver in [&one, &other] {
            eventually("the connection is seen", || {
                resolver.ask(&path).1.contains("\"seen\":true")
            });
        }
    }
    // So do requests that are held.
    let waiting: Vec<TcpStream> = (0..32)
        .map(|_| {
            let mut stream = TcpStream::connect(to).expect("it listens");
            let request = get("/bytes/5", "web.default");
            stream.write_all(request.as_bytes()).expect("sent");
            stream
        })
        .collect();
    for resolver in [&one, &other] {
        eventually("all are held", || resolver.held() == 32);
        // A sibling that does not answer in time is left out, so each of these may take another look.
        eventually("it is said that some wait", || {
            let path = "/queue-status?namespace=default&service=web";
            resolver.ask(path).1.contains(":1")
        });
        let mut metrics = String::new();
        eventually("its metrics are those of both", || {
            metrics = resolver.ask("/metrics").1;
            metrics.contains("process=\"sibling\"")
        });
        let families = metrics.lines().filter(|line| line.starts_with("# TYPE"));
        let mut families: Vec<&str> = families.collect();
        let count = families.len();
        families.sort_unstable();
        families.dedup();
        assert_eq!(families.len(), count, "no family is there twice");
    }
    // A service is known when both know it.
    let known = |resolver: &Resolver| resolver.ask("/crd-cache-status").1.contains("\"web\"");
    eventually("both know it", || known(&one) && known(&other));
    other.change(&json!([]));
    eventually("one of them has forgotten it", || !known(&one));
    drop(waiting);
}

#[test]
fn at_its_limit_what_is_held_is_refused_with_a_reason() {
    let port = free_port();
    let limits = [
        "--termination-grace",
        "6s",
        "--sync-period",
        "100ms",
        "--max-held-per-service",
        "1",
    ];
    let resolver = Resolver::start(&web(port, &[]), &limits);
    let own_port = SocketAddr::from(([127, 0, 0, 1], port));
    let held = thread::spawn(move || say(own_port, &get("/", "x")));
    eventually("it is held", || resolver.held() == 1);
    let refused = say(own_port, &get("/", "x"));
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(
        refused.contains("retry-after: ") && refused.contains("full_requests"),
        "{refused}"
    );
    resolver.signal("TERM");
    let answer = held.join().expect("answered");
    assert!(
        answer.starts_with("HTTP/1.1 503") && answer.contains("leaving"),
        "{answer}"
    );
    assert!(resolver.ended());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_got_worse_is_left_aside() {
    let app = App::start(Settings::default()).await.expect("a server");
    let port = free_port();
    let resolver = Resolver::start(&web(port, &[app.http()]), &[]);
    let own_port = SocketAddr::from(([127, 0, 0, 1], port));
    fs::write(&resolver.targets, "services: [{name").expect("written");
    resolver.signal("HUP");
    // A later change that is carried out shows that the bad one was looked at before.
    let other = free_port();
    let answer = say(own_port, &get("/bytes/1", "x"));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    resolver.change(&web(other, &[app.http()]));
    let new_port = SocketAddr::from(([127, 0, 0, 1], other));
    eventually("the new port is open", || {
        say(new_port, &get("/bytes/1", "x")).starts_with("HTTP/1.1 200")
    });
    eventually("the old port is closed", || {
        TcpStream::connect(own_port).is_err()
    });
}

#[test]
fn unknown_targets_are_told_so_and_reach_nothing() {
    let resolver = Resolver::start(&json!([]), &[]);
    for host in [
        "web.default",
        "web",
        "example.com",
        "127.0.0.1",
        "a@web.default",
        "",
    ] {
        let answer = say(resolver.proxy, &get("/", host));
        assert!(answer.starts_with("HTTP/1.1 404"), "{host}: {answer}");
        assert!(answer.contains("\"reason\""), "{answer}");
    }
    let connect = say(
        resolver.proxy,
        "CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\nconnection: close\r\n\r\n",
    );
    assert!(connect.starts_with("HTTP/1.1 405"), "{connect}");
}

#[test]
fn who_got_something_wrong_is_told_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").port().to_string();
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).expect("written");
        path.to_str().expect("text").to_owned()
    };
    let (empty, good) = (file("empty", ""), file("good", "services: []"));
    let unknown = file("unknown", "services: [{namespace: a, name: b, prots: []}]");
    let cases: [(&[&str], &str); 6] = [
        (&["--targets", "/nowhere"], "/nowhere"),
        (&["--targets", &empty], "services"),
        (&["--targets", &unknown], "prots"),
        (
            &[
                "--targets",
                &good,
                "--bind-address",
                "127.0.0.1",
                "--proxy-port",
                &taken,
            ],
            "--proxy-port",
        ),
        (
            &["--targets", &good, "--hold-timeout", "soon"],
            "--hold-timeout",
        ),
        (
            &["--targets", &good, "--resolver-may-scale"],
            "needs a cluster",
        ),
    ];
    for (arguments, expected) in cases {
        let mut all = vec!["resolver"];
        all.extend(arguments);
        let output = weir(&all).output().expect("weir runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}
