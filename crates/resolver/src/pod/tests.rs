//! Pods as they are written, and what is understood of them.

use serde_json::{Value, json};

use super::{object::Pod, *};

fn read(spec: &Value, status: &Value) -> Option<PodView> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"namespace": "shop", "name": "web-1", "uid": "u1", "annotations": {"a": "b"}},
        "spec": spec,
        "status": status,
    }))
    .unwrap();
    assert_eq!(pod.metadata.annotations, None);
    pod.view.map(|view| PodView::clone(&view))
}

fn running() -> Value {
    json!({
        "phase": "Running",
        "podIP": "192.0.2.1",
        "podIPs": [{"ip": "192.0.2.1"}, {"ip": "fd00::1"}],
        "containerStatuses": [{
            "name": "app", "containerID": "containerd://1", "ready": false, "started": true,
            "restartCount": 0, "image": "", "imageID": "",
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }],
    })
}

/// What is made of one readiness probe.
fn readiness(probe: &Value) -> Check {
    let ports = json!([{"name": "web", "containerPort": 8080}]);
    let spec = json!({"containers": [{"name": "app", "ports": ports, "readinessProbe": probe}]});
    let mut view = read(&spec, &running()).unwrap();
    view.containers.remove(0).readiness.unwrap()
}

fn asked(probe: &Value) -> Probe {
    match readiness(probe) {
        Check::Ask(probe) => Probe::clone(&probe),
        Check::Kubelet => panic!("{probe} is the kubelet's"),
    }
}

#[test]
fn a_probe_has_kubernetes_defaults() {
    let probe = asked(&json!({"httpGet": {"port": "web"}}));
    let expected = Probe {
        port: 8080,
        action: Action::Http {
            tls: false,
            path: PathAndQuery::from_static("/"),
            headers: Vec::new(),
        },
        initial_delay: Duration::ZERO,
        period: Duration::from_secs(10),
        timeout: Duration::from_secs(1),
        successes: 1,
        failures: 3,
    };
    assert_eq!(probe, expected);
    let probe = asked(&json!({
        "tcpSocket": {"port": 1}, "initialDelaySeconds": 2, "periodSeconds": 3, "timeoutSeconds": 4,
        "successThreshold": 5, "failureThreshold": 6,
    }));
    let expected = Probe {
        port: 1,
        action: Action::Tcp,
        initial_delay: Duration::from_secs(2),
        period: Duration::from_secs(3),
        timeout: Duration::from_secs(4),
        successes: 5,
        failures: 6,
    };
    assert_eq!(probe, expected);
}

#[test]
fn what_is_asked_is_what_is_written() {
    let probe = asked(&json!({"httpGet": {
        "port": "81", "path": "ready?now=1", "scheme": "HTTPS",
        "httpHeaders": [{"name": "host", "value": "a.example"}],
    }}));
    assert_eq!(probe.port, 81);
    let Action::Http { tls, path, headers } = probe.action else {
        panic!("{:?}", probe.action)
    };
    assert!(tls);
    assert_eq!(path.as_str(), "/ready?now=1");
    assert_eq!(
        headers,
        [(http::header::HOST, HeaderValue::from_static("a.example"))]
    );
    for (written, name) in [
        (json!({"port": 5}), ""),
        (json!({"port": 5, "service": "a"}), "a"),
    ] {
        let service = name.to_owned();
        assert_eq!(
            asked(&json!({"grpc": written})).action,
            Action::Grpc { service }
        );
    }
}

#[test]
fn what_cannot_be_asked_is_the_kubelets() {
    for probe in [
        json!({"exec": {"command": ["true"]}}),
        json!({"httpGet": {"port": 80, "host": "10.0.0.1"}}),
        json!({"tcpSocket": {"port": 80, "host": "10.0.0.1"}}),
        json!({"httpGet": {"port": "unknown"}}),
        json!({"httpGet": {"port": 0}}),
        json!({"httpGet": {"port": 70000}}),
        json!({"httpGet": {"port": 80, "scheme": "GOPHER"}}),
        json!({"httpGet": {"port": 80, "path": "/a b"}}),
        json!({"httpGet": {"port": 80, "httpHeaders": [{"name": "a b", "value": ""}]}}),
        json!({"grpc": {"port": -1}}),
        json!({}),
    ] {
        assert_eq!(readiness(&probe), Check::Kubelet, "{probe}");
    }
}

#[test]
fn a_pod_whose_readiness_is_not_its_probes_alone_is_none() {
    let spec = json!({"containers": [{"name": "app"}]});
    assert!(read(&spec, &running()).is_some());
    let gated =
        json!({"containers": [{"name": "app"}], "readinessGates": [{"conditionType": "a"}]});
    assert_eq!(read(&gated, &running()), None);
    for phase in ENDED_PHASES {
        let mut status = running();
        status["phase"] = json!(phase);
        assert_eq!(read(&spec, &status), None, "{phase}");
    }
    assert_eq!(
        read(&spec, &json!({"phase": "Pending"})),
        None,
        "no address"
    );
    for near in [
        "127.0.0.1",
        "169.254.169.254",
        "::1",
        "fe80::1",
        "0.0.0.0",
        "224.0.0.1",
    ] {
        let status = json!({"podIP": near});
        assert_eq!(read(&spec, &status), None, "{near}");
    }
    assert_eq!(read(&json!({"containers": []}), &running()), None);
    let ending = json!({
        "metadata": {"name": "a", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": spec,
        "status": running(),
    });
    let ending: Pod = serde_json::from_value(ending).unwrap();
    assert_eq!(ending.view, None);
}

const ENDED_PHASES: [&str; 2] = ["Succeeded", "Failed"];

#[test]
fn sidecars_count_and_a_container_that_does_not_run_has_no_run() {
    let spec = json!({
        "initContainers": [
            {"name": "first"},
            {"name": "mesh", "restartPolicy": "Always", "readinessProbe": {"tcpSocket": {"port": 1}}},
        ],
        "containers": [{"name": "app"}, {"name": "other"}],
    });
    let mut status = running();
    status["containerStatuses"][0]["ready"] = json!(true);
    let view = read(&spec, &status).unwrap();
    let runs: Vec<Option<&str>> = view.containers.iter().map(|it| it.run.as_deref()).collect();
    assert_eq!(runs, [Some("containerd://1"), None, None]);
    assert!(view.containers[0].is_ready && view.containers[0].is_started);
    assert!(!view.containers[2].is_ready && view.containers[2].readiness.is_some());
    assert_eq!(view.addresses.len(), 2);

    // Its last run is over: what was said of it no longer counts.
    status["containerStatuses"][0]["state"] = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let view = read(&spec, &status).unwrap();
    assert_eq!(
        (view.containers[0].run.as_ref(), view.containers[0].is_ready),
        (None, false)
    );
}

/// What is kept of a pod while a list of all is read, whatever stands in it.
#[test]
fn a_pod_takes_little_memory() {
    assert!(size_of::<Pod>() <= 512, "{}", size_of::<Pod>());
    assert!(size_of::<PodView>() + size_of::<ContainerView>() <= 192);
}
