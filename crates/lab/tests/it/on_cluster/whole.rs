//! All of it together: the lab's server behind a Service on every node, load from inside and from outside a pod,
//! and a node that is cut off in the middle of it. What the senders counted and what the servers saw must agree.

use std::{
    net::Ipv4Addr,
    time::{Duration, UNIX_EPOCH},
};

use serde_json::{Value, json};
use weir_lab::{
    TestCluster,
    cluster::{http, layout::Node},
    fault::link,
    image::program,
    load::{Check, Load, Protocol, Report},
};

use super::probes;

const IMAGE: &str = "localhost/lab-app:whole";
/// Requests per second of each of the two senders.
const RATE: u32 = 50;
/// When the node is cut off, for how long, and how long there is load in all.
const BEFORE: Duration = Duration::from_secs(15);
const CUT_OFF: Duration = Duration::from_secs(20);
const IN_ALL: Duration = Duration::from_mins(1);
/// Less than the node is cut off, and more than a machine stalls.
const TIME_OUT: Duration = Duration::from_secs(9);

#[tokio::test(flavor = "multi_thread")]
async fn senders_and_servers_count_the_same_while_a_node_is_cut_off() {
    let (cluster, namespace) = probes::start("whole").await;
    load_image(&cluster);
    let nodes = cluster.nodes();
    deploy(&cluster, &namespace, nodes.len());
    let servers = probes::ready_pods(&cluster, &namespace, "echo", nodes.len());
    let service = probes::service_address(&cluster, &namespace, "echo");
    probes::eventually("the service leads to a server", || {
        http::get(service, 80, "/healthz").map_err(|error| error.to_string())
    });
    let already = seen(&servers);

    start_sender(&cluster, &namespace, &nodes[0].name(), service);
    let url = format!("http://{service}/mirror");
    let outside = tokio::spawn(sender(url).run());
    tokio::time::sleep(BEFORE).await;
    let cut = now();
    let partition = link::partition(&cluster, Node(3)).unwrap();
    tokio::time::sleep(CUT_OFF).await;
    partition.mend().unwrap();
    let mended = now();

    let outside = outside.await.unwrap().unwrap();
    let inside = report_of_sender(&cluster, &namespace);
    for (place, report) in [("outside", &outside), ("inside", &inside)] {
        assert!(report.adds_up(), "{place}: {report}");
        let intended = u64::from(RATE) * IN_ALL.as_secs();
        assert_eq!(
            (report.intended, report.unsent),
            (intended, 0),
            "{place}: {report}"
        );
        assert!(
            report.outcomes.failed() > 0,
            "{place}: nobody noticed the cut\n{report}"
        );
        assert!(report.outcomes.wrong_body == 0, "{place}: {report}");
        assert!(
            report.outcomes.ok > intended / 2,
            "{place}: two nodes of three were there all the time\n{report}"
        );
        // Before the cut, and once it has been mended for a while, nothing fails.
        // By the clock: the two do not begin at the same time.
        let mut began = report.started_unix_seconds;
        for (second, counts) in report.timeline.iter().enumerate() {
            let is_quiet = began + 2.0 < cut || began > mended + 10.0;
            began += 1.0;
            assert!(
                !is_quiet || counts.failed == 0,
                "{place}, second {second}: {report}"
            );
        }
    }

    // Each request that was answered was seen by one server, once; of those that failed, some may have arrived before
    // their answers were lost.
    let now = seen(&servers);
    let arrived = now.distinct - already.distinct;
    let ok = outside.outcomes.ok + inside.outcomes.ok;
    let failed = outside.outcomes.failed() + inside.outcomes.failed();
    println!(
        "sent {}, ok {ok}, failed {failed}, seen by servers {arrived}",
        outside.sent + inside.sent
    );
    assert_eq!(now.repeated, already.repeated, "nothing is sent twice");
    assert!(
        (ok..=ok + failed).contains(&arrived),
        "{ok} were answered and {failed} failed, but {arrived} arrived"
    );
    assert_eq!(
        now.answered - already.answered,
        arrived,
        "a server answers what it has seen"
    );
}

/// In seconds since 1970.
fn now() -> f64 {
    UNIX_EPOCH.elapsed().unwrap().as_secs_f64()
}

