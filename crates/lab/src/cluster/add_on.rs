//! What users have in their clusters beside Kubernetes itself, for real: each starts, shows that it is ready, and stops.
//!
//! CoreDNS is a pod, because pods ask it. The others are plain processes in the control plane's network namespace (and
//! node_exporter in each node's): no images to build, logs beside all other logs, and a debugger can be put on them.

mod dns;
mod keda;
mod node_exporter;
pub mod prometheus;
pub mod rabbitmq;
mod rollouts;

use std::{
    fs,
    io::Write,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use super::{
    Cluster, ClusterError, Step,
    launch::{self, Launch},
    packages::{self, Package},
    start,
};
use crate::{
    cache::Cache,
    marks, pki,
    tools::{
        self, Tool,
        crds::{self, Crds},
    },
};

const GLANCE: Duration = Duration::from_millis(100);

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddOn {
    /// CoreDNS: pods resolve the names of services.
    Dns,
    /// Prometheus, which scrapes pods that ask for it by annotation.
    Prometheus,
    /// KEDA's operator: ScaledObjects scale between 0 and 1.
    Keda,
    /// KEDA's metrics adapter: ScaledObjects scale above 1.
    KedaAdapter,
    /// Argo Rollouts.
    Rollouts,
    /// RabbitMQ.
    Rabbitmq,
    /// The resources of Istio; nothing that acts on them.
    Istio,
    /// The resources of the Gateway API; nothing that acts on them.
    GatewayApi,
    /// node_exporter on each node.
    NodeExporter,
}

impl AddOn {
    /// All, in the order in which they are started.
    pub const ALL: [Self; 9] = [
        Self::Dns,
        Self::Prometheus,
        Self::Keda,
        Self::KedaAdapter,
        Self::Rollouts,
        Self::Rabbitmq,
        Self::Istio,
        Self::GatewayApi,
        Self::NodeExporter,
    ];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Prometheus => "prometheus",
            Self::Keda => "keda",
            Self::KedaAdapter => "keda-adapter",
            Self::Rollouts => "rollouts",
            Self::Rabbitmq => "rabbitmq",
            Self::Istio => "istio",
            Self::GatewayApi => "gateway-api",
            Self::NodeExporter => "node-exporter",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|add_on| add_on.name() == name)
    }

    /// What must be built for it.
    pub fn tools(self) -> &'static [&'static Tool] {
        match self {
            Self::Dns => &[&tools::COREDNS],
            Self::Keda => &[&tools::KEDA],
            Self::KedaAdapter => &[&tools::KEDA, &tools::KEDA_ADAPTER],
            Self::Rollouts => &[&tools::ROLLOUTS],
            Self::NodeExporter => &[&tools::NODE_EXPORTER],
            Self::Prometheus | Self::Rabbitmq | Self::Istio | Self::GatewayApi => &[],
        }
    }

    /// The resources that it brings.
    pub fn crds(self) -> Option<&'static Crds> {
        match self {
            Self::Keda => Some(&crds::KEDA),
            Self::Rollouts => Some(&crds::ROLLOUTS),
            Self::Istio => Some(&crds::ISTIO),
            Self::GatewayApi => Some(&crds::GATEWAY_API),
            _ => None,
        }
    }

    fn packages(self) -> &'static [Package] {
        match self {
            Self::Prometheus => packages::PROMETHEUS,
            Self::Rabbitmq => packages::RABBITMQ,
            _ => &[],
        }
    }

    /// The processes that it consists of; none if it is a pod or nothing but resources.
    fn parts(self, cluster: &Cluster) -> Vec<String> {
        match self {
            Self::Prometheus => vec![
                prometheus::DISCOVERY.to_owned(),
                prometheus::PART.to_owned(),
            ],
            Self::Keda => vec![keda::OPERATOR.to_owned()],
            Self::KedaAdapter => vec![keda::ADAPTER.to_owned()],
            Self::Rollouts => vec![rollouts::PART.to_owned()],
            Self::Rabbitmq => vec![rabbitmq::EPMD.to_owned(), rabbitmq::PART.to_owned()],
            Self::NodeExporter => {
                let part = |node: super::layout::Node| node.part(node_exporter::PART);
                cluster.nodes().into_iter().map(part).collect()
            }
            Self::Dns | Self::Istio | Self::GatewayApi => Vec::new(),
        }
    }

    fn start(self, cluster: &Cluster) -> Result<(), ClusterError> {
        if let Some(crds) = self.crds() {
            cluster.apply_files(&crds.directory(&cluster.cache))?;
        }
        match self {
            Self::Dns => dns::start(cluster),
            Self::Prometheus => prometheus::start(cluster),
            Self::Keda => keda::start_operator(cluster),
            Self::KedaAdapter => keda::start_adapter(cluster),
            Self::Rollouts => rollouts::start(cluster),
            Self::Rabbitmq => rabbitmq::start(cluster),
            Self::NodeExporter => node_exporter::start(cluster),
            Self::Istio | Self::GatewayApi => Ok(()),
        }
    }
}

/// The tools and resources of these add-ons that are not there yet.
pub fn missing(add_ons: &[AddOn], cache: &Cache) -> (Vec<&'static Tool>, Vec<&'static Crds>) {
    let mut wanted: Vec<&'static Tool> = Vec::new();
    let mut crds: Vec<&'static Crds> = Vec::new();
    for add_on in add_ons {
        wanted.extend(add_on.tools());
        crds.extend(add_on.crds());
    }
    crds.retain(|crds| !crds.is_fetched(cache));
    (tools::missing(&wanted, cache), crds)
}

