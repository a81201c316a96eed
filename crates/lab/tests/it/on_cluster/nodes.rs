//! The cluster is a real one: pods on every node, services, logs, and no way out.

use std::{collections::BTreeSet, net::Ipv4Addr};

use weir_lab::cluster::http;

use super::probes;

#[tokio::test]
async fn all_nodes_are_ready() {
    let cluster = weir_lab::cluster().await;
    probes::all_nodes_are_well(&cluster);
}

#[tokio::test]
async fn pods_run_on_every_node_and_a_service_finds_them_all() {
    let (cluster, namespace) = probes::start("nodes").await;
    let count = cluster.nodes().len();
    probes::deploy(&cluster, &namespace, "app", u32::try_from(count).unwrap());
    let pods = probes::ready_pods(&cluster, &namespace, "app", count);
    let nodes: BTreeSet<&String> = pods.iter().map(|(node, _)| node).collect();
    assert_eq!(nodes.len(), count, "{pods:?}");

    let address = probes::service_address(&cluster, &namespace, "app");
    let mut answered = BTreeSet::new();
    probes::eventually("all pods answer behind the service", || {
        answered.extend(probes::reaches(address, 80));
        if answered.len() == count {
            Ok(())
        } else {
            Err(answered.clone())
        }
    });
    // A node reaches pods of another node by the service as well.
    for node in cluster.nodes() {
        let ask = || {
            probes::eventually("a node reaches the service", || {
                probes::reaches(address, 80)
            })
        };
        cluster.node_network(node).inside(ask).unwrap();
    }
}

#[tokio::test]
async fn logs_of_a_pod_can_be_read() {
    let (cluster, namespace) = probes::start("logs").await;
    probes::deploy(&cluster, &namespace, "app", 1);
    probes::ready_pods(&cluster, &namespace, "app", 1);
    let logs = cluster
        .kubectl()
        .args(["-n", &namespace, "logs", "deployment/app"])
        .output()
        .unwrap();
    assert!(
        logs.status.success(),
        "{}",
        String::from_utf8_lossy(&logs.stderr)
    );
}

#[tokio::test]
async fn nothing_leaves_the_cluster_and_its_addresses_exist_nowhere_else() {
    let cluster = weir_lab::cluster().await;
    let outside = http::get(Ipv4Addr::new(192, 0, 2, 1), 80, "/").unwrap_err();
    assert_eq!(outside.kind(), std::io::ErrorKind::NetworkUnreachable);
    for node in cluster.nodes() {
        let ask = || http::get(Ipv4Addr::new(192, 0, 2, 1), 80, "/").unwrap_err();
        let outside = cluster.node_network(node).inside(ask).unwrap();
        assert_eq!(outside.kind(), std::io::ErrorKind::NetworkUnreachable);
    }
    let of_machine = std::process::Command::new("nsenter")
        .args(["--net=/proc/1/ns/net", "ip", "-4", "addr"])
        .output()
        .unwrap();
    let addresses = String::from_utf8(of_machine.stdout).unwrap();
    assert!(!addresses.contains("10.99.0."), "{addresses}");
}