fn sender(url: String) -> Load {
    Load::new(url)
        .rate(RATE)
        .duration(IN_ALL)
        .connections(400)
        .protocol(Protocol::NewConnections)
        .time_out(TIME_OUT)
        .body_bytes(512)
        .check(Check::Mirror)
}

fn load_image(cluster: &TestCluster) {
    let path = std::path::Path::new(env!("CARGO_BIN_EXE_lab-app"));
    let image = program::gather(IMAGE, path, &[]).unwrap().image;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), image.pack().unwrap().tar).unwrap();
    cluster.load(file.path()).unwrap();
}

fn deploy(cluster: &TestCluster, namespace: &str, replicas: usize) {
    let mut template = probes::template("echo");
    template["spec"]["topologySpreadConstraints"][0]["whenUnsatisfiable"] = json!("DoNotSchedule");
    template["spec"]["containers"] = json!([{
        "name": "echo",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "args": ["echo"],
        "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": probes::PORT}, "periodSeconds": 1},
        "securityContext": {"readOnlyRootFilesystem": true, "runAsNonRoot": true},
    }]);
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "echo", "namespace": namespace},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "echo"}},
                "template": template,
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "echo", "namespace": namespace},
            "spec": {"selector": {"app": "echo"}, "ports": [{"port": 80, "targetPort": probes::PORT}]},
        },
    ]});
    cluster.apply(&objects.to_string()).unwrap();
}

/// The same sender as ours, in a pod.
fn start_sender(cluster: &TestCluster, namespace: &str, node: &str, service: Ipv4Addr) {
    let arguments = format!(
        "load http://{service}/mirror --rate {RATE} --duration {}s --connections 400 --new-connections \
         --time-out {}s --body-bytes 512 --json -",
        IN_ALL.as_secs(),
        TIME_OUT.as_secs()
    );
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "sender", "namespace": namespace},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "containers": [{
                "name": "sender",
                "image": IMAGE,
                "imagePullPolicy": "Never",
                "args": arguments.split_whitespace().collect::<Vec<_>>(),
            }],
        },
    });
    cluster.apply(&pod.to_string()).unwrap();
    phase(cluster, namespace, &["Running"]);
}

/// Waits until the pod of the sender is in one of these phases.
fn phase(cluster: &TestCluster, namespace: &str, phases: &[&str]) {
    let path = format!("/api/v1/namespaces/{namespace}/pods/sender");
    probes::within(IN_ALL * 2, "the sender's pod", || {
        let status = probes::json_at(cluster, &path)["status"].clone();
        let is_so = phases.iter().any(|phase| status["phase"] == *phase);
        if is_so { Ok(()) } else { Err(status) }
    });
}

/// What the sender in the pod came to; it ends with a failure, since requests failed.
fn report_of_sender(cluster: &TestCluster, namespace: &str) -> Report {
    phase(cluster, namespace, &["Succeeded", "Failed"]);
    let logs = cluster
        .kubectl()
        .args(["-n", namespace, "logs", "sender"])
        .output()
        .unwrap();
    let text = String::from_utf8(logs.stdout).unwrap();
    let json = text
        .find('{')
        .zip(text.rfind('}'))
        .map(|(start, end)| &text[start..=end]);
    let report: Value = serde_json::from_str(json.unwrap_or_default())
        .unwrap_or_else(|error| panic!("{error} in what the sender said: {text}"));
    serde_json::from_value(report).unwrap()
}

/// What servers have seen, all together.
struct Seen {
    distinct: u64,
    repeated: u64,
    answered: u64,
}

fn seen(servers: &[(String, Ipv4Addr)]) -> Seen {
    let mut all = Seen {
        distinct: 0,
        repeated: 0,
        answered: 0,
    };
    for (node, address) in servers {
        let metrics =
            probes::eventually(&format!("the server on {node} tells its metrics"), || {
                http::get(*address, probes::PORT, "/metrics").map_err(|error| error.to_string())
            });
        for line in metrics.body.lines() {
            let Some((name, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let value = || value.parse::<u64>().unwrap();
            match name {
                "lab_request_ids_distinct" => all.distinct += value(),
                "lab_request_ids_repeated_total" => all.repeated += value(),
                _ if name.starts_with("lab_requests_total{") && name.contains("mirror") => {
                    all.answered += value();
                }
                _ => {}
            }
        }
    }
    all
}
