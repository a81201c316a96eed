//! What the operator is told, by a resolver that runs: services are put into its table, and its ports are real.

mod early;
mod reach;
mod usage;

use clap::Parser;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};

use weir_lab::ports::free as free_port;
use weir_wire::sniff;

use super::*;
use crate::{
    settings::ResolverArgs,
    view::{Change, PortView, Protocol, ServiceView},
};

const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: ResolverArgs,
}

struct Running {
    parts: Parts,
    allotted: Ports,
    settings: Settings,
}

impl Running {
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    async fn start_with(flags: &[&str]) -> Self {
        let internal = free_port().to_string();
        let typed = [
            "resolver",
            "--proxy-port",
            "0",
            "--internal-port",
            &internal,
        ];
        let cli = Cli::try_parse_from(typed.iter().chain(flags)).unwrap();
        let mut settings = Settings::new(cli.args, &|_| None).unwrap();
        settings.times.sync_period = Duration::ZERO;
        let parts = Parts::start(&settings, 100).await.unwrap();
        let allotted = parts.allotted();
        Self {
            parts,
            allotted,
            settings,
        }
    }

    fn apply(&mut self, change: Change) {
        self.allotted.apply(&self.parts.table.apply(&[change]));
    }

    async fn ask(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(path).await).unwrap()
    }

    async fn text(&self, path: &str) -> String {
        let port = self.settings.listen.internal_port;
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let read = timeout(PATIENCE, stream.read_to_string(&mut answer)).await;
        read.expect("an answer in time").unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        body.to_owned()
    }

    async fn services(&self) -> Value {
        self.ask("/crd-cache-status").await["services"].clone()
    }

    async fn generation(&self) -> u64 {
        let status = self.ask("/crd-cache-status").await;
        status["generation"].as_u64().unwrap()
    }

    /// Asks until this connection is seen, or is not.
    async fn seen(&self, stream: &TcpStream, expected: &Value) {
        let path = format!("/silent-connections?peer={}", stream.local_addr().unwrap());
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask(&path).await;
            if answer == *expected {
                return;
            }
            assert!(Instant::now() < deadline, "{answer} is not {expected}");
        }
    }
}

