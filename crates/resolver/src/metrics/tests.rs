//! What Prometheus would read: parsed strictly, with the names and labels that dashboards ask for.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use http::{Method, StatusCode};
use weir_wire::{
    backend::{Carried, End},
    sniff::Raw,
};

use super::*;

/// Series by name and labels.
type Samples = BTreeMap<(String, BTreeMap<String, String>), f64>;

/// A parser that takes nothing lightly: order, names, escapes, duplicates, histograms.
fn parse(text: &str) -> Samples {
    let mut samples = Samples::new();
    let mut types = BTreeMap::<String, String>::new();
    let mut helped = BTreeSet::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(!help.is_empty() && helped.insert(name.to_owned()), "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(helped.contains(name), "{line}");
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none());
        } else {
            let (series, value) = sample(line);
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .filter_map(|suffix| series.0.strip_suffix(suffix))
                .find(|name| types.get(*name).is_some_and(|kind| kind == "histogram"))
                .unwrap_or(&series.0);
            assert!(types.contains_key(family), "no type: {line}");
            assert!(samples.insert(series, value).is_none(), "twice: {line}");
        }
    }
    histograms_add_up(&samples);
    samples
}

fn sample(line: &str) -> ((String, BTreeMap<String, String>), f64) {
    let end = line.find(['{', ' ']).unwrap();
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").unwrap();
            assert!(is_name(label), "{line}");
            let (value, after) = quoted(after);
            assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
            let Some(next) = after.strip_prefix(',') else {
                rest = after.strip_prefix('}').unwrap();
                break;
            };
            rest = next;
        }
    }
    let value = rest.strip_prefix(' ').unwrap().parse().unwrap();
    ((name.to_owned(), labels), value)
}

fn is_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit())
}

fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.push(match characters.next().unwrap().1 {
                'n' => '\n',
                other @ ('\\' | '"') => other,
                other => panic!("escape {other}"),
            }),
            other => value.push(other),
        }
    }
    panic!("no end: {text}")
}

fn histograms_add_up(samples: &Samples) {
    for ((name, labels), value) in samples {
        if let Some(family) = name.strip_suffix("_bucket") {
            let mut rest = labels.clone();
            let le = rest.remove("le").unwrap();
            let count = samples[&(format!("{family}_count"), rest.clone())];
            assert!(samples.contains_key(&(format!("{family}_sum"), rest)));
            assert!(*value <= count);
            assert!(le != "+Inf" || *value >= count, "{family}");
        }
    }
}

fn view(namespace: &str, name: &str) -> ServiceView {
    ServiceView {
        id: ServiceId::new(namespace, name),
        held_by: None,
        target: "Deployment-web".into(),
        ports: Vec::new(),
        probes: Arc::default(),
        behind: false,
        switched: false,
    }
}

fn value(samples: &Samples, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let labels = labels
        .iter()
        .map(|(label, value)| ((*label).to_owned(), (*value).to_owned()))
        .collect();
    samples.get(&(name.to_owned(), labels)).copied()
}

#[test]
fn the_peers_series_are_there_with_their_labels() {
    let metrics = Metrics::new();
    let service = metrics.service(&view("shop", "web"));
    service.queued.inc();
    service.finished(&Method::GET, StatusCode::OK, Duration::from_millis(700));
    service.finished(&Method::GET, StatusCode::OK, Duration::from_secs(11));
    service.traffic_switched(true);
    metrics
        .service(&view("other", "web"))
        .traffic_switched(true);
    metrics.host_extracted(Extraction::Hit);
    metrics.host_extracted(Extraction::Error);
    metrics.operator_called("");
    metrics.operator_called("timeout");
    let samples = parse(&metrics.render());

    let of = [("source", "web"), ("namespace", "shop")];
    assert_eq!(
        value(&samples, "elasti_resolver_queued_count", &of),
        Some(1.0)
    );
    let request = |le: &'static str| {
        vec![
            ("source", "web"),
            ("target", "Deployment-web"),
            ("namespace", "shop"),
            ("method", "GET"),
            ("status", "OK"),
            ("le", le),
        ]
    };
    for (le, count) in [
        ("0.1", 0.0),
        ("0.5", 0.0),
        ("1", 1.0),
        ("2", 1.0),
        ("5", 1.0),
        ("10", 1.0),
        ("+Inf", 2.0),
    ] {
        let name = "elasti_resolver_incoming_requests_bucket";
        assert_eq!(value(&samples, name, &request(le)), Some(count), "{le}");
    }
    let sum = "elasti_resolver_incoming_requests_sum";
    assert_eq!(value(&samples, sum, &request("")[..5]), Some(11.7));
    for (how, count) in [("cache-hit", 1.0), ("cache-miss", 0.0), ("error", 1.0)] {
        let name = "elasti_resolver_host_extraction_count";
        assert_eq!(
            value(&samples, name, &[("extractionType", how)]),
            Some(count)
        );
    }
    let switched = [("source", "web"), ("enabled", "enabled")];
    let name = "elasti_resolver_traffic_switch_count";
    assert_eq!(value(&samples, name, &switched), Some(2.0), "added up");
    for error in ["", "timeout"] {
        let name = "elasti_resolver_operator_rpc_count";
        assert_eq!(value(&samples, name, &[("error", error)]), Some(1.0));
    }
}

