//! What tests of other crates do with the server: share it, and keep to a namespace each.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{Api, api::PostParams};

fn config_map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

#[tokio::test]
async fn the_shared_server_is_a_real_one_and_the_same_for_all() {
    let first = weir_lab::api_server().await;
    let second = weir_lab::api_server().await;
    assert_eq!(first.kubeconfig(), second.kubeconfig());
    let version = first.client().apiserver_version().await.unwrap();
    assert_eq!(version.git_version, weir_lab::tools::KUBERNETES.version);

    let namespace = first.namespace("sharing").await;
    namespace
        .api()
        .create(&PostParams::default(), &config_map("seen"))
        .await
        .unwrap();
    let by_second: Api<ConfigMap> = Api::namespaced(second.client(), namespace.name());
    by_second.get("seen").await.unwrap();
}

#[tokio::test]
async fn a_namespace_belongs_to_one_test() {
    let k8s = weir_lab::api_server().await;
    let mine = k8s.namespace("mine").await;
    let other = k8s.namespace("mine").await;
    assert!(mine.name().starts_with("mine-"));
    assert_ne!(mine.name(), other.name());

    mine.api()
        .create(&PostParams::default(), &config_map("here"))
        .await
        .unwrap();
    assert!(
        mine.api::<ConfigMap>()
            .get_opt("here")
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        other
            .api::<ConfigMap>()
            .get_opt("here")
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn a_pod_can_be_created_once_the_service_account_is_there() {
    let namespace = weir_lab::api_server().await.namespace("pods").await;
    namespace.has_service_account().await;
    let pod: Pod = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "localhost/app:1"}]},
    }))
    .unwrap();
    let created = namespace
        .api()
        .create(&PostParams::default(), &pod)
        .await
        .unwrap();
    let account = created.spec.unwrap().service_account_name;
    assert_eq!(
        account.as_deref(),
        Some("default"),
        "service account admission is on"
    );
}

#[tokio::test]
async fn kubectl_is_ready_for_use() {
    let k8s = weir_lab::api_server().await;
    let output = k8s
        .kubectl()
        .args(["get", "namespaces", "-o", "name"])
        .output()
        .unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    assert!(names.contains("namespace/kube-system"), "{names}");
}

#[tokio::test]
async fn a_fresh_server_is_nobody_elses_and_goes_with_its_value() {
    let fresh = weir_lab::fresh_api_server().await;
    let shared = weir_lab::api_server().await;
    assert_ne!(fresh.kubeconfig(), shared.kubeconfig());
    fresh.client().apiserver_version().await.unwrap();

    let directory = fresh.kubeconfig().parent().unwrap().to_owned();
    assert!(!weir_lab::marks::of(&directory).is_empty());
    drop(fresh);
    super::victim::assert_all_gone(&directory);
}