fn web(ports: &[(&str, Option<u16>, Protocol)], endpoints: &[SocketAddr]) -> Change {
    let port = |(place, (name, resolver_port, protocol)): (u16, &(&str, Option<u16>, Protocol))| {
        PortView {
            name: (*name).into(),
            number: 80 + place,
            resolver_port: *resolver_port,
            protocol: *protocol,
            endpoints: endpoints.into(),
            starting: Arc::default(),
        }
    };
    Change::Set(Arc::new(ServiceView {
        id: ServiceId::new("shop", "web"),
        held_by: None,
        target: "Deployment-web".into(),
        ports: (0..).zip(ports).map(port).collect(),
        probes: Arc::default(),
        behind: false,
        switched: false,
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_bound_ports_are_told_and_each_change_has_its_number() {
    let mut resolver = Running::start().await;
    let other = Running::start().await;
    let mut generations = vec![resolver.generation().await, other.generation().await];
    let mut is_new = async |resolver: &Running| {
        let generation = resolver.generation().await;
        assert!(!generations.contains(&generation));
        generations.push(generation);
    };
    assert_eq!(resolver.services().await, json!([]));

    // Given back below, when nobody but the resolver may take it.
    let missing = free_port();
    let taken = std::net::TcpListener::bind(("0.0.0.0", missing)).unwrap();
    let (free, passed) = (free_port(), free_port());
    let ports = [
        ("http", Some(free), Protocol::Http1),
        ("admin", Some(missing), Protocol::Sniff),
        ("tls", Some(passed), Protocol::Tls),
        ("shared", None, Protocol::Sniff),
    ];
    resolver.apply(web(&ports, &[]));
    let told = |ports: Value| json!([{"namespace": "shop", "service": "web", "ports": ports}]);
    let http = json!({"name": "http", "resolverPort": free});
    let tls = json!({"name": "tls", "resolverPort": passed});
    assert_eq!(resolver.services().await, told(json!([http, tls])));
    is_new(&resolver).await;

    drop(taken);
    resolver.allotted.open_missing();
    let admin = json!({"name": "admin", "resolverPort": missing});
    assert_eq!(resolver.services().await, told(json!([http, admin, tls])));
    is_new(&resolver).await;

    // Endpoints come and go often, and are nothing that is told here.
    let generation = resolver.generation().await;
    resolver.apply(web(&ports, &[([127, 0, 0, 1], 9).into()]));
    let path = format!("/crd-cache-status?unless={generation}");
    let unchanged =
        json!({"generation": generation, "unchanged": true, "synced": false, "draining": false});
    assert_eq!(resolver.ask(&path).await, unchanged);

    resolver.apply(web(&ports[1..], &[]));
    assert_eq!(resolver.services().await, told(json!([admin, tls])));
    is_new(&resolver).await;

    resolver.parts.readiness.set_synced();
    resolver.parts.leave(&resolver.settings).await;
    let status = resolver.ask("/crd-cache-status").await;
    assert_eq!(
        (&status["synced"], &status["draining"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(status["services"], told(json!([])), "all ports are closed");
    is_new(&resolver).await;

    resolver.apply(Change::Gone(ServiceId::new("shop", "web")));
    assert_eq!(resolver.services().await, json!([]));
    is_new(&resolver).await;
    for running in [resolver, other] {
        let _ = running.parts.stop.send(true);
    }
}

/// It listens on IPv6's `::` where there is IPv6, and so sees these clients' IPv4 addresses as IPv6 ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_connection_is_seen_while_it_is_silent_and_open_and_wakes_nobody() {
    let mut resolver = Running::start().await;
    let port = free_port();
    resolver.apply(web(&[("", Some(port), Protocol::Http1)], &[]));
    let connect = || async { TcpStream::connect(("127.0.0.1", port)).await.unwrap() };
    let (silent, mut talks, leaves) = (connect().await, connect().await, connect().await);
    let (seen, unseen) = (
        json!({"seen": true, "port": port, "by": "address"}),
        json!({"seen": false}),
    );
    for stream in [&silent, &talks, &leaves] {
        resolver.seen(stream, &seen).await;
    }
    talks.write_all(b"G").await.unwrap();
    resolver.seen(&talks, &unseen).await;
    let peer = leaves.local_addr().unwrap();
    drop(leaves);
    let rest = format!("/silent-connections?peer={peer}");
    let deadline = Instant::now() + PATIENCE;
    while resolver.ask(&rest).await != unseen {
        assert!(Instant::now() < deadline, "it is gone");
    }
    resolver.seen(&silent, &seen).await;
    let elsewhere = format!("192.0.2.1:{}", silent.local_addr().unwrap().port());
    let path = format!("/silent-connections?peer={elsewhere}");
    assert_eq!(resolver.ask(&path).await, unseen);
    let by_port = resolver.ask(&format!("{path}&port_only=true")).await;
    assert_eq!(by_port, json!({"seen": true, "port": port, "by": "port"}));
    assert_eq!(
        resolver.ask("/debug/held").await,
        json!([]),
        "nothing waits"
    );
    let _ = resolver.parts.stop.send(true);
}

/// The internal port answers, and the operator's silent connection is seen, wherever they come from.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_served_is_told_so_and_seen_all_the_same_while_silent() {
    let mut resolver = Running::start_with(&["--allow-from", "192.0.2.0/24,2001:db8::/32"]).await;
    let port = free_port();
    resolver.apply(web(&[("", Some(port), Protocol::Http1)], &[]));
    let seen = json!({"seen": true, "port": port, "by": "address"});
    let deadline = Instant::now() + PATIENCE;
    loop {
        let silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let path = format!("/silent-connections?peer={}", silent.local_addr().unwrap());
        // On a machine that is too slow to ask in time it says nothing.
        if resolver.ask(&path).await == seen {
            break;
        }
        assert!(Instant::now() < deadline, "this machine is too slow");
    }
    for port in [port, resolver.parts.guide.shared_port()] {
        let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        client
            .write_all(b"GET / HTTP/1.1\r\nhost: web.shop\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        let read = timeout(PATIENCE, client.read_to_string(&mut answer)).await;
        read.expect("an answer in time").unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert!(answer.contains("source_not_allowed"), "{answer}");
    }
    assert_eq!(resolver.ask("/debug/held").await, json!([]));
    let metrics = resolver.text("/metrics").await;
    let counted = metrics
        .lines()
        .find(|line| line.contains("source_not_allowed"));
    let count = counted.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    assert!(count >= Some(2), "{metrics}");
    let _ = resolver.parts.stop.send(true);
}

/// The operator's connection is open for 550 ms at most, and is asked for as soon as it is made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_asked_for_wakes_nobody_whatever_is_spoken() {
    let mut resolver = Running::start().await;
    for protocol in [
        Protocol::Http1,
        Protocol::Http2,
        Protocol::Tls,
        Protocol::Tcp,
        Protocol::Sniff,
    ] {
        let port = free_port();
        resolver.apply(web(&[("", Some(port), protocol)], &[]));
        let seen = json!({"seen": true, "port": port, "by": "address"});
        let deadline = Instant::now() + PATIENCE;
        loop {
            let began = Instant::now();
            let silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            resolver.seen(&silent, &seen).await;
            let asked = began.elapsed();
            tokio::time::sleep(Duration::from_millis(550)).await;
            resolver.seen(&silent, &seen).await;
            let held = resolver.ask("/debug/held").await;
            // On a machine that is too slow it says nothing.
            if asked < sniff::PATIENCE && began.elapsed() < sniff::PATIENCE_WITH_PROBES {
                assert_eq!(held, json!([]), "{protocol:?}");
                break;
            }
            assert!(Instant::now() < deadline, "this machine is too slow");
        }
    }
    let _ = resolver.parts.stop.send(true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_held_and_passed_through_and_both_can_be_seen() {
    let database = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = database.local_addr().unwrap();
    let echo = tokio::spawn(async move {
        let (mut stream, _) = database.accept().await.unwrap();
        let (mut read, mut write) = stream.split();
        tokio::io::copy(&mut read, &mut write).await.unwrap();
    });
    let mut resolver = Running::start().await;
    let port = free_port();
    let ports = [("db", Some(port), Protocol::Tcp)];
    // The same port spoke something else before.
    resolver.apply(web(&[("db", Some(port), Protocol::Http1)], &[]));
    resolver.apply(web(&ports, &[]));
    let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let held = resolver.ask("/debug/held").await;
        let told = &held[0];
        if (&told["requests"], &told["connections"]) == (&json!(1), &json!(1)) {
            assert_eq!(told["service"], "shop/web");
            break;
        }
        assert!(Instant::now() < deadline, "{held}");
    }
    resolver.apply(web(&ports, &[address]));
    let mut back = [0; 16];
    let read = timeout(PATIENCE, client.read_exact(&mut back)).await;
    read.expect("an echo in time").unwrap();
    assert_eq!(&back, b"GET / HTTP/1.1\r\n");
    drop(client);
    timeout(PATIENCE, echo).await.expect("it ends").unwrap();
    let expected = [
        "weir_resolver_passed_through{namespace=\"shop\",source=\"web\",protocol=\"tcp\",end=\"done\"} 1\n",
        "weir_resolver_passed_through_bytes{namespace=\"shop\",source=\"web\",direction=\"sent\"} 16\n",
        "weir_resolver_passed_through_bytes{namespace=\"shop\",source=\"web\",direction=\"received\"} 16\n",
        "weir_resolver_tunnels 0\n",
    ];
    loop {
        let metrics = resolver.text("/metrics").await;
        if expected.iter().all(|line| metrics.contains(line)) {
            break;
        }
        assert!(Instant::now() < deadline, "{metrics}");
    }
    let _ = resolver.parts.stop.send(true);
}
