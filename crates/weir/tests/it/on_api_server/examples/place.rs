//! Every file of `examples/place` on a real API server: all of it is taken, none of it is dropped, and what is said there fits
//! together.

use clap::Parser;
use serde_json::Value;
use weir_lab::app::command::Cli;

use super::{documents_of, files_of, folder};
use crate::{
    on_api_server::{kubectl, manifests::is_kept},
    output_of,
};

const FILES: [&str; 2] = ["traffic-generator", "traffic-watch"];

fn documents(file: &str) -> Vec<Value> {
    documents_of("place", file)
}

fn find(file: &str, kind: &str, name: &str) -> Option<Value> {
    let is_it = |it: &Value| it["kind"] == kind && it["metadata"]["name"] == name;
    documents(file).into_iter().find(is_it)
}

#[tokio::test]
async fn every_example_of_place_is_taken_as_it_is() {
    let k8s = weir_lab::fresh_api_server().await;
    kubectl(&k8s, &["apply", "-f", "-"], &output_of(&["crds"]));
    let established = ["wait", "--for=condition=Established", "--timeout=60s"];
    kubectl(&k8s, &[&established[..], &["crd", "--all"]].concat(), "");
    let all = folder("place");
    let all = all.to_str().expect("text");
    // `strict` refuses a field that nobody knows.
    let apply = ["apply", "--server-side", "--validate=strict", "-f", all];
    kubectl(&k8s, &apply, "");
    is_kept(&k8s, &["-f", all], "").await;
    let kept = kubectl(&k8s, &["get", "-f", all, "-o", "json"], "");
    let kept: Value = serde_json::from_str(&kept).expect("JSON");
    let written: usize = FILES.map(|file| documents(file).len()).iter().sum();
    assert_eq!(kept["items"].as_array().expect("items").len(), written);
    let watch = kubectl(&k8s, &["get", "trafficwatch", "web", "-o", "json"], "");
    let watch: Value = serde_json::from_str(&watch).expect("JSON");
    assert_eq!(watch["spec"]["rebalance"]["cooldown"], "5m", "{watch}");
    let container = watch.pointer("/spec/deployment/template/spec/containers/0/args/0");
    assert_eq!(container, Some(&"echo".into()), "the template is kept");
}

#[test]
fn there_is_no_other_file() {
    assert_eq!(
        files_of("place"),
        FILES.map(|file| format!("{file}.yaml")).into()
    );
}

#[test]
fn the_generator_sends_to_somebody_else_who_takes_it() {
    let file = "traffic-generator";
    let argument = |name: &str, index: usize| {
        let deployment = find(file, "Deployment", name).expect("a Deployment");
        let path = format!("/spec/template/spec/containers/0/args/{index}");
        let argument = deployment.pointer(&path).and_then(Value::as_str);
        argument.expect("an argument").to_owned()
    };
    assert_eq!(argument(file, 0), "generate");
    assert_eq!(argument("traffic-sink", 0), "discard");
    let to = argument(file, 1);
    let (service, port) = to.split_once(':').expect("a port");
    let service = find(file, "Service", service).expect("where it sends to");
    assert_eq!(service["spec"]["ports"][0]["port"].to_string(), port);
    let generator = find(file, "Deployment", file).expect("a Deployment");
    assert_eq!(generator["spec"]["replicas"], 0, "it waits to be told");
    let apart = generator.pointer(
        "/spec/template/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/labelSelector/matchLabels",
    );
    assert_eq!(apart, Some(&service["spec"]["selector"]));
}

#[test]
fn the_labs_program_understands_what_it_is_told() {
    for document in FILES.into_iter().flat_map(documents) {
        let of_deployment = document.pointer("/spec/template/spec/containers");
        let of_watch = document.pointer("/spec/deployment/template/spec/containers");
        let containers = of_deployment.or(of_watch).and_then(Value::as_array);
        for container in containers.into_iter().flatten() {
            let arguments = container["args"].as_array().expect("arguments");
            let arguments = arguments.iter().map(|it| it.as_str().expect("text"));
            let typed = std::iter::once("lab-app").chain(arguments);
            Cli::try_parse_from(typed).unwrap_or_else(|error| panic!("{container}: {error}"));
        }
    }
}

#[test]
fn the_watch_is_served_and_keeps_enough_pods() {
    let spec = &find("traffic-watch", "TrafficWatch", "web").expect("a watch")["spec"];
    let deployment = &spec["deployment"];
    let labels = &deployment["selector"]["matchLabels"];
    let service = find("traffic-watch", "Service", "web").expect("a Service");
    assert_eq!(service["spec"]["selector"], *labels);
    let budget = find("traffic-watch", "PodDisruptionBudget", "web").expect("a budget");
    assert_eq!(budget["spec"]["selector"]["matchLabels"], *labels);
    let least = budget["spec"]["minAvailable"].as_i64();
    assert!(
        least < deployment["replicas"].as_i64(),
        "none could be moved"
    );
}