#[test]
fn our_series_are_there() {
    let metrics = Metrics::new();
    metrics.held_requests.add(3);
    metrics.held_bytes.set(1 << 40);
    metrics.connections.inc();
    metrics.tunnels.dec();
    metrics.refused.add("overflow");
    metrics.refused.add("overflow");
    metrics.retries.add("refused");
    metrics.early_withdrawn.add(1);
    metrics.early_probes.add("failed");
    let service = metrics.service(&view("shop", "web"));
    service.early_ready.add(2);
    for phase in WakePhase::ALL {
        service.wake(phase, Duration::from_millis(60));
    }
    let samples = parse(&metrics.render());
    for (name, expected) in [
        ("weir_resolver_held_requests", 3.0),
        ("weir_resolver_held_bytes", 1_099_511_627_776.0),
        ("weir_resolver_connections", 1.0),
        ("weir_resolver_tunnels", -1.0),
        ("weir_resolver_early_withdrawn", 1.0),
    ] {
        assert_eq!(value(&samples, name, &[]), Some(expected), "{name}");
    }
    let early = [("namespace", "shop"), ("source", "web")];
    let name = "weir_resolver_early_ready";
    assert_eq!(value(&samples, name, &early), Some(2.0));
    let name = "weir_resolver_early_probes";
    assert_eq!(value(&samples, name, &[("result", "failed")]), Some(1.0));
    let reason = [("reason", "overflow")];
    assert_eq!(value(&samples, "weir_resolver_refused", &reason), Some(2.0));
    for phase in ["signalled", "ready", "first_byte"] {
        for (le, count) in [("0.05", 0.0), ("0.1", 1.0), ("60", 1.0)] {
            let labels = [
                ("phase", phase),
                ("namespace", "shop"),
                ("source", "web"),
                ("le", le),
            ];
            let name = "weir_resolver_wake_seconds_bucket";
            assert_eq!(value(&samples, name, &labels), Some(count));
        }
    }
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    assert_eq!(
        value(&samples, "weir_resolver_build_info", &version),
        Some(1.0)
    );
}

#[test]
fn odd_methods_and_statuses_stay_bounded() {
    let metrics = Metrics::new();
    let service = metrics.service(&view("shop", "web"));
    for number in 0..2000_u16 {
        let method: Method = format!("M{number}").parse().unwrap();
        let status = StatusCode::from_u16(100 + number % 900).unwrap();
        service.finished(&method, status, Duration::ZERO);
        service.finished(&"get".parse().unwrap(), status, Duration::ZERO);
        service.finished(&Method::GET, status, Duration::ZERO);
    }
    let samples = parse(&metrics.render());
    let name = "elasti_resolver_incoming_requests_count";
    let series: Vec<_> = samples
        .keys()
        .filter(|(series, _)| series == name)
        .collect();
    let of = |label: &str| -> BTreeSet<&str> {
        series
            .iter()
            .map(|(_, labels)| labels[label].as_str())
            .collect()
    };
    assert_eq!(of("method"), BTreeSet::from(["GET", "other"]));
    assert!(of("status").len() < 70 && of("status").contains("other"));
    assert!(series.len() < 140, "{}", series.len());
    let total: f64 = samples
        .iter()
        .filter(|((series, _), _)| series == name)
        .map(|(_, count)| count)
        .sum();
    assert!((total - 6000.0).abs() < f64::EPSILON, "{total}");
}

#[test]
fn a_service_keeps_its_counts_until_it_is_gone_and_labels_are_escaped() {
    let metrics = Metrics::new();
    let mut odd = view("shop", "a\"b\\c\nd");
    metrics.service(&odd).queued.inc();
    odd.target = "StatefulSet-x".into();
    let again = metrics.service(&odd);
    assert_eq!(again.queued.get(), 1);
    again.finished(&Method::GET, StatusCode::OK, Duration::ZERO);
    let text = metrics.render();
    let of = [("source", "a\"b\\c\nd"), ("namespace", "shop")];
    assert_eq!(
        value(&parse(&text), "elasti_resolver_queued_count", &of),
        Some(1.0)
    );
    assert!(text.contains("StatefulSet-x") && !text.contains("Deployment-web"));
    metrics.forget(&odd.id);
    again.finished(&Method::GET, StatusCode::OK, Duration::ZERO);
    parse(&metrics.render());
    assert!(!metrics.render().contains("shop"));
}

#[test]
fn connections_that_are_passed_through_are_counted_by_what_and_how() {
    let metrics = Metrics::new();
    let service = metrics.service(&view("shop", "db"));
    for (protocol, end, times) in [
        (Raw::Tcp, End::Done, 3),
        (Raw::Tls, End::Done, 2),
        (Raw::Tcp, End::Refused, 1),
    ] {
        for _ in 0..times {
            service.carried(&Carried {
                protocol,
                end,
                took: Duration::ZERO,
                sent: 10,
                received: 100,
            });
        }
    }
    let samples = parse(&metrics.render());
    let counted = |protocol, end| {
        let labels = [
            ("namespace", "shop"),
            ("source", "db"),
            ("protocol", protocol),
            ("end", end),
        ];
        value(&samples, "weir_resolver_passed_through", &labels)
    };
    assert_eq!(counted("tcp", "done"), Some(3.0));
    assert_eq!(counted("tls", "done"), Some(2.0));
    assert_eq!(counted("tcp", "refused"), Some(1.0));
    assert_eq!(counted("tls", "cut"), None);
    for (direction, bytes) in [("sent", 60.0), ("received", 600.0)] {
        let labels = [
            ("namespace", "shop"),
            ("source", "db"),
            ("direction", direction),
        ];
        let name = "weir_resolver_passed_through_bytes";
        assert_eq!(value(&samples, name, &labels), Some(bytes));
    }
}
