//! `internalTrafficPolicy: Local`: each node leads to its own endpoints alone, so each that has pods needs a resolver.

use std::net::SocketAddr;

use serde_json::{Value, json};
use weir_lab::{TestCluster, cluster::layout::Node};

use super::{
    bed::{self, Bed},
    client::{self, Answer},
    echo::Echo,
    objects::Kind,
    second::Settings,
    triggers,
};

/// The nodes of Weir's pods of this part.
pub(super) async fn nodes_of(bed: &Bed, part: &str) -> Vec<String> {
    let labels = format!("app.kubernetes.io/component={part}");
    let pods = bed.weir.list(Kind::Pod, &labels).await;
    let node = |pod: &Value| pod["spec"]["nodeName"].as_str().map(str::to_owned);
    pods.iter().filter_map(node).collect()
}

/// Does it where this node's clients are.
async fn on_node<T, F>(
    cluster: &TestCluster,
    node: Node,
    work: impl FnOnce() -> F + Send + 'static,
) -> T
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let network = cluster.node_network(node);
    let work = move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        runtime.block_on(work())
    };
    let done = tokio::task::spawn_blocking(move || network.inside(work));
    done.await.expect("no panic").expect("the node's network")
}

async fn get(cluster: &TestCluster, node: Node, address: SocketAddr) -> Answer {
    on_node(cluster, node, move || client::get(address, "/echo")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_policy_needs_a_resolver_on_each_node_of_the_target() {
    let bed = Bed::with_second("local", Settings::default()).await;
    let covered = nodes_of(&bed, "resolver").await;
    let nodes = bed.cluster.nodes();
    let mut uncovered = nodes.iter().filter(|it| !covered.contains(&it.name()));
    let node = *uncovered.next().expect("a node without a resolver");
    let mut echo = Echo::new("echo");
    echo.node = Some(node.name());
    serve_locally(&bed, &echo).await;
    let message = bed.is_told(&echo, "ResolverMissingOnNode").await;
    assert!(message.contains(&node.name()), "{message}");
    assert_eq!(bed.slice(&echo).await, None);
    assert_eq!(bed.replicas(&echo).await, 1);

    let change = json!({"spec": {"replicas": nodes.len()}});
    bed.weir
        .patch(Kind::Deployment, "weir-resolver", &change)
        .await;
    sleeps_and_wakes(&bed, &echo, node).await;
    let status = bed.status(&echo).await;
    let missing = bed::condition(&status, "ResolverMissingOnNode");
    assert_eq!(missing.map(|it| &it["status"]), Some(&json!("False")));
    bed.end().await;
}

/// From the operator's own node nothing leads to the Service then, so that it cannot see whether a resolver is reached.
#[tokio::test(flavor = "multi_thread")]
async fn with_a_local_policy_the_operator_may_run_on_any_node() {
    let bed = Bed::with_second("local-far", Settings::default()).await;
    let covered = nodes_of(&bed, "resolver").await;
    let nodes = bed.cluster.nodes();
    let (near, far): (Vec<Node>, Vec<Node>) =
        nodes.iter().partition(|it| covered.contains(&it.name()));
    let ([near], [far, ..]) = (&near[..], &far[..]) else {
        panic!("one resolver, and nodes without: {covered:?}");
    };
    let change = json!({"spec": {"template": {"spec": {
        "nodeSelector": {"kubernetes.io/hostname": far.name()},
    }}}});
    bed.weir
        .patch(Kind::Deployment, "weir-operator", &change)
        .await;
    bed.until("the operator runs far from the resolver", || async {
        let nodes = nodes_of(&bed, "operator").await;
        if nodes == [far.name()] {
            Ok(())
        } else {
            Err(format!("{nodes:?}"))
        }
    })
    .await;
    let mut echo = Echo::new("echo");
    echo.node = Some(near.name());
    serve_locally(&bed, &echo).await;
    sleeps_and_wakes(&bed, &echo, *near).await;
    bed.end().await;
}

/// Made, awake, idle, and held if it may be.
async fn serve_locally(bed: &Bed, echo: &Echo) {
    bed.serve(echo).await;
    let change = json!({"spec": {"internalTrafficPolicy": "Local"}});
    bed.objects.patch(Kind::Service, echo.name, &change).await;
    let idle = triggers::with_query(echo, "vector(0)");
    bed.apply_elasti(echo, &idle).await;
}

/// Waits until it sleeps, and wakes it from the node of its pods.
async fn sleeps_and_wakes(bed: &Bed, echo: &Echo, node: Node) {
    bed.is_in_phase(echo, "Asleep").await;
    assert_eq!(bed.replicas(echo).await, 0);

    // Without triggers it does not sleep again at once.
    bed.apply_elasti(echo, &echo.elasti()).await;
    let address = bed.address(echo).await;
    bed.until("the node leads to its resolver", || async {
        let labels = format!("app={}", echo.name);
        let pods = bed.objects.list(Kind::Pod, &labels).await;
        if !pods.is_empty() {
            return Err("pods are there".to_owned());
        }
        on_node(&bed.cluster, node, move || bed::connects(address)).await
    })
    .await;
    let answer = get(&bed.cluster, node, address).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_ne!(answer.header("x-weir-via"), "-", "it was held");
    bed.is_in(echo, "serve").await;
    bed.until("requests go straight to the pod", || async {
        let answer = get(&bed.cluster, node, address).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        match answer.header("x-weir-via") {
            "-" => Ok(()),
            via => Err(format!("via {via}")),
        }
    })
    .await;
}
