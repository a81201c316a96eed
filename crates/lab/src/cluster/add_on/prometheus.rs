//! Prometheus, which finds its targets through the API server: pods by annotation, nodes by their node_exporter.
//!
//! Debian's is built without its discovery of Kubernetes, so `discovery.go` stands in for it, with the same labels.
//!
//! A pod asks to be scraped with `prometheus.io/scrape: "true"`, and may name `prometheus.io/port` and
//! `prometheus.io/path`, as everywhere.

use std::{fs, net::Ipv4Addr, path::Path};

use super::super::{Cluster, ClusterError, http, launch, layout, sandbox_image};
use super::cannot_use;
use super::node_exporter;
use crate::{control_plane::flag, pki};

pub(super) const PART: &str = "prometheus";
pub(super) const DISCOVERY: &str = "prometheus-discovery";
const DISCOVERY_PORT: u16 = 19090;
/// Where it serves, on the control plane's address.
pub const PORT: u16 = 9090;

pub(super) fn start(cluster: &Cluster) -> Result<(), ClusterError> {
    let directory = cluster.layout.state_directory().join(PART);
    let file = directory.join("prometheus.yml");
    let configuration = configuration().to_string();
    fs::create_dir_all(&directory)
        .and_then(|()| fs::write(&file, configuration))
        .map_err(|source| cannot_use(&directory, source))?;
    start_discovery(cluster)?;
    let listen = format!("{}:{PORT}", layout::CONTROL_PLANE);
    let launch = cluster.launch(PART, Path::new("prometheus")).args([
        flag("config.file", &file.to_string_lossy()),
        flag(
            "storage.tsdb.path",
            &directory.join("data").to_string_lossy(),
        ),
        flag("web.listen-address", &listen),
        flag("log.level", "warn"),
    ]);
    let mut child = launch.start(&cluster.layout)?;
    launch::wait_until_ready(&cluster.layout, PART, &mut child, || {
        let ask = || http::is_ok(layout::CONTROL_PLANE, PORT, "/-/ready");
        cluster.network().inside(ask).unwrap_or(false)
    })
}

fn start_discovery(cluster: &Cluster) -> Result<(), ClusterError> {
    let program = sandbox_image::DISCOVERY_PROGRAM.build(&cluster.cache)?;
    let state = cluster.layout.state_directory();
    let file = |name: &str| pki::file(state, name).to_string_lossy().into_owned();
    let launch = cluster.launch(DISCOVERY, &program).args([
        format!("127.0.0.1:{DISCOVERY_PORT}"),
        format!(
            "https://{}:{}",
            layout::CONTROL_PLANE,
            layout::API_SERVER_PORT
        ),
        file("ca.crt"),
        file("admin.crt"),
        file("admin.key"),
    ]);
    let mut child = launch.start(&cluster.layout)?;
    launch::wait_until_ready(&cluster.layout, DISCOVERY, &mut child, || {
        let ask = || http::is_ok(Ipv4Addr::LOCALHOST, DISCOVERY_PORT, "/nodes");
        cluster.network().inside(ask).unwrap_or(false)
    })
}

/// JSON, which is YAML as well.
fn configuration() -> serde_json::Value {
    let annotation = |name: &str| format!("__meta_kubernetes_pod_annotation_prometheus_io_{name}");
    let label = |from: &str, to: &str| serde_json::json!({"source_labels": [format!("__meta_kubernetes_{from}")], "target_label": to});
    let discover = |what: &str| {
        let url = format!("http://127.0.0.1:{DISCOVERY_PORT}/{what}");
        serde_json::json!([{"url": url, "refresh_interval": "1s"}])
    };
    serde_json::json!({
        // Tests wait for the next scrape. The last one is the step of subqueries that name none: a minute would be longer than
        // the ranges that tests ask for.
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"},
        "scrape_configs": [
            {
                "job_name": "pods",
                "http_sd_configs": discover("pods"),
                "relabel_configs": [
                    {"source_labels": [annotation("scrape")], "regex": "true", "action": "keep"},
                    {"source_labels": ["__meta_kubernetes_pod_phase"], "regex": "Running", "action": "keep"},
                    {"source_labels": [annotation("path")], "regex": "(.+)", "target_label": "__metrics_path__"},
                    {
                        "source_labels": ["__meta_kubernetes_pod_ip", annotation("port")],
                        "separator": ":",
                        "regex": "(.+:.+)",
                        "target_label": "__address__",
                    },
                    label("namespace", "namespace"),
                    label("pod_name", "pod"),
                    label("pod_node_name", "node"),
                ],
            },
            {
                "job_name": "nodes",
                "http_sd_configs": discover("nodes"),
                "relabel_configs": [
                    {
                        "source_labels": ["__meta_kubernetes_node_address_InternalIP"],
                        "replacement": format!("$1:{}", node_exporter::PORT),
                        "target_label": "__address__",
                    },
                    label("node_name", "node"),
                ],
            },
        ],
    })
}
