//! Files that can be used, and what is said of those that cannot.

use std::{error::Error, fmt::Write};

use super::*;
use crate::view::Protocol;

fn views(text: &str) -> Vec<ServiceView> {
    parse(Path::new("targets.yaml"), text).unwrap_or_else(|error| panic!("{}", told(&error)))
}

fn told(error: &TargetsError) -> String {
    let mut text = error.to_string();
    if let Some(source) = error.source() {
        let _ = write!(text, ": {source}");
    }
    text
}

const WEB: &str = r#"
services:
- namespace: shop
  name: web
  target: Deployment-web
  switched: true
  probeResponse:
  - {path: {value: /healthz}, response: {status: 200, body: ok}}
  ports:
  - {number: 80, resolverPort: 10240, protocol: http2, endpoints: ["127.0.0.1:8080", "[::1]:8080", "127.0.0.1:8080"]}
  - {name: admin, number: 81}
  - {name: tls, number: 443, protocol: tls}
  - {name: db, number: 5432, protocol: tcp}
- {namespace: shop, name: other, ports: [{number: 80}]}
"#;

#[test]
fn everything_that_may_stand_there() {
    let views = views(WEB);
    let [web, other] = views.as_slice() else {
        panic!("{views:?}")
    };
    assert_eq!(web.id, ServiceId::new("shop", "web"));
    assert!(web.switched && !web.probes.is_empty() && !other.switched);
    assert_eq!((&*web.target, &*other.target), ("Deployment-web", "other"));
    assert_eq!(web.ports[0].protocol, Protocol::Http2);
    assert_eq!(web.ports[0].resolver_port, Some(10240));
    assert_eq!(web.ports[0].endpoints.len(), 2);
    assert_eq!(web.ports[1].protocol, Protocol::Sniff);
    assert!(web.ports[1].endpoints.is_empty());
    assert_eq!(web.ports[2].protocol, Protocol::Tls);
    assert_eq!(web.ports[3].protocol, Protocol::Tcp);
}

#[test]
fn json_is_read_as_well() {
    let json = r#"{"services": [{"namespace": "a", "name": "b", "ports": [{"number": 1}]}]}"#;
    assert_eq!(views(json).len(), 1);
    assert!(views("services: []").is_empty());
}

#[test]
fn what_is_wrong_is_named() {
    for (from, to, parts) in [
        ("name: web", "nam: web", &["line 4", "nam"][..]),
        (
            "number: 80",
            "number: 80, colour: red",
            &["line 10", "colour"],
        ),
        ("number: 80", "number: 80000", &["line 10"]),
        ("number: 80", "number: 0", &["services[0].ports[0].number"]),
        ("10240", "0", &["services[0].ports[0].resolverPort"]),
        ("http2", "spdy", &["line 10", "spdy"]),
        ("name: web", "name: Web", &["services[0].name", "`W`"]),
        (
            "name: other",
            "name: web",
            &["services[1]", "services[0] already"],
        ),
        ("number: 81", "number: 80", &["services[0].ports[1].number"]),
        ("{name: admin, ", "{", &["services[0].ports[1].name"]),
        (
            "number: 81",
            "number: 81, resolverPort: 10240",
            &["services[0].ports[0] already"],
        ),
        (
            "[::1]:8080",
            "localhost:8080",
            &["services[0].ports[0].endpoints[1]", "127.0.0.1:8080"],
        ),
        ("[::1]:8080", "127.0.0.1:0", &["endpoints[1]"]),
        ("ports: [{number: 80}]", "ports: []", &["services[1].ports"]),
        (
            "{value: /healthz}",
            "{type: RegularExpression, value: '('}",
            &["services[0]", "probeResponse[0]"],
        ),
        ("services:", "services", &["targets.yaml"]),
    ] {
        assert!(WEB.contains(from), "{from}");
        let text = WEB.replacen(from, to, 1);
        let error = told(&parse(Path::new("targets.yaml"), &text).unwrap_err());
        for part in parts {
            assert!(error.contains(part), "{part:?} is not in {error:?}");
        }
    }
    let missing = read(Path::new("/nowhere/targets.yaml")).unwrap_err();
    assert!(told(&missing).contains("/nowhere/targets.yaml"));
}

#[test]
fn a_file_may_be_as_long_as_a_cluster_is_large() {
    let mut text = "services:\n".to_owned();
    for number in 0..10_000 {
        let _ = writeln!(
            text,
            "- {{namespace: a, name: s{number}, ports: [{{number: 80, resolverPort: {}, endpoints: ['10.0.0.1:80', '10.0.0.2:80']}}]}}",
            10_240 + number
        );
    }
    assert_eq!(views(&text).len(), 10_000);
}

#[test]
fn a_second_reading_tells_only_what_changed() {
    let old = views(WEB);
    assert_eq!(diff(&old, &old), []);
    assert_eq!(diff(&[], &old).len(), 2);
    let gone = |name: &str| Change::Gone(ServiceId::new("shop", name));
    assert_eq!(diff(&old, &[]), [gone("web"), gone("other")]);
    let new = views(&WEB.replace("127.0.0.1:8080", "127.0.0.1:8081"));
    assert_eq!(diff(&old, &new), [Change::Set(Arc::new(new[0].clone()))]);
    // The port moves from web to other: it is given up before it is taken.
    let moved = WEB.replace("resolverPort: 10240, ", "").replace(
        "ports: [{number: 80}]",
        "ports: [{number: 80, resolverPort: 10240}]",
    );
    let reversed: Vec<ServiceView> = views(&moved).into_iter().rev().collect();
    let changes = diff(&old, &reversed);
    assert!(
        matches!(&changes[0], Change::Set(view) if &*view.id.name == "web"),
        "{changes:?}"
    );
}
