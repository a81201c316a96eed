//! Each fault really happens, and really ends.

use std::{
    collections::BTreeSet,
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket},
    thread,
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, api::ListParams};
use weir_lab::{
    cluster::{Cluster, add_on::rabbitmq, http, kubelet, layout, layout::Node},
    fault::{Direction, FaultyApi, api::Failure, disk, link, node, process, shape},
    marks,
};

use super::probes;

fn id(cluster: &Cluster, part: &str) -> Option<i32> {
    marks::leader(cluster.layout().state_directory(), part).map(|process| process.pid)
}

#[tokio::test]
async fn a_part_that_was_killed_is_away_until_it_is_started() {
    let (cluster, namespace) = probes::start("killed").await;
    process::kill(&cluster, "kube-scheduler").unwrap();
    assert_eq!(id(&cluster, "kube-scheduler"), None);
    let gone = process::kill(&cluster, "kube-scheduler")
        .unwrap_err()
        .to_string();
    assert!(gone.contains("there is no part kube-scheduler"), "{gone}");

    probes::deploy(&cluster, &namespace, "app", 1);
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    let pod = probes::eventually("there is a pod", || {
        let pod = probes::json_at(&cluster, &path)["items"][0].clone();
        if pod.is_object() { Ok(pod) } else { Err(pod) }
    });
    assert!(
        pod["spec"]["nodeName"].is_null(),
        "nobody is there to place it"
    );
    process::start(&cluster, "kube-scheduler").unwrap();
    probes::ready_pods(&cluster, &namespace, "app", 1);
}

#[tokio::test]
async fn a_paused_api_server_answers_nobody_and_then_goes_on() {
    let cluster = weir_lab::cluster().await;
    let before = id(&cluster, "kube-apiserver");
    let paused = process::pause(&cluster, "kube-apiserver").unwrap();
    assert!(paused.is_so());
    assert_eq!(cluster.get("/readyz"), None);
    paused.resume();
    probes::eventually("the API server answers", || {
        cluster.get("/readyz").ok_or("nothing")
    });
    assert_eq!(
        id(&cluster, "kube-apiserver"),
        before,
        "it is the same process"
    );
}

#[tokio::test]
async fn containers_outlive_a_kubelet_and_a_containerd_that_are_restarted() {
    let (cluster, namespace) = probes::start("restarted").await;
    probes::deploy(&cluster, &namespace, "app", 3);
    let pods = probes::ready_pods(&cluster, &namespace, "app", 3);
    let (name, address) = pods[0].clone();
    let answer = probes::reaches(address, probes::PORT).unwrap();
    for part in ["containerd", "kubelet"] {
        let part = format!("{name}-{part}");
        let before = id(&cluster, &part).unwrap();
        process::restart(&cluster, &part).unwrap();
        assert_ne!(id(&cluster, &part).unwrap(), before);
        let again =
            probes::eventually("its pod answers", || probes::reaches(address, probes::PORT));
        assert_eq!(again, answer, "it is the same container");
    }
    let path = format!("/api/v1/nodes/{name}");
    probes::eventually("the node is ready", || {
        let node = cluster.get(&path).unwrap_or_default();
        if kubelet::says_ready(&node) {
            Ok(())
        } else {
            Err(String::from_utf8(node))
        }
    });
}

#[tokio::test]
async fn a_drained_node_has_no_pods_until_it_is_uncordoned() {
    let (cluster, namespace) = probes::start("drained").await;
    probes::deploy(&cluster, &namespace, "app", 3);
    let on = |count| -> BTreeSet<String> {
        let pods = probes::ready_pods(&cluster, &namespace, "app", count);
        pods.into_iter().map(|(node, _)| node).collect()
    };
    assert_eq!(on(3).len(), 3);
    let drained = node::drain(&cluster, Node(3), 60).unwrap();
    assert!(!on(3).contains("n3"));
    let unschedulable =
        || probes::json_at(&cluster, "/api/v1/nodes/n3")["spec"]["unschedulable"].clone();
    assert_eq!(unschedulable(), true);
    drained.uncordon().unwrap();
    assert!(unschedulable().is_null());

    let cordoned = node::cordon(&cluster, Node(2)).unwrap();
    assert_eq!(
        probes::json_at(&cluster, "/api/v1/nodes/n2")["spec"]["unschedulable"],
        true
    );
    drop(cordoned);
    assert!(probes::json_at(&cluster, "/api/v1/nodes/n2")["spec"]["unschedulable"].is_null());
}

