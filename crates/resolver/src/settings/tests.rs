//! What was typed, and what it means.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: ResolverArgs,
}

/// The environment of the test itself must not matter: variables are given as flags or through `environment`.
fn settings(typed: &[&str], environment: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    let cli = Cli::try_parse_from([&["resolver"], typed].concat()).unwrap();
    Settings::new(cli.args, &|name| {
        let found = environment.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn the_defaults_are_the_contracts() {
    let settings = settings(&[], &[]).unwrap();
    assert_eq!(settings.listen.proxy_port, 8012);
    assert_eq!(settings.listen.internal_port, 8013);
    assert!(settings.listen.per_service_ports && settings.h2c && !settings.access_log);
    assert!(settings.early_readiness);
    assert_eq!(settings.times.hold, Duration::from_mins(10));
    assert_eq!(settings.times.sync_period, Duration::from_secs(3));
    assert_eq!(settings.times.termination_grace, Duration::from_secs(630));
    assert_eq!(settings.limits.held, 20_000);
    assert_eq!(settings.limits.held_per_service, 10_000);
    assert_eq!(settings.limits.held_bytes, 256 << 20);
    assert_eq!(settings.limits.body_replay, 1 << 20);
    let header = settings.header_for_host.unwrap();
    assert_eq!(header.as_str(), "x-envoy-decorator-operation");
    assert_eq!(settings.operator, None);
    let everything = Source::Cluster {
        kubeconfig: None,
        namespaces: Vec::new(),
    };
    assert_eq!(settings.source, everything);
    assert_eq!(settings.notes.len(), 1, "{:?}", settings.notes);
}

#[test]
fn the_operator_is_found_by_url_or_by_its_service() {
    let url =
        |typed: &[&str]| settings(typed, &[]).map(|all| all.operator.unwrap().url.to_string());
    let by_service = ["--operator-namespace", "elasti", "--operator-service", "op"];
    assert_eq!(
        url(&by_service).unwrap(),
        "http://op.elasti.svc.cluster.local:8013/"
    );
    let elsewhere = [&by_service[..], &["--cluster-domain", "Corp.Example."]].concat();
    assert_eq!(
        url(&elsewhere).unwrap(),
        "http://op.elasti.svc.corp.example:8013/"
    );
    assert_eq!(
        url(&["--operator-url", "http://[::1]:1"]).unwrap(),
        "http://[::1]:1/"
    );
    assert_eq!(url(&by_service[..2]), Err(SettingsError::HalfAnOperator));
    for bad in [
        "localhost:1",
        "ftp://a",
        "http://a/b",
        "http://a?b",
        "http://",
        "",
        "a b",
    ] {
        let error = url(&["--operator-url", bad]);
        assert_eq!(error, Err(SettingsError::OperatorUrl(bad.to_owned())));
    }
    let tls = url(&["--operator-url", "https://a"]).unwrap_err();
    assert!(tls.to_string().contains("http://"));
}

#[test]
fn what_cannot_be_is_refused() {
    let alone = settings(&["--resolver-may-scale"], &[]).unwrap_err();
    assert_eq!(alone, SettingsError::MayScaleWithoutOperator);
    let typed = [
        "--resolver-may-scale",
        "--operator-url",
        "http://a",
        "--targets",
        "b",
    ];
    let file = settings(&typed, &[]).unwrap_err();
    assert_eq!(file, SettingsError::MayScaleFile);
    let error = settings(&["--proxy-port", "8013"], &[]).unwrap_err();
    assert_eq!(error, SettingsError::SamePort(8013));
    assert!(settings(&["--proxy-port", "0", "--internal-port", "0"], &[]).is_ok());
    for typed in [
        &["--hold-timeout", "0"][..],
        &["--hold-timeout", "soon"],
        &["--max-held", "0"],
        &["--max-held-bytes", "much"],
        &["--header-for-host", "a b"],
        &["--threads", "0"],
        &["--scale-after", "0"],
        &["--bind-address", "here"],
        &["--targets", "a", "--kubeconfig", "b"],
    ] {
        let all = [&["resolver"], typed].concat();
        assert!(Cli::try_parse_from(all).is_err(), "{typed:?}");
    }
}

#[test]
fn a_resolver_scales_only_where_it_may() {
    let after = |typed: &[&str]| {
        let all = [&["--operator-url", "http://a"], typed].concat();
        settings(&all, &[]).unwrap().operator.unwrap().scale_after
    };
    assert_eq!(after(&[]), None);
    assert_eq!(after(&["--scale-after", "1s"]), None);
    let five = Some(Duration::from_secs(5));
    assert_eq!(after(&["--resolver-may-scale"]), five);
    let two = Some(Duration::from_secs(2));
    assert_eq!(after(&["--resolver-may-scale", "--scale-after", "2s"]), two);
}

#[test]
fn sources_are_ranges_of_addresses_and_what_is_none_is_told() {
    let ranges = |typed: &[&str]| {
        let all = settings(typed, &[]).unwrap().listen.allow_from;
        all.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(ranges(&[]), Vec::<String>::new());
    let typed = [
        "--allow-from",
        "10.0.0.0/8,fd00::/8",
        "--allow-from=192.0.2.7",
    ];
    assert_eq!(ranges(&typed), ["10.0.0.0/8", "fd00::/8", "192.0.2.7/32"]);
    for (bad, expected) in [
        // Nobody, or everybody?
        ("", "no range of addresses"),
        ("10.0.0.0/8,", "no range of addresses"),
        ("shop", "10.0.0.0/8"),
        ("10.0.0.1/8", "write 10.0.0.0/8"),
        ("10.0.0.0/40", "from 0 to 32"),
    ] {
        let Err(error) = Cli::try_parse_from(["resolver", "--allow-from", bad]) else {
            panic!("{bad}");
        };
        assert!(error.to_string().contains(expected), "{error}");
    }
    let many = |count: usize| vec!["10.0.0.0/8"; count].join(",");
    assert!(settings(&["--allow-from", &many(1000)], &[]).is_ok());
    let error = settings(&["--allow-from", &many(1001)], &[]).unwrap_err();
    assert_eq!(error, SettingsError::TooManyRanges(1001));
}

#[test]
fn limits_of_one_service_lie_within_those_of_all() {
    let limits = settings(&["--max-held", "5", "--max-held-bytes", "7"], &[]);
    let limits = limits.unwrap().limits;
    assert_eq!(limits.held_per_service, 5);
    assert_eq!((limits.held_bytes_per_service, limits.body_replay), (7, 7));
}

#[test]
fn namespaces_are_a_list_with_our_own() {
    let namespaces =
        |typed: &[&str]| match settings(typed, &[("ELASTI_RESOLVER_NAMESPACE", "elasti")])
            .unwrap()
            .source
        {
            Source::Cluster { namespaces, .. } => namespaces,
            Source::File(file) => panic!("{}", file.display()),
        };
    assert_eq!(namespaces(&[]), Vec::<String>::new());
    assert_eq!(namespaces(&["--watch-namespace", ""]), Vec::<String>::new());
    let typed = ["--watch-namespace", "b,a", "--watch-namespace", "c"];
    assert_eq!(namespaces(&typed), ["a", "b", "c", "elasti"]);
}

#[test]
fn switches_take_a_value_and_an_empty_header_is_none() {
    let typed = [
        "--per-service-ports=false",
        "--h2c=0",
        "--early-readiness=false",
        "--header-for-host",
        "",
    ];
    let settings = settings(&typed, &[]).unwrap();
    assert!(!settings.listen.per_service_ports && !settings.h2c && !settings.early_readiness);
    assert_eq!(settings.header_for_host, None);
}

#[test]
fn what_has_no_meaning_is_noted_once() {
    let environment = [("MAX_QUEUE_CONCURRENCY", "100"), ("INITIAL_CAPACITY", "")];
    let typed = ["--operator-url", "http://a", "--hold-timeout", "700"];
    let notes = settings(&typed, &environment).unwrap().notes;
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].contains("MAX_QUEUE_CONCURRENCY"), "{notes:?}");
    assert!(notes[1].contains("708 s"), "{notes:?}");
}
