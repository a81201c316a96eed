//! `weir crds` on a real API server, with a real kubectl, as the README shows it. The server is one
//! of its own: these tests are about what applying changes. What is installed and the examples have
//! files of their own below.

mod examples;
mod manifests;
mod migration;
mod place;
mod programs;
mod scoped;
mod status;

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use weir_lab::{ApiServer, eventually};

use crate::output_of;

/// What the API server does a moment later it does in seconds; the machine may be busy.
const PATIENCE: Duration = Duration::from_mins(2);

#[tokio::test]
async fn the_resources_are_installed_explained_and_listed_with_kubectl() {
    let k8s = weir_lab::fresh_api_server().await;
    let yaml = output_of(&["crds"]);

    let first = kubectl(&k8s, &["apply", "-f", "-"], &yaml);
    assert_eq!(first.matches(" created").count(), 3, "{first}");
    let before = versions(&k8s);
    let second = kubectl(&k8s, &["apply", "-f", "-"], &yaml);
    assert_eq!(second.matches(" unchanged").count(), 3, "{second}");
    assert_eq!(versions(&k8s), before, "applying again changes nothing");

    for _ in 0..2 {
        let json = output_of(&["crds", "--format", "json"]);
        let applied = kubectl(
            &k8s,
            &["apply", "--server-side", "--force-conflicts", "-f", "-"],
            &json,
        );
        assert_eq!(
            applied.matches(" serverside-applied").count(),
            3,
            "{applied}"
        );
    }
    let server_side = versions(&k8s);
    kubectl(
        &k8s,
        &["apply", "--server-side", "--force-conflicts", "-f", "-"],
        &yaml,
    );
    assert_eq!(
        versions(&k8s),
        server_side,
        "applying again changes nothing"
    );

    are_served(&k8s).await;
    explains(&k8s).await;
    lists(&k8s);
}

/// Waits until objects of all definitions that are there can be read and written.
///
/// `kubectl wait` alone is no proof: it fails on a definition that nobody has looked at yet, and what is established is
/// served, and told to who asks what there is, a moment later.
async fn are_served(k8s: &ApiServer) {
    let names = kubectl(k8s, &["get", "crd", "-o", "name"], "");
    let plurals = names.lines().filter_map(|name| name.split_once('/'));
    let plurals: Vec<&str> = plurals.map(|(_, name)| name).collect();
    let line = ["get", "--all-namespaces", &plurals.join(",")];
    let what = "objects of all definitions are served";
    eventually(PATIENCE, what, async || tried(k8s, &line)).await;
}

/// Every field has a text, also far down. The API server tells of them some seconds after it serves the objects.
async fn explains(k8s: &ApiServer) {
    let explained = async |path: &str| {
        let line = ["explain", path, "--recursive=false"];
        eventually(PATIENCE, path, async || tried(k8s, &line)).await
    };
    let triggers = explained("elastiservice.spec.triggers").await;
    for part in [
        "FIELDS:",
        "type\t<string> -required-",
        "metadata\t<Object>",
        "a query's value",
    ] {
        assert!(
            triggers.contains(part),
            "{part:?} is missing in\n{triggers}"
        );
    }
    for path in [
        "elastiservice.spec.triggers.metadata",
        "elastiservice.spec.probeResponse.headers",
        "elastiservice.status",
        "trafficschedule.spec.scheduler",
        "trafficschedule.spec.provider.trace.slots",
        "trafficschedule.status.budget",
        "trafficwatch.spec",
        "trafficwatch.spec.deployment",
        "trafficwatch.spec.rebalance",
        "trafficwatch.status.nodes",
    ] {
        let text = explained(path).await;
        assert!(!text.contains("<no description>"), "{path}:\n{text}");
        assert!(text.contains("FIELDS:"), "{path}:\n{text}");
    }
}

/// The columns, the short names and the category.
fn lists(k8s: &ApiServer) {
    kubectl(k8s, &["apply", "-f", "-"], OBJECTS);
    let all = kubectl(
        k8s,
        &["get", "elastiservices,trafficschedules,trafficwatches"],
        "",
    );
    for columns in [
        &["NAME", "MODE", "PHASE", "TARGET", "LAST", "WAKE", "AGE"][..],
        &[
            "NAME",
            "POLICY",
            "CARBON",
            "PRECISION",
            "THROTTLE",
            "VALID",
            "UNTIL",
            "AGE",
        ],
        &[
            "NAME", "READY", "MAX", "%", "FIT", "UNFIT", "UNKNOWN", "AGE",
        ],
    ] {
        let found = all
            .lines()
            .any(|line| line.split_whitespace().eq(columns.iter().copied()));
        assert!(found, "{columns:?} are not in\n{all}");
    }
    let category = kubectl(k8s, &["get", "weir", "-o", "name"], "");
    let short = kubectl(k8s, &["get", "elasti,tsched,twatch", "-o", "name"], "");
    assert_eq!(category.lines().count(), 3, "{category}");
    assert_eq!(short, category);
}

fn versions(k8s: &ApiServer) -> Vec<(String, String)> {
    let crds = kubectl(k8s, &["get", "crd", "-o", "json"], "");
    let crds: Value = serde_json::from_str(&crds).expect("JSON");
    let text = |value: &Value| value.to_string();
    crds["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|crd| {
            (
                text(&crd["metadata"]["name"]),
                text(&crd["metadata"]["generation"]),
            )
        })
        .collect()
}

/// What kubectl says, whether it likes it or not.
fn tried(k8s: &ApiServer, arguments: &[&str]) -> Result<String, String> {
    let output = k8s.kubectl().args(arguments).output();
    let output = output.expect("kubectl runs");
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// What kubectl wrote; it must have succeeded.
fn kubectl(k8s: &ApiServer, arguments: &[&str], input: &str) -> String {
    let (is_success, said) = said(k8s, arguments, input);
    assert!(is_success, "kubectl {arguments:?}: {said}");
    said
}

/// Whether kubectl succeeded, and what it wrote; where it did not, with what it complains about.
fn said(k8s: &ApiServer, arguments: &[&str], input: &str) -> (bool, String) {
    let mut command: Command = k8s.kubectl();
    let mut child = command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kubectl runs");
    // If it has ended already, its own complaint says more.
    let _ = child
        .stdin
        .take()
        .expect("stdin")
        .write_all(input.as_bytes());
    let output = child.wait_with_output().expect("an end");
    let mut said = String::from_utf8(output.stdout).expect("text");
    if !output.status.success() {
        said.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    (output.status.success(), said)
}

const OBJECTS: &str = r#"
apiVersion: elasti.truefoundry.com/v1alpha1
kind: ElastiService
metadata: {name: httpbin}
spec:
  service: httpbin
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: httpbin}
---
apiVersion: scheduling.carbonrouter.io/v1alpha1
kind: TrafficSchedule
metadata: {name: traffic-schedule}
---
apiVersion: traffic.example.com/v1alpha1
kind: TrafficWatch
metadata: {name: web}
spec:
  maxBandwidthPercent: "60"
  deployment:
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec: {containers: [{name: web, image: "web:1"}]}
"#;
