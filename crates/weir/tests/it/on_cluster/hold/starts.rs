//! Other targets than a quick Deployment: one that starts slowly, a StatefulSet, a Rollout, any other kind with `/scale`.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{bed::Bed, client, echo::Echo, objects::Kind};

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_starts_slowly_is_held_for_until_it_is_ready() {
    let bed = Bed::new("slow").await;
    let mut echo = Echo::new("echo");
    bed.at_zero(&echo).await;
    // Changed while it sleeps, so that the test waits for it only once.
    echo.arguments = vec!["--ready-delay", "20s"];
    echo.startup_seconds = Some(60);
    let mut slow = echo.workload();
    slow["spec"]["replicas"] = 0.into();
    bed.objects.apply(echo.kind, echo.name, &slow).await;

    let began = Instant::now();
    bed.scale(&echo, 1).await;
    bed.is_in_phase(&echo, "Waking").await;
    let answer = tokio::spawn(client::get(bed.address(&echo).await, "/echo"));
    assert_eq!(bed.status(&echo).await["mode"], "proxy");
    let answer = answer.await.expect("an answer");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(
        began.elapsed() >= Duration::from_secs(20),
        "it was not ready"
    );
    bed.is_in(&echo, "serve").await;
    bed.is_out_of_the_path(&echo).await;
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stateful_set_is_woken() {
    of_kind(Kind::StatefulSet).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_is_woken() {
    of_kind(Kind::Rollout).await;
}

/// With the Role that docs/hold.md has; without it that is said.
#[tokio::test(flavor = "multi_thread")]
async fn any_other_kind_with_a_scale_is_woken() {
    let bed = Bed::new("other-kind").await;
    let echo = Echo::new("echo").of_kind(Kind::ReplicaSet);
    bed.serve(&echo).await;
    bed.apply_elasti(&echo, &echo.elasti()).await;
    bed.until("it is said what is missing", || async {
        let status = bed.status(&echo).await;
        let text = status.to_string();
        let is_said = text.contains("may not read it") && text.contains("docs/hold.md");
        is_said.then_some(()).ok_or(text)
    })
    .await;
    let namespace = bed.namespace.name();
    let metadata = json!({"name": "weir-replica-sets", "namespace": namespace});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
        "rules": [
            {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["get", "patch"]},
            {"apiGroups": ["apps"], "resources": ["replicasets/scale"], "verbs": ["get", "update"]},
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "weir-replica-sets"},
        "subjects": [{"kind": "ServiceAccount", "name": "weir-operator", "namespace": "weir"}],
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [role, binding]});
    bed.cluster.apply(&list.to_string()).expect("it is applied");
    is_put_to_zero_and_woken(bed, echo).await;
}

async fn of_kind(kind: Kind) {
    let bed = Bed::new(&kind.name().to_lowercase()).await;
    let echo = Echo::new("echo").of_kind(kind);
    is_put_to_zero_and_woken(bed, echo).await;
}

async fn is_put_to_zero_and_woken(bed: Bed, echo: Echo) {
    bed.at_zero(&echo).await;
    let answer = client::get(bed.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(bed.replicas(&echo).await, 1);
    bed.is_in(&echo, "serve").await;
    bed.is_out_of_the_path(&echo).await;
    // By a trigger as well.
    let idle = super::triggers::with_query(&echo, "vector(0)");
    bed.apply_elasti(&echo, &idle).await;
    bed.is_in_phase(&echo, "Asleep").await;
    assert_eq!(bed.replicas(&echo).await, 0);
    bed.end().await;
}
