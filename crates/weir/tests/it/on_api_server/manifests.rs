//! `weir manifests` on a real API server: everything is taken, nothing is dropped, applying again changes nothing,
//! and the rights are those that the parts need.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_lab::{ApiServer, eventually};

use super::{PATIENCE, kubectl, said};
use crate::output_of;

/// A warning, say of a pod that the namespace's level forbids, is an error here.
pub(super) const APPLY: [&str; 5] = ["apply", "--server-side", "--warnings-as-errors", "-f", "-"];

/// Applies it twice; what there is afterwards.
async fn install(k8s: &ApiServer, arguments: &[&str]) -> Vec<Value> {
    let yaml = output_of(&[&["manifests", "--only", "hold"], arguments].concat());
    let first = kubectl(k8s, &APPLY, &yaml);
    let printed: Vec<Value> = serde_saphyr::from_multiple(&yaml).expect("YAML");
    assert_eq!(first.lines().count(), printed.len(), "{first}");
    let before = versions(k8s, &yaml);
    kubectl(k8s, &APPLY, &yaml);
    assert_eq!(
        versions(k8s, &yaml),
        before,
        "applying again changes nothing"
    );
    is_kept(k8s, &["-f", "-"], &yaml).await;
    let json = output_of(&[&["manifests", "--format", "json"], arguments].concat());
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["items"].as_array().expect("items"), &printed);
    printed
}

/// Waits until `diff` finds nothing that the server would make else of it. It compares what is there with what would be
/// there, and controllers write a status in between.
pub(super) async fn is_kept(k8s: &ApiServer, files: &[&str], input: &str) {
    let line = [&["diff", "--server-side"], files].concat();
    let what = "the server keeps all of it";
    eventually(PATIENCE, what, async || {
        let (is_kept, said) = said(k8s, &line, input);
        is_kept.then_some(()).ok_or(said)
    })
    .await;
}

/// A spec's generation says whether it changed. Where there is none, the version of the object does.
pub(super) fn versions(k8s: &ApiServer, yaml: &str) -> BTreeMap<String, String> {
    let got = kubectl(k8s, &["get", "-f", "-", "-o", "json"], yaml);
    let got: Value = serde_json::from_str(&got).expect("JSON");
    let items = got["items"].as_array().expect("items").iter();
    items
        .map(|it| {
            let metadata = &it["metadata"];
            let key = format!(
                "{}/{}/{}",
                it["kind"], metadata["namespace"], metadata["name"]
            );
            let version = match metadata["generation"].as_i64() {
                Some(generation) => generation.to_string(),
                None => metadata["resourceVersion"].to_string(),
            };
            (key, version)
        })
        .collect()
}

