//! An API server that fails: a proxy before the real one answers 429 or 500, or cuts what is under way.
//!
//! Whoever is to suffer uses [`FaultyApi::kubeconfig`]; the cluster's own parts do not. The proxy speaks plain HTTP, so
//! what is not covered are failures of TLS, and a client certificate does not come through: a request has either a token
//! or the rights of cluster-admin. To have a real API server away altogether, pause or kill `kube-apiserver`
//! ([`super::process`]).

use std::{fs, net::Ipv4Addr, path::PathBuf};

use serde::Deserialize;

use crate::{
    cluster::{
        Cluster, ClusterError,
        http::{self, Answer},
        launch::{self, Launch},
        layout,
        sandbox_image::Program,
    },
    marks, pki,
};

const PART: &str = "api-proxy";
const PORT: u16 = 16444;
const PROGRAM: Program = Program::new(PART, include_str!("api_proxy.go"));

/// A proxy that runs until this value is dropped.
#[derive(Debug)]
pub struct FaultyApi<'a> {
    cluster: &'a Cluster,
}

/// Which requests fail, and how.
#[derive(Clone, Debug)]
pub struct Failure<'a> {
    /// 429, 500, 503, …
    pub status: u16,
    /// How many of them fail before all is well again.
    pub times: u32,
    /// What their path begins with; empty for all.
    pub path: &'a str,
    /// `GET`, `PATCH`, …; empty for all.
    pub methods: &'a [&'a str],
    /// Seconds that the answer asks clients to wait; 0 for no such header.
    pub retry_after: u32,
}

/// What the proxy has done so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Counts {
    /// Requests that were answered with a failure.
    pub failed: u64,
    /// Requests that went through.
    pub passed: u64,
    /// Requests that were cut while under way.
    pub cut: u64,
    /// Requests that are under way: watches, mostly.
    pub underway: u64,
}

impl<'a> FaultyApi<'a> {
    /// Starts the proxy, which passes everything on until told otherwise.
    pub fn start(cluster: &'a Cluster) -> Result<Self, ClusterError> {
        let program = PROGRAM.build(cluster.cache())?;
        let state = cluster.layout().state_directory();
        let file = |name: &str| pki::file(state, name).to_string_lossy().into_owned();
        let launch = Launch::new(PART, program, &cluster.network()).args([
            format!("0.0.0.0:{PORT}"),
            format!(
                "https://{}:{}",
                layout::CONTROL_PLANE,
                layout::API_SERVER_PORT
            ),
            file("ca.crt"),
            file("admin.crt"),
            file("admin.key"),
        ]);
        let mut child = launch.start(cluster.layout())?;
        let api = Self { cluster };
        launch::wait_until_ready(cluster.layout(), PART, &mut child, || {
            api.ask("GET", "/weir-fault", "").is_ok()
        })?;
        let kubeconfig = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "faulty",
            "contexts": [{"name": "faulty", "context": {"cluster": "faulty", "user": "admin"}}],
            "clusters": [{"name": "faulty", "cluster": {"server": api.url()}}],
            "users": [{"name": "admin", "user": {}}],
        });
        let path = api.kubeconfig();
        fs::write(&path, kubeconfig.to_string())
            .map_err(|source| ClusterError::Directory { path, source })?;
        Ok(api)
    }

    /// Where the proxy is, for everyone in the cluster's networks.
    pub fn url(&self) -> String {
        format!("http://{}:{PORT}", layout::CONTROL_PLANE)
    }

    /// A kubeconfig for it, as cluster-admin.
    pub fn kubeconfig(&self) -> PathBuf {
        self.cluster
            .layout()
            .state_directory()
            .join("faulty.kubeconfig")
    }

    /// From now on these requests fail, and no others.
    pub fn fail(&self, failure: &Failure<'_>) -> Result<(), ClusterError> {
        let body = serde_json::json!({
            "Status": failure.status,
            "Times": failure.times,
            "Path": failure.path,
            "Methods": failure.methods,
            "RetryAfter": failure.retry_after,
        });
        self.ask("PUT", "/weir-fault", &body.to_string())
            .map(|_| ())
    }

    /// All is well again.
    pub fn heal(&self) -> Result<(), ClusterError> {
        self.ask("PUT", "/weir-fault", "{}").map(|_| ())
    }

    /// Cuts everything that is under way now, watches above all; new requests go through.
    pub fn cut(&self) -> Result<(), ClusterError> {
        self.ask("POST", "/weir-fault/cut", "").map(|_| ())
    }

    /// What it has done so far.
    pub fn counts(&self) -> Result<Counts, ClusterError> {
        let answer = self.ask("GET", "/weir-fault", "")?;
        serde_json::from_str(&answer.body).map_err(|error| cannot_ask(error.into()))
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Result<Answer, ClusterError> {
        let send = || http::send(Ipv4Addr::LOCALHOST, PORT, method, path, &[], body);
        let asked = self
            .cluster
            .network()
            .inside(send)
            .and_then(|answer| answer);
        asked.map_err(cannot_ask)
    }
}

impl Drop for FaultyApi<'_> {
    fn drop(&mut self) {
        marks::end(self.cluster.layout().state_directory(), |part| part == PART);
    }
}

fn cannot_ask(source: std::io::Error) -> ClusterError {
    ClusterError::Run {
        program: PART.into(),
        source,
    }
}
