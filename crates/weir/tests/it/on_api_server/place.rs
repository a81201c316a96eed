//! `weir manifests --only place` on a real API server: everything is taken, the rights are those that place needs, and the
//! policies refuse what rights alone would let through. In `running` the operator has these rights and no others.

mod running;

use std::{cell::Cell, fs};

use serde_json::{Value, json};
use weir_lab::{ApiServer, eventually};

use super::{
    PATIENCE, kubectl,
    manifests::{APPLY, comes_to_be_allowed, is_kept, may, versions, with_subresource, words},
    tried,
};
use crate::output_of;

const OPERATOR: &str = "--as=system:serviceaccount:weir:weir-operator";

async fn install(k8s: &ApiServer, arguments: &[&str]) {
    let yaml = output_of(&[&["manifests", "--only", "place"], arguments].concat());
    kubectl(k8s, &APPLY, &yaml);
    let before = versions(k8s, &yaml);
    kubectl(k8s, &APPLY, &yaml);
    assert_eq!(
        versions(k8s, &yaml),
        before,
        "applying again changes nothing"
    );
    is_kept(k8s, &["-f", "-"], &yaml).await;
}

fn watch(name: &str, action: &str) -> String {
    let object: Value = json!({
        "apiVersion": "traffic.example.com/v1alpha1",
        "kind": "TrafficWatch",
        "metadata": { "name": name, "namespace": "shop" },
        "spec": {
            "maxBandwidthPercent": "60",
            "action": action,
            "deployment": {
                "selector": { "matchLabels": { "app": name } },
                "template": { "spec": { "containers": [{ "name": "app", "image": "none" }] } },
            },
        },
    });
    object.to_string()
}

#[tokio::test]
async fn place_is_installed_with_the_rights_that_it_needs() {
    let k8s = weir_lab::fresh_api_server().await;
    install(&k8s, &[]).await;
    for what in [
        &["watch", "trafficwatches", "-n", "shop"][..],
        &["patch", "trafficwatches", "-n", "shop"],
        &["update", "trafficwatches/status", "-n", "shop"],
        &["update", "trafficwatches/finalizers", "-n", "shop"],
        &["patch", "nodes"],
        &["watch", "nodes"],
        &["create", "deployments", "-n", "shop"],
        &["patch", "deployments.apps/scale", "-n", "shop"],
        &["list", "pods", "-A"],
        &["create", "pods/eviction", "-n", "shop"],
        &["list", "replicasets", "-n", "shop"],
        &["update", "leases", "-n", "weir"],
        &["create", "events.events.k8s.io", "-n", "shop"],
    ] {
        let what = with_subresource(what);
        comes_to_be_allowed(&k8s, "operator", &words(&what)).await;
    }
    for what in [
        &["get", "secrets", "-n", "shop"][..],
        &["create", "pods", "-n", "shop"],
        &["delete", "pods", "-n", "shop"],
        &["create", "pods/exec", "-n", "shop"],
        &["create", "nodes"],
        &["delete", "nodes"],
        &["update", "nodes/status"],
        &["get", "nodes/proxy"],
        &["delete", "deployments", "-n", "shop"],
        &["create", "daemonsets", "-n", "weir-node-exporter"],
        &["delete", "trafficwatches", "-n", "shop"],
        &["watch", "services", "-n", "shop"],
        &["create", "tokenreviews"],
    ] {
        let what = with_subresource(what);
        assert!(!may(&k8s, "operator", &words(&what)), "{what:?}");
    }
}