/// May this part do this? As the API server says.
pub(super) fn may(k8s: &ApiServer, part: &str, what: &[&str]) -> bool {
    let user = format!("--as=system:serviceaccount:weir:weir-{part}");
    let mut command = k8s.kubectl();
    let output = command.args(["auth", "can-i", &user]).args(what).output();
    let output = output.expect("kubectl runs");
    match String::from_utf8_lossy(&output.stdout).trim() {
        "yes" => true,
        "no" => false,
        other => panic!("{other}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// Waits until this part may do this: the API server follows roles a moment after they were written. What a part may not
/// do is asked after that.
pub(super) async fn comes_to_be_allowed(k8s: &ApiServer, part: &str, what: &[&str]) {
    let told = format!("{part} may {}", what.join(" "));
    eventually(PATIENCE, &told, async || {
        may(k8s, part, what).then_some(()).ok_or("no")
    })
    .await;
}

#[tokio::test]
async fn hold_is_installed_for_all_namespaces() {
    let k8s = weir_lab::fresh_api_server().await;
    // Groups that are not there are no hindrance: Rollouts and KEDA may come later.
    let installed = install(&k8s, &[]).await;
    let kinds: Vec<&str> = installed
        .iter()
        .filter_map(|it| it["kind"].as_str())
        .collect();
    assert!(kinds.contains(&"CustomResourceDefinition"), "{kinds:?}");

    for what in [
        &["patch", "elastiservices/status", "-n", "shop"][..],
        &["update", "elastiservices/finalizers", "-n", "shop"],
        &["create", "endpointslices", "-n", "shop"],
        &["delete", "services", "-n", "shop"],
        &["patch", "deployments.apps/scale", "-n", "shop"],
        &["create", "tokenreviews"],
        &["update", "leases", "-n", "weir"],
        &["create", "events.events.k8s.io", "-n", "shop"],
    ] {
        let what = with_subresource(what);
        comes_to_be_allowed(&k8s, "operator", &words(&what)).await;
        assert!(!may(&k8s, "resolver", &words(&what)), "resolver: {what:?}");
    }
    for what in [
        &["watch", "elastiservices", "-n", "shop"][..],
        &["list", "services", "-A"],
        &["watch", "endpointslices", "-n", "shop"],
    ] {
        for part in ["operator", "resolver"] {
            comes_to_be_allowed(&k8s, part, what).await;
        }
    }
    // Their probes are read, by which the resolver asks pods that start.
    let pods = &["watch", "pods", "-n", "shop"];
    comes_to_be_allowed(&k8s, "resolver", pods).await;
    assert!(!may(&k8s, "operator", pods));
    for what in [
        &["get", "secrets", "-n", "shop"][..],
        &["get", "pods", "-n", "shop", "--subresource=exec"],
        &["create", "pods", "-n", "shop"],
        &["delete", "deployments", "-n", "shop"],
        &["delete", "elastiservices", "-n", "shop"],
        &["update", "leases", "-n", "shop"],
        &["delete", "namespaces"],
    ] {
        for part in ["operator", "resolver"] {
            assert!(!may(&k8s, part, what), "{part}: {what:?}");
        }
    }
}

/// `can-i` takes a subresource as a flag.
pub(super) fn with_subresource(what: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    for word in what {
        match word.split_once('/') {
            Some((resource, sub)) => {
                all.extend([resource.to_owned(), format!("--subresource={sub}")]);
            }
            None => all.push((*word).to_owned()),
        }
    }
    all
}

pub(super) fn words(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

/// What it takes to wake, where it is watched; and still nothing that puts to sleep.
#[tokio::test]
async fn resolvers_may_scale_where_that_is_asked_for() {
    let k8s = weir_lab::fresh_api_server().await;
    for namespace in ["shop", "other"] {
        kubectl(&k8s, &["create", "namespace", namespace], "");
    }
    let flags = ["--resolver-may-scale", "--watch-namespace", "shop"];
    install(&k8s, &flags).await;
    for what in [
        &["get", "deployments.apps/scale"][..],
        &["update", "deployments.apps/scale"],
        &["update", "statefulsets.apps/scale"],
    ] {
        let what = |namespace| with_subresource(&[what, &["-n", namespace]].concat());
        comes_to_be_allowed(&k8s, "resolver", &words(&what("shop"))).await;
        assert!(
            !may(&k8s, "resolver", &words(&what("other"))),
            "{what:?}",
            what = what("other")
        );
    }
    for what in [
        &["patch", "deployments", "-n", "shop"][..],
        &["update", "deployments", "-n", "shop"],
        &["delete", "deployments", "-n", "shop"],
        &["patch", "elastiservices", "-n", "shop"],
        &["create", "events.events.k8s.io", "-n", "shop"],
    ] {
        assert!(!may(&k8s, "resolver", what), "{what:?}");
    }
}

#[tokio::test]
async fn hold_is_installed_for_some_namespaces_and_has_no_rights_elsewhere() {
    let k8s = weir_lab::fresh_api_server().await;
    for namespace in ["shop", "blog", "other"] {
        kubectl(&k8s, &["create", "namespace", namespace], "");
    }
    let only = ["--watch-namespace", "shop", "--watch-namespace", "blog"];
    let installed = install(&k8s, &only).await;
    let over_all = |it: &&Value| {
        let kind = it["kind"].as_str().unwrap_or_default();
        kind.starts_with("ClusterRole")
    };
    assert_eq!(installed.iter().find(over_all), None);

    for (namespace, expected) in [
        ("shop", true),
        ("blog", true),
        ("weir", true),
        ("other", false),
    ] {
        for (part, what) in [
            ("operator", ["patch", "deployments"]),
            ("operator", ["delete", "endpointslices"]),
            ("operator", ["get", "namespaces"]),
            ("resolver", ["watch", "elastiservices"]),
            ("resolver", ["list", "pods"]),
        ] {
            let what = [&what[..], &["-n", namespace]].concat();
            if expected {
                comes_to_be_allowed(&k8s, part, &what).await;
            } else {
                assert!(!may(&k8s, part, &what), "{part}: {what:?}");
            }
        }
    }
    assert!(!may(&k8s, "operator", &["create", "tokenreviews"]));
    assert!(!may(&k8s, "resolver", &["list", "services", "-A"]));
}
