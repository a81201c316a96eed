//! Every file of `examples/hold` on a real API server, with the definitions of KEDA and Argo Rollouts beside ours: all
//! of it is taken, none of it is dropped, and what is said there fits together. Those of place are in the file below.

mod place;

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde_json::Value;
use weir_lab::{
    ApiServer,
    cache::Cache,
    tools::crds::{self, Crds},
};

use super::{are_served, kubectl, manifests::is_kept};
use crate::output_of;

/// One of each form that users have.
const FORMS: [&str; 9] = [
    "behind-resolver",
    "deployment",
    "enabled-period",
    "hpa",
    "keda",
    "network",
    "probe-response",
    "rollout",
    "statefulset",
];

fn folder(part: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{part}"))
}

/// The names of all files there.
fn files_of(part: &str) -> BTreeSet<String> {
    let files = fs::read_dir(folder(part)).expect("a directory");
    let name = |file: fs::DirEntry| file.file_name().into_string().expect("text");
    files.map(|file| name(file.expect("a file"))).collect()
}

fn text_of(part: &str, name: &str) -> String {
    let file = folder(part).join(format!("{name}.yaml"));
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn documents_of(part: &str, name: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(&text_of(part, name)).expect("YAML")
}

fn example(form: &str) -> String {
    text_of("hold", form)
}

fn documents(form: &str) -> Vec<Value> {
    documents_of("hold", form)
}

fn define(k8s: &ApiServer, theirs: &Crds) {
    let cache = Cache::of_environment().expect("a cache");
    theirs.fetch(&cache).expect("the definitions are fetched");
    let directory = theirs.directory(&cache);
    let files = directory.to_str().expect("text");
    kubectl(k8s, &["apply", "--server-side", "-f", files], "");
}

#[tokio::test]
async fn every_example_is_taken_as_it_is() {
    let k8s = weir_lab::fresh_api_server().await;
    kubectl(&k8s, &["apply", "-f", "-"], &output_of(&["crds"]));
    for theirs in [&crds::KEDA, &crds::ROLLOUTS] {
        define(&k8s, theirs);
    }
    are_served(&k8s).await;
    // As users do it, all at once; `strict` refuses a field that nobody knows.
    let all = folder("hold");
    let all = all.to_str().expect("text");
    let apply = ["apply", "--server-side", "--validate=strict", "-f", all];
    kubectl(&k8s, &apply, "");
    is_kept(&k8s, &["-f", all], "").await;
    for form in FORMS {
        let kept = kubectl(&k8s, &["get", "-f", "-", "-o", "json"], &example(form));
        let kept: Value = serde_json::from_str(&kept).expect("JSON");
        let kept = kept["items"].as_array().expect("items");
        assert_eq!(kept.len(), documents(form).len(), "{form}");
    }
    let listed = kubectl(&k8s, &["get", "elastiservices", "-o", "name"], "");
    assert_eq!(listed.lines().count(), FORMS.len(), "{listed}");
}

#[test]
fn there_is_an_example_of_each_form_and_no_other_file() {
    assert_eq!(
        files_of("hold"),
        FORMS.map(|form| format!("{form}.yaml")).into()
    );
}

#[test]
fn what_an_example_names_is_in_it() {
    for form in FORMS {
        let all = documents(form);
        let there = |kind: &Value, name: &Value| {
            all.iter()
                .any(|it| it["kind"] == *kind && it["metadata"]["name"] == *name)
        };
        let elasti = all.iter().find(|it| it["kind"] == "ElastiService");
        let spec = &elasti.expect("an ElastiService")["spec"];
        assert!(there(&"Service".into(), &spec["service"]), "{form}");
        let target = &spec["scaleTargetRef"];
        assert!(there(&target["kind"], &target["name"]), "{form}");
        let autoscaler = match spec["autoscaler"]["type"].as_str() {
            Some("keda") => Some("ScaledObject"),
            Some("hpa") => Some("HorizontalPodAutoscaler"),
            _ => None,
        };
        if let Some(kind) = autoscaler {
            assert!(there(&kind.into(), &spec["autoscaler"]["name"]), "{form}");
        }
        let trigger = match form {
            "network" => "network",
            "behind-resolver" => "resolver",
            _ => "prometheus",
        };
        assert_eq!(spec["triggers"][0]["type"], trigger, "{form}");
        let workload = all.iter().find(|it| it["kind"] == target["kind"]);
        let template = &workload.expect("a workload")["spec"]["template"]["spec"];
        let pre_stop = template.pointer("/containers/0/lifecycle/preStop/sleep/seconds");
        assert_eq!(pre_stop, Some(&Value::from(3)), "{form}");
    }
}