#[tokio::test]
async fn the_operator_changes_its_own_keys_on_nodes_and_nothing_else() {
    let k8s = weir_lab::fresh_api_server().await;
    install(&k8s, &[]).await;
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": "a", "labels": { "pool": "blue" }, "annotations": { "note": "x" } },
        "spec": { "taints": [{ "key": "full", "effect": "NoSchedule" }] },
    });
    kubectl(&k8s, &["create", "-f", "-"], &node.to_string());
    let ours = "web.traffic.example.com/unfit";
    let patch_of = |kind: &str, patch: Value| {
        let patch = patch.to_string();
        tried(&k8s, &["patch", "node", "a", OPERATOR, kind, "-p", &patch])
    };
    let patch = |patch: Value| patch_of("--type=merge", patch);
    let labels = |labels: Value| patch(json!({ "metadata": { "labels": labels } }));
    let annotations =
        |annotations: Value| patch(json!({ "metadata": { "annotations": annotations } }));
    let taints = |taints: Value| patch(json!({ "spec": { "taints": taints } }));
    // Added by the API server to what it has: the node controller changes the taints of such a node when it likes.
    let add_taint = |effect: &str| {
        let taint = json!({ "key": ours, "value": "true", "effect": effect });
        let add = json!([{ "op": "add", "path": "/spec/taints/-", "value": taint }]);
        patch_of("--type=json", add)
    };
    eventually(PATIENCE, "the policy is followed", async || {
        let outcome = labels(json!({ "pool": "green" }));
        // What got through before is taken back by whoever may.
        kubectl(
            &k8s,
            &["label", "--overwrite", "node", "a", "pool=blue"],
            "",
        );
        match outcome {
            Err(refusal) if refusal.contains("Weir may change labels") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;

    for allowed in [
        labels(json!({ ours: "true" })),
        labels(json!({ ours: "false" })),
        annotations(json!({ "traffic.example.com/bandwidth-percent": "55" })),
        add_taint("PreferNoSchedule"),
        labels(json!({ ours: null })),
        annotations(json!({ "traffic.example.com/bandwidth-percent": null })),
    ] {
        allowed.expect("it is ours");
    }
    for (what, refused) in [
        (
            "a new label",
            labels(json!({ "node-role.kubernetes.io/control-plane": "" })),
        ),
        ("a label that goes", labels(json!({ "pool": null }))),
        (
            "one beside ours",
            labels(json!({ ours: "true", "pool": "green" })),
        ),
        ("a changed annotation", annotations(json!({ "note": "y" }))),
        (
            "the user's bandwidth",
            annotations(json!({ "traffic.example.com/bandwidth": "1bit" })),
        ),
        ("no taints", taints(json!([]))),
        ("another effect", add_taint("NoExecute")),
        (
            "cordoned",
            patch(json!({ "spec": { "unschedulable": true } })),
        ),
        (
            "a finalizer",
            patch(json!({ "metadata": { "finalizers": ["x.example/y"] } })),
        ),
    ] {
        let refusal = refused.expect_err(what);
        assert!(refusal.contains("Weir may"), "{what}: {refusal}");
    }
    // Nobody else is kept from it.
    kubectl(&k8s, &["label", "--overwrite", "node", "a", "pool=red"], "");
}

#[tokio::test]
async fn who_writes_a_watch_may_make_its_deployment() {
    let k8s = weir_lab::fresh_api_server().await;
    install(&k8s, &[]).await;
    kubectl(&k8s, &["create", "namespace", "shop"], "");
    let bind = |name: &str, role: &str| {
        let role = format!("--clusterrole={role}");
        let line = [
            "create",
            "rolebinding",
            name,
            &role,
            "--user=alice",
            "-n",
            "shop",
        ];
        kubectl(&k8s, &line, "");
    };
    let directory = tempfile::tempdir().expect("a directory");
    let create = |name: &str, action: &str| {
        let path = directory.path().join(name);
        fs::write(&path, watch(name, action)).expect("a file");
        let path = path.to_str().expect("a path");
        tried(&k8s, &["create", "--as=alice", "-f", path])
    };
    bind("watches", "trafficwatch-editor");
    let number = Cell::new(0);
    eventually(PATIENCE, "the policy is followed", async || {
        // One that got through before is in nobody's way.
        number.set(number.get() + 1);
        match create(&format!("early{}", number.get()), "label") {
            Err(refusal) if refusal.contains("allowed to create Deployments") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    bind("all", "edit");
    eventually(PATIENCE, "with the right it is taken", async || {
        create("web", "label")
    })
    .await;
    let refusal = create("tainted", "taint").expect_err("nodes are not hers");
    assert!(refusal.contains("allowed to patch nodes"), "{refusal}");
}
