//! An installation for one namespace: what it does there, and that it neither touches nor may touch anything elsewhere.

use serde_json::Value;
use weir_api::hold::names;

use super::{bed::Bed, client, echo::Echo, objects::Kind, second::Settings, triggers};

#[tokio::test(flavor = "multi_thread")]
async fn one_namespace_is_cared_for_without_any_right_elsewhere() {
    let bed = Bed::with_second("scoped", Settings::default()).await;
    let elsewhere = Bed::new("elsewhere").await;
    let echo = Echo::new("echo");
    elsewhere.serve(&echo).await;
    elsewhere.apply_elasti(&echo, &echo.elasti()).await;
    elsewhere.scale(&echo, 0).await;

    // All that hold does is done here, by hand and by trigger, while elsewhere it has as long.
    bed.at_zero(&echo).await;
    bed.leads_to_all_resolvers(&echo).await;
    let answer = client::get(bed.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_ne!(answer.header("x-weir-via"), "-", "it was held");
    bed.is_in(&echo, "serve").await;
    bed.is_out_of_the_path(&echo).await;
    let idle = triggers::with_query(&echo, "vector(0)");
    bed.apply_elasti(&echo, &idle).await;
    bed.falls_asleep(&echo).await;
    let answer = client::get(bed.address(&echo).await, "/echo").await;
    assert_eq!(answer.status, 200, "{answer:?}");

    is_left_alone(&elsewhere, &echo).await;
    has_no_right_outside(&bed, elsewhere.namespace.name());
    // With it goes the reason why nobody cared: the usual one does at once.
    bed.end().await;
    elsewhere.is_in(&echo, "proxy").await;
    elsewhere.end().await;
}

async fn is_left_alone(elsewhere: &Bed, echo: &Echo) {
    let elasti = elsewhere.objects.get(Kind::ElastiService, echo.name).await;
    assert_eq!(elasti["status"], Value::Null);
    assert_eq!(elasti["metadata"]["finalizers"], Value::Null);
    for kind in [Kind::Service, Kind::EndpointSlice] {
        let derived = elsewhere.objects.list(kind, names::UID_LABEL).await;
        assert!(derived.is_empty(), "{derived:?}");
    }
    assert_eq!(elsewhere.replicas(echo).await, 0);
}

/// No object of it lies outside of namespaces, and no binding over the cluster names it.
fn has_no_right_outside(bed: &Bed, elsewhere: &str) {
    let second = bed.second.as_ref().expect("a second one");
    let global = second.kinds.iter().find(|it| it.starts_with("ClusterRole"));
    assert_eq!(global, None);
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let bindings = bed.cluster.get(path).expect("bindings");
    let named = format!("\"namespace\":\"{}\"", second.namespace);
    let bindings = String::from_utf8_lossy(&bindings);
    assert!(bindings.contains("\"namespace\":\"weir\""), "no binding");
    assert!(!bindings.contains(&named), "{bindings}");

    for part in ["operator", "resolver"] {
        let account = format!("system:serviceaccount:{}:weir-{part}", second.namespace);
        let all = ["elastiservices", "services", "endpointslices"];
        for resource in all {
            assert!(may(bed, &account, "list", resource, bed.namespace.name()));
            assert!(!may(bed, &account, "list", resource, elsewhere));
        }
    }
    let operator = format!("system:serviceaccount:{}:weir-operator", second.namespace);
    let scale = "deployments.apps/scale";
    assert!(may(bed, &operator, "patch", scale, bed.namespace.name()));
    assert!(!may(bed, &operator, "patch", scale, elsewhere));
}

/// What the API server says to that.
fn may(bed: &Bed, account: &str, verb: &str, resource: &str, namespace: &str) -> bool {
    let mut kubectl = bed.cluster.kubectl();
    kubectl.args(["auth", "can-i", "--as", account, "-n", namespace]);
    match resource.split_once('/') {
        Some((resource, sub)) => kubectl.args([verb, resource, "--subresource", sub]),
        None => kubectl.args([verb, resource]),
    };
    let output = kubectl.output().expect("kubectl runs");
    match output.stdout.trim_ascii() {
        b"yes" => true,
        b"no" => false,
        _ => panic!("{output:?}"),
    }
}
