//! What was typed, and what it means.

use clap::{CommandFactory, Parser};

use super::{exporters::Where, kubelets::Trust, *};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: OperatorArgs,
}

/// The environment of the test itself must not matter: variables are given as flags or through `environment`.
fn settings(typed: &[&str], environment: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    let cli = Cli::try_parse_from([&["operator"], typed].concat()).unwrap();
    Settings::new(cli.args, &|name| {
        let found = environment.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn the_defaults_are_the_contracts() {
    let settings = settings(&[], &[]).unwrap();
    let listen = Listen {
        internal_port: 8013,
        health: Some(Bind::port(8081)),
        metrics: None,
        metrics_secure: false,
        require_token: true,
    };
    assert_eq!(settings.listen, listen);
    assert_eq!(settings.cluster.namespaces, Vec::<String>::new());
    assert_eq!(settings.cluster.own_namespace, "weir");
    let leader = settings.leader.as_ref().unwrap();
    assert_eq!(
        (&*leader.namespace, &*leader.name),
        ("weir", "weir-operator")
    );
    assert_eq!(leader.peer_namespaces, ["weir"]);
    assert!(leader.timing.deadline < leader.timing.lease);
    let resolver = Resolver {
        namespace: "weir".to_owned(),
        service: "weir-resolver".to_owned(),
        service_account: "weir-resolver".to_owned(),
        internal_port: 8013,
        proxy_port: 8012,
    };
    assert_eq!(settings.resolver, resolver);
    assert_eq!(settings.port_range, Some(10_240..=32_767));
    assert_eq!(settings.times.polling_interval, Duration::from_secs(30));
    assert_eq!(settings.plan(), weir_hold::Settings::default());
    assert_eq!(settings.prometheus, Prometheus::default());
    let own_files = "/var/run/secrets/kubernetes.io/serviceaccount";
    let kubelets = KubeletSettings {
        port: None,
        trust: Trust::Authorities(format!("{own_files}/ca.crt").into()),
        token: format!("{own_files}/token").into(),
    };
    assert_eq!(settings.kubelets, kubelets);
    assert_eq!(settings.notes, Vec::<String>::new());
}

#[test]
fn the_plan_has_what_was_typed() {
    let typed = [
        "--sync-period=1s",
        "--cut-over-timeout=2s",
        "--fail-open-after=3",
        "--hold-timeout=4m",
    ];
    let plan = settings(&typed, &[]).unwrap().plan();
    assert_eq!(plan.sync_period, Duration::from_secs(1));
    assert_eq!(plan.cut_over_timeout, Duration::from_secs(2));
    assert_eq!(plan.fail_open_after, Duration::from_secs(3));
    assert_eq!(plan.hold_timeout, Duration::from_mins(4));
}

#[test]
fn our_namespace_is_typed_or_the_pods_and_always_watched() {
    let pod = [("POD_NAMESPACE", "pods"), ("POD_NAME", "weir-operator-x")];
    let found = settings(
        &["--watch-namespace", "b,a", "--watch-namespace", "c"],
        &pod,
    )
    .unwrap();
    assert_eq!(found.cluster.namespaces, ["a", "b", "c", "pods"]);
    assert_eq!(found.cluster.own_name, "weir-operator-x");
    let leader = found.leader.unwrap();
    let identity = &leader.identity;
    assert!(identity.starts_with("weir-operator-x_"), "{identity}");
    assert!(leader.follows_itself);
    // Of a machine's name there may be two.
    let elsewhere = settings(&[], &[("HOSTNAME", "here")]).unwrap();
    assert!(!elsewhere.leader.unwrap().follows_itself);
    let found = settings(&["--operator-namespace", "typed"], &pod).unwrap();
    assert_eq!(found.cluster.own_namespace, "typed");
    assert_eq!(found.cluster.namespaces, Vec::<String>::new());
    let found = settings(&["--peer-namespace", "elasti,old"], &pod).unwrap();
    assert_eq!(
        found.leader.unwrap().peer_namespaces,
        ["elasti", "old", "pods"]
    );
    let alone = settings(&["--leader-elect=false"], &pod).unwrap();
    assert_eq!(alone.leader, None);
}

#[test]
fn metrics_are_told_where_it_was_typed() {
    let listen = |typed: &[&str]| settings(typed, &[]).map(|all| all.listen);
    let elsewhere = listen(&["--metrics-bind-address", "127.0.0.1:9000"]).unwrap();
    assert_eq!(elsewhere.metrics.unwrap().to_string(), "127.0.0.1:9000");
    let same = listen(&["--metrics-bind-address", ":8013"]).unwrap();
    assert_eq!(same.metrics, None);
    let secure = listen(&["--metrics-secure"]).unwrap();
    assert_eq!(secure.metrics, Some(Bind::port(8080)));
    let off = settings(&["--metrics-secure", "--metrics-bind-address=0"], &[]).unwrap();
    assert_eq!(off.listen.metrics, None);
    assert!(off.notes[0].contains("nowhere"), "{:?}", off.notes);
    assert_eq!(
        listen(&["--health-probe-bind-address=0"]).unwrap().health,
        None
    );
    for typed in [
        &["--internal-port=8081"][..],
        &["--metrics-bind-address=:8081"],
        &["--metrics-secure=true", "--metrics-bind-address=:8013"],
    ] {
        let error = listen(typed).unwrap_err();
        assert!(matches!(error, SettingsError::SamePort { .. }), "{error}");
    }
    let free = [
        "--internal-port=0",
        "--health-probe-bind-address=:0",
        "--metrics-bind-address=:0",
    ];
    assert!(listen(&free).is_ok());
}

#[test]
fn ports_that_are_given_away_are_not_in_use() {
    let typed = ["--port-range", "8000-9000"];
    assert_eq!(settings(&typed, &[]), Err(SettingsError::PortInRange(8012)));
    let off = settings(&[&typed[..], &["--per-service-ports=false"]].concat(), &[]).unwrap();
    assert_eq!(off.port_range, None);
}

#[test]
fn a_secret_is_kept_and_never_shown() {
    let environment = [(PROMETHEUS_AUTHORIZATION_HEADER, "Bearer hush")];
    let found = settings(
        &["--prometheus-address", "https://prom:9090/p"],
        &environment,
    )
    .unwrap();
    assert_eq!(
        found.prometheus.authorization.as_ref().unwrap(),
        "Bearer hush"
    );
    assert_eq!(found.prometheus.address.as_ref().unwrap().path(), "/p");
    assert!(!format!("{found:?}").contains("hush"));
    let error = settings(&[], &[(PROMETHEUS_AUTHORIZATION_HEADER, "a\nhush")]).unwrap_err();
    assert!(!format!("{error:?} {error}").contains("hush"));
    for bad in [
        "prom:9090",
        "ftp://prom",
        "http://",
        "http://me:hush@prom",
        "a b",
    ] {
        let error = settings(&["--prometheus-address", bad], &[]).unwrap_err();
        assert_eq!(error, SettingsError::PrometheusAddress);
        assert!(!error.to_string().contains("hush"));
    }
}

#[test]
fn what_has_no_meaning_is_noted_once() {
    let environment = [("INITIAL_CAPACITY", "1")];
    let typed = [
        "--enable-http2",
        "--zap-devel=false",
        "--zap-log-level",
        "debug",
        "--zap-encoder=json",
        "--require-token=false",
    ];
    let notes = settings(&typed, &environment).unwrap().notes;
    assert_eq!(notes.len(), 6, "{notes:?}");
    for (note, names) in notes.iter().zip([
        "--enable-http2",
        "--zap-devel",
        "--zap-encoder",
        "--zap-log-level",
        "INITIAL_CAPACITY",
        "--require-token",
    ]) {
        assert!(note.contains(names), "{note}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for typed in [
        &["--polling-interval", "0"][..],
        &["--sync-period", "soon"],
        &["--port-range", "5"],
        &["--health-probe-bind-address", "8081"],
        &["--leader-elect=maybe"],
    ] {
        let all = [&["operator"], typed].concat();
        assert!(Cli::try_parse_from(all).is_err(), "{typed:?}");
    }
}

#[test]
fn the_help_is_whole_and_hides_what_has_no_meaning() {
    let mut command = Cli::command();
    command.clone().debug_assert();
    let help = command.render_long_help().to_string();
    assert!(help.contains("Examples:") && help.contains("Resolvers:"));
    assert!(!help.contains("zap") && !help.contains("enable-http2"));
}

#[test]
fn place_runs_where_it_is_asked_for() {
    let silent = settings(&[], &[]).unwrap();
    assert!(silent.runs_hold && silent.place.is_none());
    let both = settings(&["--controllers=hold,place"], &[]).unwrap();
    let place = both.place.unwrap();
    assert!(both.runs_hold);
    assert_eq!(place.exporters.place, Where::Nodes(9810));
    assert_eq!((place.exporters.tls, place.nodes), (None, None));
    assert_eq!(place.options, weir_place::plan::Options::default());
    let alone = settings(&["--controllers", "place", "--allow-taints"], &[]).unwrap();
    assert!(!alone.runs_hold && alone.place.unwrap().options.allow_taints);
}

/// Labels of watches that this operator does not see must not be taken for orphans.
#[test]
fn place_in_some_namespaces_needs_nodes_of_its_own() {
    let some = ["--controllers=place", "--watch-namespace=shop"];
    assert_eq!(
        settings(&some, &[]),
        Err(SettingsError::PlaceInSomeNamespaces)
    );
    let with_nodes = [&some[..], &["--node-selector=pool=shop"]].concat();
    let place = settings(&with_nodes, &[]).unwrap().place.unwrap();
    assert_eq!(place.nodes.as_deref(), Some("pool=shop"));
    assert!(settings(&["--watch-namespace=shop"], &[]).is_ok());
}

#[test]
fn exporters_of_others_are_named_by_their_service() {
    let place = |flags: &[&str]| {
        let all: Vec<&str> = ["--controllers=place"]
            .iter()
            .chain(flags)
            .copied()
            .collect();
        settings(&all, &[]).map(|settings| settings.place.unwrap().exporters)
    };
    let service = "--node-exporter-service=monitoring/node-exporter";
    let found = place(&[service, "--node-exporter-scheme=https"]).unwrap();
    assert!(matches!(found.place, Where::Service(_)));
    let name = found.tls.unwrap().server_name;
    assert_eq!(name.as_deref(), Some("node-exporter.monitoring.svc"));
    let token = "--node-exporter-token-file=/token";
    let refused = place(&[service, token]).unwrap_err().to_string();
    assert!(
        refused.starts_with("--node-exporter-token-file"),
        "{refused}"
    );
}

#[test]
fn kubelets_are_believed_by_their_certificates_unless_somebody_says_otherwise() {
    let typed = [
        "--kubelet-port=10255",
        "--kubelet-ca-file=/ca",
        "--kubelet-token-file=/token",
    ];
    let found = settings(&typed, &[]).unwrap();
    let kubelets = KubeletSettings {
        port: Some(10_255),
        trust: Trust::Authorities("/ca".into()),
        token: "/token".into(),
    };
    assert_eq!(found.kubelets, kubelets);
    assert_eq!(found.notes, Vec::<String>::new());

    let anybody = settings(&["--kubelet-insecure-tls"], &[]).unwrap();
    assert_eq!(anybody.kubelets.trust, Trust::Anybody);
    assert!(anybody.notes[0].contains("--kubelet-insecure-tls"));
    let off = settings(&["--kubelet-insecure-tls=false", "--kubelet-port=1"], &[]).unwrap();
    assert_ne!(off.kubelets.trust, Trust::Anybody);

    for typed in [
        &["operator", "--kubelet-port=0"][..],
        &[
            "operator",
            "--kubelet-ca-file=/ca",
            "--kubelet-insecure-tls",
        ],
    ] {
        assert!(Cli::try_parse_from(typed).is_err(), "{typed:?}");
    }
}
