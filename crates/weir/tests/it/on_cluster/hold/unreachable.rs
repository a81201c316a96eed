//! A policy of the network keeps resolvers from pods: the kubelet says that they are ready, and no connection goes through.

use serde_json::json;
use weir_lab::fault::link;

use super::{
    bed::{self, Bed},
    client,
    echo::{self, Echo},
    local::nodes_of,
    second::Settings,
};

const CONDITION: &str = "TargetUnreachable";

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_is_kept_from_resolvers_is_told_of_until_they_are_let_in() {
    let bed = Bed::with_second("unreachable", Settings::default()).await;
    // Between the resolver and a pod beside it there is no cable.
    let resolvers = nodes_of(&bed, "resolver").await;
    let nodes = bed.cluster.nodes();
    let node = nodes.iter().find(|it| !resolvers.contains(&it.name()));
    let node = *node.expect("a node without a resolver");
    let mut echo = Echo::new("echo");
    echo.node = Some(node.name());
    bed.at_zero(&echo).await;

    let shut = link::shut(&bed.cluster, node, echo::PORT).expect("a rule");
    let answer = tokio::spawn(client::get(bed.address(&echo).await, "/echo"));
    bed.has_a_pod(&echo).await;
    let message = bed.is_told(&echo, CONDITION).await;
    let second = bed.second.as_ref().expect("a second one");
    let rule = format!("kubernetes.io/metadata.name: {}", second.namespace);
    assert!(message.contains(&rule), "{message}");
    assert!(!answer.is_finished(), "it is held");

    shut.mend().expect("no rule");
    let answer = answer.await.expect("an answer");
    assert_eq!(answer.status, 200, "{answer:?}");
    bed.until("it is over", || async {
        let status = bed.status(&echo).await;
        let told = bed::condition(&status, CONDITION);
        let is_over = told.map(|it| &it["status"]) == Some(&json!("False"));
        is_over.then_some(()).ok_or_else(|| status.to_string())
    })
    .await;
    bed.end().await;
}