#[tokio::test]
async fn a_partitioned_node_is_reached_by_nobody_but_itself() {
    let (cluster, namespace) = probes::start("partitioned").await;
    probes::deploy(&cluster, &namespace, "app", 3);
    let pods = probes::ready_pods(&cluster, &namespace, "app", 3);
    let at = |name: &str| pods.iter().find(|(node, _)| node == name).unwrap().1;
    let (cut_off, other) = (at("n2"), at("n1"));
    let reaches = |address| probes::reaches(address, probes::PORT);
    let from = |node, address| {
        cluster
            .node_network(node)
            .inside(|| reaches(address))
            .unwrap()
    };

    let partition = link::partition(&cluster, Node(2)).unwrap();
    reaches(cut_off).unwrap_err();
    from(Node(1), cut_off).unwrap_err();
    from(Node(2), other).unwrap_err();
    from(Node(2), cut_off).unwrap();
    reaches(other).unwrap();
    partition.mend().unwrap();
    probes::eventually("all is well again", || {
        reaches(cut_off).and(from(Node(2), other))
    });
}

/// Of so many datagrams to a node, how many arrive.
fn arrivals(cluster: &Cluster, node: Node, sent: usize) -> usize {
    let bind = || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let receiver = cluster.node_network(node).inside(bind).unwrap();
    // What has not come by then was lost: a busy machine delivers late.
    receiver
        .set_read_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    let port = receiver.local_addr().unwrap().port();
    let sender = bind();
    let mut arrived = 0;
    // In small lots, so that no buffer runs over.
    for _ in 0..sent / 50 {
        for _ in 0..50 {
            sender.send_to(b"drop", (node.address(), port)).unwrap();
        }
        thread::sleep(Duration::from_millis(5));
        receiver.set_nonblocking(true).unwrap();
        while receiver.recv(&mut [0; 8]).is_ok() {
            arrived += 1;
        }
    }
    receiver.set_nonblocking(false).unwrap();
    while arrived < sent && receiver.recv(&mut [0; 8]).is_ok() {
        arrived += 1;
    }
    arrived
}

#[tokio::test]
async fn a_lossy_cable_loses_its_share() {
    let cluster = weir_lab::cluster().await;
    assert_eq!(arrivals(&cluster, Node(1), 1000), 1000);
    let loss = link::loss(&cluster, Node(1), Direction::ToNode, 30).unwrap();
    let arrived = arrivals(&cluster, Node(1), 1000);
    // Eight standard deviations.
    assert!((580..820).contains(&arrived), "{arrived}");
    loss.mend().unwrap();
    assert_eq!(arrivals(&cluster, Node(1), 1000), 1000);
}

