//! The resolvers that hold what is asleep: two, as where nothing else is said, each at an address of its own. Each opens a port
//! for every service; at 10,000 that is half of the files that a process may often open.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
};

use anyhow::Result;
use serde_json::json;
use weir_lab::server::Server;

use crate::bench::{
    ask,
    process::{Process, command},
    scale::{NAMESPACE, api::Api},
};

const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 98, 0, 1), Ipv4Addr::new(10, 98, 0, 2)];
const INTERNAL_PORT: u16 = 8013;
const SERVICE: &str = "weir-resolver";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/bench/endpointslices";
/// Nobody listens there: nothing is woken.
const NO_OPERATOR: &str = "http://127.0.0.1:9";

/// They run until this value is dropped.
pub(super) struct Resolvers {
    _processes: Vec<Process>,
}

impl Resolvers {
    /// Starts them, waits until they are ready, and says so as Kubernetes would.
    pub(super) fn start(weir: &Path, server: &Server, api: &Api, home: &Path) -> Result<Self> {
        let processes = ADDRESSES.iter().map(|address| {
            let mut command = command(weir, None);
            command.args(["resolver", "--threads", "1", "--kubeconfig"]);
            command.arg(server.kubeconfig());
            command.args(["--bind-address", &address.to_string()]);
            command.arg(format!("--internal-port={INTERNAL_PORT}"));
            command.args(["--operator-url", NO_OPERATOR]);
            let mut process = Process::start(&format!("resolver-{address}"), command, home)?;
            let internal = SocketAddr::from((*address, INTERNAL_PORT));
            process.wait_until_ready(|| {
                ask::get(internal, "/readyz").is_ok_and(|answer| answer.status == 200)
            })?;
            Ok(process)
        });
        let processes = processes.collect::<Result<_>>()?;
        let endpoints = ADDRESSES.map(|address| {
            json!({
                "addresses": [address.to_string()],
                "conditions": { "ready": true, "serving": true, "terminating": false },
            })
        });
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": format!("{SERVICE}-1"),
                "labels": { "kubernetes.io/service-name": SERVICE },
            },
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": [],
        });
        api.send("POST", SLICES, "application/json", &slice)?;
        Ok(Self {
            _processes: processes,
        })
    }
}

/// The flags by which the operator finds them.
pub(super) fn known_to_the_operator() -> Vec<String> {
    vec![
        format!("--resolver-namespace={NAMESPACE}"),
        format!("--resolver-service={SERVICE}"),
        format!("--resolver-port={INTERNAL_PORT}"),
    ]
}
