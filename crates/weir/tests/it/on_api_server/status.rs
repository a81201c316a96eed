//! `weir status` on a real API server: what is not there is said, and what is there is told.

use std::process::Output;

use serde_json::{Value, json};
use weir_lab::ApiServer;

use super::{are_served, kubectl, tried};
use crate::{output_of, weir};

fn status(k8s: &ApiServer, arguments: &[&str]) -> Output {
    let mut command = weir(&["status"]);
    command.args(arguments).arg("--kubeconfig");
    let output = command.arg(k8s.kubeconfig()).output();
    output.expect("weir runs")
}

fn told(k8s: &ApiServer, arguments: &[&str]) -> String {
    let output = status(k8s, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).expect("text")
}

fn refused(k8s: &ApiServer, arguments: &[&str]) -> String {
    let output = status(k8s, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[tokio::test]
async fn what_place_and_hold_say_is_told_or_what_to_install() {
    let k8s = weir_lab::fresh_api_server().await;
    let said = refused(&k8s, &["place"]);
    assert!(said.contains("knows no TrafficWatches"), "{said}");
    assert!(said.contains("weir crds --only place"), "{said}");
    let said = refused(&k8s, &[]);
    assert!(said.contains("knows no resources of Weir"), "{said}");

    kubectl(&k8s, &["apply", "-f", "-"], &output_of(&["crds"]));
    are_served(&k8s).await;
    assert_eq!(
        told(&k8s, &[]),
        "There are no TrafficWatches.\n\nThere are no ElastiServices.\n"
    );

    let watch = json!({
        "apiVersion": "traffic.example.com/v1alpha1", "kind": "TrafficWatch",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "maxBandwidthPercent": "60",
            "deployment": {
                "selector": { "matchLabels": { "app": "web" } },
                "template": { "metadata": {}, "spec": { "containers": [{ "name": "a", "image": "none" }] } },
            },
        },
    });
    kubectl(&k8s, &["create", "-f", "-"], &watch.to_string());
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": "a", "labels": { "web.traffic.example.com/unfit": "true" } },
    });
    kubectl(&k8s, &["create", "-f", "-"], &node.to_string());
    let status = json!({ "status": {
        "ready": true,
        "nodes": { "a": {
            "currentBandwidthPercent": "8.04e+01", "currentTransmitTotal": 7, "time": 1_700_000_000, "unfit": true,
            "interface": "eth0", "why": "Measured", "interfaces": "eth0 of 1Gbit, by itself",
        }},
    }});
    let patch = status.to_string();
    let line = [
        "patch",
        "trafficwatch",
        "web",
        "--subresource=status",
        "--type=merge",
        "-p",
        &patch,
    ];
    tried(&k8s, &line).expect("a status");
    let table = told(&k8s, &["place", "-n", "default"]);
    assert!(
        table.starts_with("TrafficWatch default/web, limit 60%"),
        "{table}"
    );
    let row = table
        .lines()
        .find(|line| line.starts_with("a "))
        .expect("a row");
    for cell in [
        "unfit",
        "80.4%",
        "eth0",
        "Measured",
        "eth0 of 1Gbit, by itself",
    ] {
        assert!(row.contains(cell), "{cell} is missing in {table}");
    }
    let json: Value = serde_json::from_str(&told(&k8s, &["-o", "json"])).expect("JSON");
    assert_eq!(json["trafficWatches"][0]["nodes"][0]["interface"], "eth0");
    assert_eq!(json["elastiServices"], json!([]));
    let elsewhere = told(&k8s, &["place", "-n", "kube-system"]);
    assert_eq!(elsewhere, "There are no TrafficWatches.\n");
}
