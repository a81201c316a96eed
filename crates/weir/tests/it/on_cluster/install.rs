//! Weir in the cluster, as `weir manifests` prints it: our program as an image on each node, and the lab's server beside it.
//!
//! The image's name has the digest of both programs in it. So a run with those of an earlier one finds them installed, and
//! another program rolls out by itself. `hold::second` puts another installation beside this one.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use tokio::sync::OnceCell;
use weir_lab::{
    TestCluster,
    image::{self, program},
};

use crate::output_of;

/// The lab's server, on every node.
pub(super) const APP_IMAGE: &str = "localhost/lab-app:hold-test";
/// Where Weir is.
pub(super) const NAMESPACE: &str = "weir";
/// How soon triggers are heard.
const POLLING_INTERVAL: &str = "1s";

/// Installs it, once in this process; returns the image that it runs.
pub(super) async fn installed(cluster: &TestCluster) -> &'static str {
    static IMAGE: OnceCell<String> = OnceCell::const_new();
    let cluster = cluster.clone();
    let image = IMAGE.get_or_init(|| async {
        let install = tokio::task::spawn_blocking(move || install(&cluster));
        install.await.expect("Weir is installed")
    });
    image.await
}

fn install(cluster: &TestCluster) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let weir = Path::new(env!("CARGO_BIN_EXE_weir"));
    // Cargo tells tests where the programs of their own crate are; the others lie beside them.
    let lab_app = weir.with_file_name("lab-app");
    assert!(
        lab_app.exists(),
        "{} is not built: run `cargo build -p weir-lab --all-features`, or `cargo xtask test --cluster`",
        lab_app.display()
    );
    let programs = [weir, &lab_app].map(|program| stripped(program, directory.path()));
    let both = programs
        .clone()
        .map(|path| fs::read(path).expect("a program"))
        .concat();
    let digest = image::digest(&both);
    let digest = digest.trim_start_matches("sha256:");
    let weir_image = format!("localhost/weir:{}", &digest[..12]);
    if !is_loaded(cluster, &weir_image) {
        for (name, program) in [&weir_image, APP_IMAGE].into_iter().zip(&programs) {
            load(cluster, name, program, directory.path());
        }
    }
    let objects = printed(&weir_image, &[]);
    cluster.apply(&objects.to_string()).expect("it is applied");
    for deployment in ["weir-resolver", "weir-operator"] {
        is_rolled_out(cluster, NAMESPACE, deployment);
    }
    weir_image
}

/// What is to be installed, for users who do not want to wait.
pub(super) fn printed(image: &str, arguments: &[&str]) -> Value {
    let always = ["manifests", "--only", "hold", "--format", "json"];
    let printed = output_of(&[&always[..], &["--image", image], arguments].concat());
    let mut objects = serde_json::from_str(&printed).expect("JSON");
    make_impatient(&mut objects);
    objects
}

/// Waits until its pods are ready and no others are there.
pub(super) fn is_rolled_out(cluster: &TestCluster, namespace: &str, deployment: &str) {
    let what = format!("deployment/{deployment}");
    let mut kubectl = cluster.kubectl();
    kubectl.args(["-n", namespace, "rollout", "status", &what]);
    let output = kubectl.arg("--timeout=300s").output();
    let output = output.expect("kubectl runs");
    assert!(output.status.success(), "{deployment}: {output:?}");
}

/// A copy without symbols, which is a third of the size; the program itself where that cannot be made.
fn stripped(program: &Path, directory: &Path) -> PathBuf {
    let copy = directory.join(program.file_name().expect("a file"));
    let strip = Command::new("strip")
        .arg("-o")
        .arg(&copy)
        .arg(program)
        .status();
    if strip.is_ok_and(|status| status.success()) {
        copy
    } else {
        program.to_owned()
    }
}

/// Whether the last run left these very programs.
fn is_loaded(cluster: &TestCluster, image: &str) -> bool {
    let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments");
    cluster.get(&path).is_some_and(|deployments| {
        let deployments = String::from_utf8_lossy(&deployments);
        deployments
            .matches(&format!("\"image\":\"{image}\""))
            .count()
            == 2
    })
}

/// Brings a program onto each node, as an image of this name.
pub(super) fn load(cluster: &TestCluster, name: &str, program: &Path, directory: &Path) {
    let gathered = program::gather(name, program, &[]).expect("an image");
    let file = directory.join("image.tar");
    fs::write(&file, gathered.image.pack().expect("a tar").tar).expect("written");
    cluster.load(&file).expect("the nodes take it");
}

/// Triggers are asked every half minute by default.
fn make_impatient(objects: &mut Value) {
    let items = objects["items"].as_array_mut().into_iter().flatten();
    let operators =
        items.filter(|it| it["kind"] == "Deployment" && it["metadata"]["name"] == "weir-operator");
    for operator in operators {
        let environment = operator.pointer_mut("/spec/template/spec/containers/0/env");
        let environment = environment.and_then(Value::as_array_mut);
        environment
            .expect("an environment")
            .push(json!({"name": "POLLING_INTERVAL", "value": POLLING_INTERVAL}));
    }
}