impl Cluster {
    /// Starts those of these add-ons that do not run.
    pub fn add(
        &mut self,
        add_ons: &[AddOn],
        tell: &mut dyn FnMut(Step),
    ) -> Result<(), ClusterError> {
        let mut wanted = add_ons.to_vec();
        if wanted.contains(&AddOn::KedaAdapter) {
            // It serves what the operator tells it, and takes a minute to find one that comes later.
            wanted.push(AddOn::Keda);
        }
        wanted.sort();
        wanted.dedup();
        let (tools, crds) = missing(&wanted, &self.cache);
        if let Some(tool) = tools.first() {
            return Err(ClusterError::NotBuilt(tool.to_string()));
        }
        if let Some(crds) = crds.first() {
            return Err(ClusterError::NotBuilt(crds.to_string()));
        }
        for add_on in wanted {
            if self.runs(add_on) {
                continue;
            }
            start::ensure_packages(add_on.packages(), tell)?;
            let began = Instant::now();
            let what = format!("add-on {}: ready", add_on.name());
            tell(Step::Doing(format!("add-on {}", add_on.name())));
            self.stop(add_on);
            add_on.start(self)?;
            self.state.add_ons.push(add_on.name().to_owned());
            let written = self.state.write(self.layout.state_directory());
            written.map_err(|source| cannot_use(self.layout.state_directory(), source))?;
            tell(Step::Done(what, began.elapsed()));
        }
        Ok(())
    }

    /// Was this add-on started, and do its processes run?
    pub fn runs(&self, add_on: AddOn) -> bool {
        let running = self.parts();
        let parts = add_on.parts(self);
        self.state.add_ons.iter().any(|name| name == add_on.name())
            && parts.iter().all(|part| running.contains(part))
    }

    /// Ends the processes of an add-on. What it has put into the API server stays.
    pub fn stop(&mut self, add_on: AddOn) {
        let parts = add_on.parts(self);
        let is_meant = |part: &str| parts.iter().any(|own| own == part);
        if !parts.is_empty() {
            marks::end(self.layout.state_directory(), is_meant);
        }
        self.state.add_ons.retain(|name| name != add_on.name());
    }

    /// Applies these objects, YAML or JSON, server-side.
    pub fn apply(&self, objects: &str) -> Result<(), ClusterError> {
        let mut kubectl = self.kubectl();
        kubectl.args(["apply", "--server-side", "--force-conflicts", "-f", "-"]);
        kubectl
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let cannot_run = |source| ClusterError::Run {
            program: "kubectl".into(),
            source,
        };
        let mut child = kubectl.spawn().map_err(cannot_run)?;
        if let Some(mut input) = child.stdin.take() {
            // If it has ended already, its own error says more.
            let _ = input.write_all(objects.as_bytes());
        }
        let output = child.wait_with_output().map_err(cannot_run)?;
        if output.status.success() {
            return Ok(());
        }
        Err(ClusterError::Command {
            command: "kubectl apply".to_owned(),
            said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }

    /// Applies all YAML files in a directory, and waits until the resources that they define can be used.
    fn apply_files(&self, directory: &Path) -> Result<(), ClusterError> {
        let mut kubectl = self.kubectl();
        kubectl.args(["apply", "--server-side", "--force-conflicts", "-f"]);
        super::network::run(kubectl.arg(directory))?;
        self.await_established(directory)
    }

    /// `kubectl wait` fails at once on a definition that no controller has looked at yet, so it is asked again.
    fn await_established(&self, directory: &Path) -> Result<(), ClusterError> {
        let deadline = Instant::now() + launch::PATIENCE;
        loop {
            let mut kubectl = self.kubectl();
            kubectl.args(["wait", "--for=condition=Established", "--timeout=60s", "-f"]);
            match super::network::run(kubectl.arg(directory)) {
                Err(_) if Instant::now() < deadline => std::thread::sleep(GLANCE),
                outcome => return outcome,
            }
        }
    }

    /// A process in the control plane's network namespace.
    fn launch(&self, part: &str, program: &Path) -> Launch {
        Launch::new(part, program.to_owned(), &self.network())
    }

    /// Copies a certificate, its key and their authority to where a program looks for them.
    fn copy_certificates(&self, directory: &Path) -> Result<(), ClusterError> {
        let state = self.layout.state_directory();
        let files = [
            ("serving.crt", "tls.crt"),
            ("serving.key", "tls.key"),
            ("ca.crt", "ca.crt"),
        ];
        fs::create_dir_all(directory).map_err(|source| cannot_use(directory, source))?;
        for (from, to) in files {
            let copied = fs::copy(pki::file(state, from), directory.join(to));
            copied.map_err(|source| cannot_use(directory, source))?;
        }
        Ok(())
    }
}

fn cannot_use(path: &Path, source: std::io::Error) -> ClusterError {
    ClusterError::Directory {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_add_on_is_found_by_its_name() {
        for add_on in AddOn::ALL {
            assert_eq!(AddOn::named(add_on.name()), Some(add_on));
        }
        assert_eq!(AddOn::named("envoy"), None);
    }
}