/// How long it takes until so many bytes have come from a node.
fn transfer(cluster: &Cluster, node: Node, bytes: usize) -> Duration {
    let listener = TcpListener::bind((layout::CONTROL_PLANE, 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let network = cluster.node_network(node);
    let mut sender = network.inside(|| TcpStream::connect(to).unwrap()).unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    let began = Instant::now();
    let sending = thread::spawn(move || sender.write_all(&vec![0; bytes]).unwrap());
    receiver.read_exact(&mut vec![0; bytes]).unwrap();
    sending.join().unwrap();
    began.elapsed()
}

#[tokio::test]
async fn a_shaped_cable_carries_no_more_than_told() {
    let cluster = weir_lab::cluster().await;
    let (rate, bytes) = (16_000_000, 4_000_000);
    let shaped = shape::limit(&cluster, Node(1), rate).unwrap();
    // Two seconds, less what may go out at once.
    let took = transfer(&cluster, Node(1), bytes);
    assert!(took > Duration::from_millis(1800), "{took:?}");
    shape::limit(&cluster, Node(1), rate * 2)
        .unwrap()
        .end()
        .unwrap();
    let why = shaped.end().unwrap_err().to_string();
    assert!(why.contains("tc"), "it is shaped no more: {why}");
}

fn disk_alarm() -> Result<bool, String> {
    let headers = [rabbitmq::GUEST];
    let port = rabbitmq::MANAGEMENT_PORT;
    let answer = http::send(
        layout::CONTROL_PLANE,
        port,
        "GET",
        "/api/nodes",
        &headers,
        "",
    );
    let body = answer.map_err(|error| error.to_string())?.body;
    let nodes: serde_json::Value =
        serde_json::from_str(&body).map_err(|error| error.to_string())?;
    nodes[0]["disk_free_alarm"].as_bool().ok_or(body)
}

#[tokio::test]
async fn a_broker_on_a_full_disk_raises_its_alarm() {
    let cluster = weir_lab::cluster().await;
    let small = disk::small_disk(&cluster, "rabbitmq", "rabbitmq/mnesia", 200 << 20).unwrap();
    let alarm_is = |wanted: bool| {
        probes::eventually(&format!("the alarm is {wanted}"), || match disk_alarm() {
            Ok(alarm) if alarm == wanted => Ok(()),
            other => Err(other),
        });
    };
    alarm_is(false);
    let room = small.fill().unwrap();
    assert!((100 << 20..200 << 20).contains(&room), "{room}");
    alarm_is(true);
    small.free().unwrap();
    alarm_is(false);
    small.end().unwrap();
    alarm_is(false);
    let directory = cluster.layout().state_directory();
    let left: Vec<_> = weir_lab::cluster::mounts::below(&directory.join("rabbitmq"));
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn an_api_server_fails_as_told_and_then_no_more() {
    let cluster = weir_lab::cluster().await;
    let api = FaultyApi::start(&cluster).unwrap();
    let client = cluster.client_of(&api.kubeconfig()).await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.list(&ListParams::default()).await.unwrap();

    for status in [429, 500] {
        api.fail(&Failure {
            status,
            times: 2,
            path: "/api/v1/namespaces",
            methods: &["GET"],
            retry_after: 0,
        })
        .unwrap();
        let before = api.counts().unwrap().failed;
        client.apiserver_version().await.unwrap();
        let get = || {
            http::get(layout::CONTROL_PLANE, 16444, "/api/v1/namespaces")
                .unwrap()
                .status
        };
        assert_eq!([get(), get(), get()], [status, status, 200]);
        assert_eq!(api.counts().unwrap().failed, before + 2);
        namespaces.list(&ListParams::default()).await.unwrap();
    }
    api.fail(&Failure {
        status: 500,
        times: 1,
        path: "",
        methods: &[],
        retry_after: 0,
    })
    .unwrap();
    let failed = namespaces.list(&ListParams::default()).await.unwrap_err();
    assert!(failed.to_string().contains("as told by a test"), "{failed}");
    api.heal().unwrap();
    namespaces.list(&ListParams::default()).await.unwrap();
    drop(api);
    assert!(!cluster.parts().contains(&"api-proxy".to_owned()));
}

#[tokio::test]
async fn watches_are_cut_and_can_be_opened_again() {
    let cluster = weir_lab::cluster().await;
    let api = FaultyApi::start(&cluster).unwrap();
    // Says how it ended: by itself it would not while the test waits.
    let watch = || {
        thread::spawn(|| {
            let mut stream = TcpStream::connect((layout::CONTROL_PLANE, 16444)).unwrap();
            stream.set_read_timeout(Some(probes::PATIENCE)).unwrap();
            let path = "/api/v1/nodes?watch=true&timeoutSeconds=1000&allowWatchBookmarks=true";
            // Cut before it has begun, it is answered: then too the connection must end.
            let head = "HTTP/1.1\r\nHost: x\r\nConnection: close";
            write!(stream, "GET {path} {head}\r\n\r\n").unwrap();
            let read = std::io::copy(&mut stream, &mut std::io::sink());
            read.map_err(|error| error.kind())
        })
    };
    for round in 1..=2 {
        let watching = watch();
        probes::eventually("a watch is under way", || {
            let counts = api.counts().unwrap();
            if counts.underway == 1 {
                Ok(())
            } else {
                Err(counts)
            }
        });
        api.cut().unwrap();
        let end = watching.join().unwrap();
        let given_up = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
        assert!(!end.is_err_and(|kind| given_up.contains(&kind)), "{end:?}");
        assert_eq!(api.counts().unwrap().cut, round);
    }
}
