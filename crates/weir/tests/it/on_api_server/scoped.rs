//! What `weir manifests --watch-namespace` prints, run with the rights that it gives and no others: in the namespaces that are
//! named all works, in others nothing is touched, and nothing is asked for that may not be had. With nodes the same is shown
//! by `on_cluster::hold::scoped`.

use std::net::SocketAddr;

use serde_json::{Value, json};
use weir_api::hold::names::{AddressFamily, private_service, resolver_slice};
use weir_lab::{ApiServer, eventually};

use super::{
    PATIENCE, are_served, kubectl,
    manifests::APPLY,
    programs::{Site, apply, ask, own_address, pods, server},
};
use crate::output_of;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_installed_for_one_namespace_works_there_and_by_roles_alone() {
    let k8s = weir_lab::fresh_api_server().await;
    for namespace in ["shop", "other"] {
        kubectl(&k8s, &["create", "namespace", namespace], "");
    }
    let printed = output_of(&["manifests", "--only", "hold", "--watch-namespace", "shop"]);
    assert!(!printed.contains("ClusterRole"));
    kubectl(&k8s, &APPLY, &printed);
    are_served(&k8s).await;
    for namespace in ["shop", "other"] {
        for object in objects() {
            apply(&k8s, namespace, &object);
        }
    }
    let site = Site::new(&k8s);
    let operator = site.operator(&k8s);
    let resolver = site.resolver(&k8s, &operator).await;

    let slice = resolver_slice("web", AddressFamily::V4);
    let port = eventually(PATIENCE, "it sleeps behind the resolver", async || {
        let object = get(&k8s, "shop", "elastiservice", "web");
        let slice = get(&k8s, "shop", "endpointslice", &slice);
        let leads = slice["endpoints"][0]["addresses"][0] == *own_address().to_string();
        let port = slice["ports"][0]["port"].as_u64();
        let is_so = leads && object["status"]["phase"] == "Asleep";
        let port = port.and_then(|port| u16::try_from(port).ok());
        let told = || format!("{object} {slice} {}", operator.log());
        port.filter(|_| is_so).ok_or_else(told)
    })
    .await;
    let answer = ask(SocketAddr::new(own_address(), port));
    eventually(PATIENCE, "it is woken", async || {
        let replicas = get(&k8s, "shop", "deployment", "web")["spec"]["replicas"].clone();
        (replicas == 1).then_some(()).ok_or(replicas)
    })
    .await;
    apply(&k8s, "shop", &pods("web", server()));
    let answer = tokio::task::spawn_blocking(|| answer.join()).await;
    let answer = answer.expect("a thread").expect("an answer");
    assert!(answer.ends_with("awake"), "{answer}");
    eventually(PATIENCE, "pods answer by themselves", async || {
        let object = get(&k8s, "shop", "elastiservice", "web");
        let is_so = object["status"]["phase"] == "Serving"
            && get(&k8s, "shop", "endpointslice", &slice).is_null();
        is_so.then_some(()).ok_or(object)
    })
    .await;
    let line = [
        "-n",
        "shop",
        "delete",
        "elastiservice",
        "web",
        "--timeout=2m",
    ];
    kubectl(&k8s, &line, "");

    for program in [&operator, &resolver] {
        let forbidden = program.was_forbidden();
        assert!(forbidden.is_empty(), "{forbidden:?}");
    }
    let object = get(&k8s, "other", "elastiservice", "web");
    assert_eq!(object["status"], Value::Null);
    assert_eq!(object["metadata"]["finalizers"], Value::Null);
    for (kind, name) in [
        ("endpointslice", slice),
        ("service", private_service("web")),
    ] {
        assert!(get(&k8s, "other", kind, &name).is_null(), "{kind} {name}");
    }
}

fn get(k8s: &ApiServer, namespace: &str, kind: &str, name: &str) -> Value {
    let line = [
        "-n",
        namespace,
        "get",
        kind,
        name,
        "-o",
        "json",
        "--ignore-not-found",
    ];
    serde_json::from_str(&kubectl(k8s, &line, "")).unwrap_or(Value::Null)
}

/// A Deployment at zero, its Service, and who holds it.
fn objects() -> [Value; 3] {
    let (meta, app) = (json!({"name": "web"}), json!({"app": "web"}));
    [
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": meta,
            "spec": {"selector": app, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
            "spec": {
                "replicas": 0, "selector": {"matchLabels": app},
                "template": {
                    "metadata": {"labels": app},
                    "spec": {"containers": [{"name": "app", "image": "none"}]},
                },
            },
        }),
        json!({
            "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService", "metadata": meta,
            "spec": {
                "service": "web",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            },
        }),
    ]
}
